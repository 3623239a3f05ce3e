"""What an editor is told about a place of a playbook, also while the text is half typed."""

from typing import NamedTuple

import pytest

from noetl.kinds.table import KINDS
from noetl.playbook.blocks import ROOT
from noetl.playbook.editing.answers import OpenDocument

TEXT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  name: greet
  path: examples/greet
keychain:
  - { name: crm, kind: bearer }
workload:
  name: world
  limits: { rows: 5 }
workflow:
  - step: start
    tool:
      - ask:
          kind: http
          url: "https://example.com/{{ workload.name }}"
          auth: crm
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: jump, to: ask }
                - else: { then: { do: continue, set_ctx: { said: "{{ outcome.result }}" } } }
      - use: { kind: workbook, name: tidy }
    next:
      arcs:
        - step: end
          args: { said: "{{ event.result }}" }
  - step: end
    desc: The last one.
    tool:
      - rest: { kind: noop }
workbook:
  tasks:
    tidy: { kind: noop }
"""
ARC = "        - step: end\n"
ASK = "          auth: crm\n"
GUARD = "\"{{ outcome.status == 'error' }}\""


class Cursor(NamedTuple):
    """A text, and where in it `¦` was."""

    text: str
    line: int
    column: int


def cursor_in(old: str, new: str) -> Cursor:
    """The playbook with a change in it, the cursor where the change says `¦`."""
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    at = text.index("¦")
    before = text[:at]
    return Cursor(before + text[at + 1 :], before.count("\n"), at - (before.rfind("\n") + 1))


@pytest.fixture
def document() -> OpenDocument:
    """One that was whole before."""
    made = OpenDocument(KINDS)
    assert made.check(TEXT) == ()
    return made


def offered(document: OpenDocument, at: Cursor) -> list[str]:
    return [one.insert for one in document.offers(at.text, at.line, at.column)]


@pytest.mark.parametrize(
    ("old", "new", "inserts"),
    [
        pytest.param(ARC, ARC + "          ¦\n", ["when: ", "spec:"], id="an empty line"),
        pytest.param(ARC, ARC + "          wh¦\n", ["when: ", "spec:"], id="half a key"),
        pytest.param(ARC, ARC + "        - ¦\n", ["step: ", "when: ", "spec:"], id="-"),
        pytest.param(
            "    next:\n",
            "    spec:\n      ¦\n    next:\n",
            ["policy:", "timeout: ", "lease:", "join:", "limit:"],
            id="a block that begins",
        ),
        pytest.param("      arcs:\n", "      ¦arcs:\n", ["spec", "arcs"], id="before a colon"),
        pytest.param(
            "do: jump, to: ask }",
            "do: jump, ¦",
            [
                *("attempts: ", "backoff: ", "delay: ", "max_delay: ", "jitter: ", "to: "),
                *("message: ", "set_iter: ", "set_ctx: ", "set_prev: "),
            ],
            id="in braces that are open",
        ),
        pytest.param(
            ASK,
            "          ¦\n",
            [
                *("method: ", "headers: ", "params: ", "body: ", "form: ", "files: ", "auth: "),
                "follow_redirects: ",
            ],
            id="inputs of the kind",
        ),
        pytest.param(ARC, "        - step: ¦\n", ["start", "end"], id="steps"),
        pytest.param("to: ask", "to: ¦", ["ask", "use"], id="labels"),
        pytest.param("name: tidy", "name: ¦", ["tidy"], id="tasks of the workbook"),
        pytest.param("auth: crm", "auth: ¦", ["crm"], id="credentials"),
        pytest.param("kind: http", "kind: ¦", list(KINDS), id="kinds"),
        pytest.param("kind: http", "kind: po¦", list(KINDS), id="half a kind"),
        pytest.param(
            "do: jump", "do: ¦", ["continue", "retry", "jump", "break", "fail"], id="few words"
        ),
        pytest.param(ASK, ASK + "          follow_redirects: ¦\n", ["true", "false"], id="boolean"),
        pytest.param('{{ workload.name }}"', "{{ workload.¦", ["name", "limits"], id="workload"),
        pytest.param("{{ workload.name }}", "{{ workload.limits.¦ }}", ["rows"], id="deeper"),
        pytest.param(GUARD, '"{{ outcome.http.¦', ["status", "headers", "encoding"], id="outcome"),
        pytest.param(
            "{{ event.result }}",
            "{{ ¦",
            [
                *("workload", "ctx", "execution_id", "args", "event"),
                *("ctx.said", "workload.name", "workload.limits"),
            ],
            id="what an arc sees",
        ),
        pytest.param("name: world", "name: world # ¦", [], id="a comment"),
        pytest.param('url: "https', 'url: "¦https', [], id="free text"),
    ],
)
def test_what_may_follow(document: OpenDocument, old: str, new: str, inserts: list[str]) -> None:
    assert offered(document, cursor_in(old, new)) == inserts


def test_filters_follow_a_bar(document: OpenDocument) -> None:
    found = offered(document, cursor_in("{{ workload.name }}", "{{ workload.name | def¦ }}"))
    assert {"default", "upper", "length"} <= set(found)


@pytest.mark.parametrize("text", ["", "ap"])
def test_an_empty_file_begins_with_the_keys_of_the_root(text: str) -> None:
    offers = OpenDocument(KINDS).offers(text, 0, len(text))
    assert [one.entry.name for one in offers] == list(ROOT.fields)
    assert {one.back for one in offers} == {len(text)}


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param("          url: [\n", id="below an open bracket"),
        pytest.param("   at: { no: place\n", id="below a line at no place"),
        pytest.param('          desc: "open\n', id="below an open quote"),
    ],
)
def test_a_text_that_is_broken_above_still_completes(document: OpenDocument, broken: str) -> None:
    at = cursor_in(ASK, broken + "    next:\n      arcs:\n        - step: ¦\n")
    assert offered(document, at) == ["start", "end"]


def test_a_text_that_is_broken_below_completes_what_is_typed_now(document: OpenDocument) -> None:
    at = cursor_in(ASK, "          method: ¦GET\n  ]broken\n")
    assert document.offers(at.text, at.line, at.column) == []
    at = cursor_in("to: ask", "to: ¦\n  ]broken")
    assert offered(document, at) == ["ask", "use"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("arcs:", "ar¦cs:", "**arcs** (next, required)\n\nThe arcs, in order. Expects a list.\n\n"
         "NEXT-1: A router fires the first matching arc, or all of them."),
        ("url:", "u¦rl:", "**url** (input of `http`, required)\n\n"
         "Where the request goes; http or https."),
        (ARC, "        - step: e¦nd\n", "**end** (line 29): The last one."),
        ("name: tidy", "name: tid¦y", "**tidy** (line 35): noop"),
        ("workload.name", "work¦load.name",
         "**workload**: Inputs: the `workload` of the playbook with the request over it (DOC-3)."),
        ("name: world", "na¦me: world", None),
    ],
)  # fmt: skip
def test_what_is_said_about_a_word(
    document: OpenDocument, old: str, new: str, words: str | None
) -> None:
    assert document.hover(*cursor_in(old, new)) == words


def test_a_kind_tells_its_inputs(document: OpenDocument) -> None:
    said = document.hover(*cursor_in("kind: http", "kind: h¦ttp"))
    assert said is not None
    assert said.startswith("**http**: Send an HTTP request.\n\n- `url`: Where the request goes")


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        pytest.param(ARC, "        - step: e¦nd\n", 29, id="step"),
        pytest.param("to: ask", "to: as¦k", 14, id="label"),
        pytest.param("name: tidy", "name: ¦tidy", 35, id="workbook"),
        pytest.param("auth: crm", "auth: crm¦", 7, id="credential"),
        pytest.param("kind: http", "kind: h¦ttp", None, id="a kind stands nowhere"),
        pytest.param(ARC, "        - step: no¦where\n", None, id="no such step"),
    ],
)
def test_where_a_name_is_defined(
    document: OpenDocument, old: str, new: str, line: int | None
) -> None:
    place = document.definition(*cursor_in(old, new))
    assert (place.line if place is not None else None) == line
