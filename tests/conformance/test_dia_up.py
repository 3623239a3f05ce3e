"""DIA-UP: forms of public playbooks become canonical, and run to the end that they had."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conformance.migrations import (
    FOLDER,
    Case,
    RefusedCase,
    assert_migrates,
    assert_refused,
    assert_settled,
    cases,
    refused_cases,
    whole,
)
from tests.support.http_server import HttpServer
from tests.support.one_run import OneRun, run_file
from tests.support.postgres import Database

from noetl.playbook.dialects.migrate import migrate

CASES = {case.name: case for case in cases("public")}
SERVER = "http://127.0.0.1:8080"
"""Where the texts look for the server; each test has its own."""
CHILD = """\
workflow:
  - step: finish
    tool:
      kind: python
      input: { n: "{{ n }}" }
      code: |
        return {"points": n * 2}
"""


class End(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the run of a translated playbook comes to."""

    name: str
    result: Any
    steps: dict[str, int]
    ctx: dict[str, Any] | None = {}
    """None where it holds what differs from run to run, such as the date of an answer."""
    status: str = "completed"
    services: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


ENDS = msgspec.yaml.decode((FOLDER / "public_ends.yaml").read_bytes(), type=list[End])


def ran(text: str, folder: Path) -> OneRun:
    """The end of a playbook that is translated first, and its child too."""
    for name, one in (("playbook", text), ("child", CHILD)):
        migrated = migrate(whole(one))
        assert migrated.complete, migrated.findings
        (folder / f"{name}.yaml").write_text(migrated.text)
    run, _ = asyncio.run(run_file(folder / "playbook.yaml", folder / "home"))
    return run


def assert_ends(end: End, text: str, folder: Path) -> None:
    run = ran(text, folder)
    assert run.error is None or end.status == "failed"
    assert (run.status, run.steps) == (end.status, end.steps)
    assert run.result == end.result
    assert end.ctx is None or run.ctx == end.ctx


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("case", CASES.values(), ids=str)
def test_a_public_form_becomes_canonical(case: Case) -> None:
    assert_migrates(case)


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("end", [end for end in ENDS if not end.services], ids=str)
def test_a_public_form_runs_to_its_end(end: End, tmp_path: Path) -> None:
    assert_ends(end, CASES[end.name].before, tmp_path)


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("end", [end for end in ENDS if end.services], ids=str)
def test_a_public_form_runs_against_real_servers(
    end: End,
    tmp_path: Path,
    http_server: HttpServer,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MIGRATED_PG", json.dumps(database.credential))
    assert_ends(end, CASES[end.name].before.replace(SERVER, http_server.url), tmp_path)


def test_every_form_that_can_run_has_an_end() -> None:
    assert {end.name for end in ENDS} == CASES.keys()


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("case", refused_cases("public_refused"), ids=str)
def test_what_has_no_counterpart_is_refused(case: RefusedCase) -> None:
    assert_refused(case)


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A playbook built as one of the public ones, and what is left to its author: line and code."""

    name: str
    text: str
    left: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        return self.name


SHAPES = msgspec.yaml.decode((FOLDER / "public_shapes.yaml").read_bytes(), type=list[Shape])


@pytest.mark.rule("DIA-UP")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_public_shape_is_translated_or_says_where_not(shape: Shape) -> None:
    made = migrate(shape.text)
    errors = [(one.line, one.code) for one in made.findings if one.severity == "error"]
    assert errors == list(shape.left)
    assert made.changed
    assert all(one.message and one.hint for one in made.findings)
    if errors:
        assert not migrate(made.text).changed
    else:
        assert_settled(made)


@pytest.mark.rule("DIA-UP")
def test_most_public_shapes_need_no_hand() -> None:
    whole_ones = [shape.name for shape in SHAPES if not shape.left]
    assert len(SHAPES) >= 30
    assert len(whole_ones) >= len(SHAPES) // 2


CANONICAL = """\
workload: { fetch: 1, rows: [ 1 ] }
workflow:
  - step: fetch   # a name that the workload has too
    tool:
      - get: { kind: http, url: "http://127.0.0.1:8080/{{ fetch }}" }
      - code: { kind: python, args: { all: "{{ _prev }}" }, code: "result = all['status']" }
      - ask: { kind: postgres, auth: pg, command: SELECT 1 AS n }
      - use: { kind: python, args: { rows: "{{ _prev }}" }, code: "result = {'rows': rows}" }
    next: { arcs: [ { step: done, args: { code: "{{ event.result.rows }}" } } ] }
  - step: done
    tool:
      - code: { kind: python, args: { n: "{{ code }}" }, code: "def main(n):\\n    return n" }
"""


@pytest.mark.rule("DIA-UP")
def test_a_canonical_text_stays_as_it_is() -> None:
    made = migrate(whole(CANONICAL))
    assert (made.text, made.changed, made.rewrites) == (whole(CANONICAL), False, ())
    assert [one for one in made.findings if one.severity == "error"] == []


@pytest.mark.rule("DIA-UP")
def test_a_kept_status_of_two_words_is_told() -> None:
    made = migrate(
        whole("""\
workflow:
  - step: start
    tool: { kind: python, code: "result = {'said': 'success'}" }
    set: { ctx.ended: "{{ output.status }}" }
    next: { arcs: [ { step: done, when: "{{ ctx.ended == 'ok' }}" } ] }
  - step: done
""")
    )
    assert 'ended: "{{ outcome.status }}"' in made.text
    assert [one.code for one in made.findings] == ["changed-meaning"]
