"""Hints of findings: what the author meant, or what to do."""

import pytest

from noetl.playbook.load import load

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: a, path: b }\n"


def hints(workflow: str) -> list[tuple[str, str]]:
    return [(found.code, found.hint) for found in load(HEAD + workflow).findings]


@pytest.mark.rule("VAL-2")
def test_a_task_that_is_not_indented_below_its_label() -> None:
    [found] = load(
        HEAD + "workflow:\n  - step: start\n    tool:\n      - fetch:\n        kind: noop\n"
    ).findings
    assert (found.code, found.line) == ("task-shape", 8)
    assert found.message == "'kind' is at the level of the label 'fetch', expected below it"
    assert found.hint.startswith("indent it")


@pytest.mark.rule("VAL-2")
def test_a_key_of_a_task_at_the_level_of_its_label() -> None:
    [found] = load(
        HEAD + "workflow:\n  - step: start\n    tool:\n"
        "      - fetch: { kind: noop }\n        spec: { timeout: 3 }\n"
    ).findings
    assert (found.code, found.line) == ("task-shape", 8)
    assert found.message == "'spec' is at the level of the label 'fetch', expected below it"
    assert found.hint.startswith("indent it deeper than 'fetch'")


@pytest.mark.rule("VAL-3")
@pytest.mark.parametrize(
    ("name", "meant"),
    [("step.fialed", "step.failed"), ("step.dne", "step.done"), ("loop.done", "step.done")],
)
def test_the_nearest_event_that_a_step_ends_in(name: str, meant: str) -> None:
    workflow = (
        "workflow:\n  - step: start\n    tool:\n      - a: { kind: noop }\n"
        f"    next: {{ arcs: [ {{ step: start, when: \"{{{{ event.name == '{name}' }}}}\" }} ] }}\n"
    )
    assert hints(workflow) == [("impossible-event", f"did you mean '{meant}'?")]


def timed(timeout: str) -> str:
    return (
        "workload: { seconds: 3 }\nworkflow:\n  - step: start\n    tool:\n"
        f'      - a: {{ kind: http, url: "http://a", spec: {{ timeout: {timeout} }} }}\n'
    )


@pytest.mark.rule("TASK-7")
@pytest.mark.parametrize(
    ("timeout", "codes"),
    [
        ('"{{ workload.seconds }}"', []),
        ('"{{ workload.secnods }}"', ["unbound-name"]),
        ('"{{ workload. }}"', ["template-syntax"]),
        ("{ total: 3 }", []),
        ("soon", ["wrong-value"]),
    ],
)
def test_a_timeout_may_be_a_template(timeout: str, codes: list[str]) -> None:
    assert [code for code, _ in hints(timed(timeout))] == codes


ONE = "workflow:\n  - step: start\n    tool:\n      - a: {}\n"


@pytest.mark.rule("VAL-2")
@pytest.mark.parametrize(
    ("task", "hint"),
    [
        ('{ kind: http, uri: "x", url: "x" }', "did you mean 'url'?"),
        ('{ kind: shell, cmd: "x", command: "x" }', "did you mean 'command'?"),
        ("{ kind: playbook, path: x, inputs: { n: 1 } }", "did you mean 'args'?"),
        (
            '{ kind: http, url: "x", timeout: 5 }',
            "it belongs below 'spec': spec: { timeout: … }",
        ),
        (
            '{ kind: http, url: "x", spec: { timeout: 2m } }',
            "write the seconds as a number: timeout: 120",
        ),
        ('{ kind: http, url: "x", follow_redirects: yes }', "write true; 'yes' is text"),
        ('{ kind: http, url: "{{ env.HOME }}" }', "templates see no environment"),
        ('{ kind: http, url: "{{ inputs.x }}" }', "inputs of the playbook are below `workload`"),
        ('{ kind: http, url: "{{ steps.a.x }}" }', "a result goes on by `args` of an arc"),
    ],
)
def test_words_of_other_tools_are_understood(task: str, hint: str) -> None:
    found = [text for _, text in hints(ONE.format(task))]
    assert any(text.startswith(hint) for text in found), found


@pytest.mark.rule("VAL-1", "VAL-2")
@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "executor: { pool: gpu }\n" + ONE.format("{ kind: noop }"),
            "it belongs below 'spec': spec: { pool: … }",
        ),
        (
            ONE.format("{ kind: noop }").replace(
                "tool:", "loop: { items: [1], iterator: n }\n    tool:"
            ),
            "did you mean 'in'?",
        ),
        (
            ONE.format('{ kind: http, url: "x/{{ item }}" }').replace(
                "tool:", "loop: { in: [1], iterator: page }\n    tool:"
            ),
            "did you mean 'iter.page'?",
        ),
    ],
)
def test_keys_and_names_that_belong_elsewhere(text: str, hint: str) -> None:
    assert hint in [said for _, said in hints(text)]


@pytest.mark.rule("DOC-7")
@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (
            "url: {{ workload.base }}/orders",
            'put a value with a template in quotes: url: "{{ … }}"',
        ),
        ("url: http://x/{{ a }}: b", 'put a value with a template in quotes: url: "{{ … }}"'),
        ("url: x\n          note: see: this", 'put a value with a colon in quotes: note: "…: …"'),
        ("url:x\n          method: GET", "write a space behind the colon: url: …"),
    ],
)
def test_lines_that_are_not_yaml(line: str, hint: str) -> None:
    head = "workflow:\n  - step: start\n    tool:\n      - a:\n          kind: http\n"
    [(code, said)] = hints(f"{head}          {line}\n")
    assert (code, said) == ("yaml-syntax", hint)
