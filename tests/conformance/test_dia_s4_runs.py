"""DIA-S4: what the eval dialect says happens, after it was translated."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.cases import FOLDER
from tests.conformance.migrations import whole
from tests.support.http_server import HttpServer
from tests.support.one_run import OneRun, run_file
from tests.support.postgres import Database
from tests.system.program import Answer, noetl

from noetl.playbook.dialects.migrate import migrate

PAGINATION = FOLDER / "migrated" / "eval_pagination.yaml"


def ran(text: str, folder: Path) -> OneRun:
    """The end of a playbook that is translated first."""
    migrated = migrate(whole(text))
    assert migrated.complete, migrated.findings
    file = folder / "playbook.yaml"
    file.write_text(migrated.text)
    run, _ = asyncio.run(run_file(file, folder / "home"))
    return run


def paged(home: Path, server: HttpServer, database: Database) -> Answer:
    words = ("--migrate", "--json", "--set", f"api_url={server.url}", PAGINATION)
    pg = json.dumps(database.credential)
    return noetl("run", *words, NOETL_HOME=str(home), MIGRATED_PG=pg)


@pytest.mark.rule("DIA-S4")
def test_the_complete_example_runs_to_its_end(
    tmp_path: Path, http_server: HttpServer, database: Database
) -> None:
    http_server.totals["orders"] = 10
    http_server.fail("/api/v1/users", times=2, status=503)
    http_server.fail("/api/v1/orders", times=1, status=429)
    answer = paged(tmp_path, http_server, database)
    [report] = answer.objects()
    assert (answer.code, report["status"]) == (0, "completed")
    assert report["ctx"] == {
        "stored": [
            {"endpoint": "/api/v1/orders", "pages": 3, "rows": 10},
            {"endpoint": "/api/v1/users", "pages": 3, "rows": 25},
        ]
    }
    assert [step["step"] for step in report["steps"]] == [
        "start",
        "fetch_all_endpoints",
        "validate_results",
    ]
    assert http_server.count("/api/v1/users") == 5
    verified = noetl("replay", report["execution_id"], "--verify", NOETL_HOME=str(tmp_path))
    assert (verified.code, verified.err) == (0, "")


@pytest.mark.rule("DIA-S4")
def test_the_complete_example_cleans_up_after_a_failure(
    tmp_path: Path, http_server: HttpServer, database: Database
) -> None:
    http_server.fail("/api/v1/orders", times=1, status=400)
    [report] = paged(tmp_path, http_server, database).objects()
    assert report["ctx"] == {"cleaned_up": True}
    assert [step["step"] for step in report["steps"]] == [
        "start",
        "fetch_all_endpoints",
        "cleanup",
    ]


ONE = """
workflow:
  - step: start
    tool:
      - one:
          kind: python
          code: {code}
          eval:
            - expr: "{{{{ outcome.py.exception == 'KeyError' }}}}"
              do: break
            - expr: "{{{{ outcome.result == 2 }}}}"
              do: continue
              set_ctx: {{ two: true }}
      - two:
          kind: noop
          eval:
            - else: {{ do: continue, set_ctx: {{ after: true }} }}
"""


@pytest.mark.rule("DIA-S4")
@pytest.mark.parametrize(
    ("code", "status", "ctx"),
    [
        ("result = 1", "completed", {"after": True}),
        ("result = 2", "completed", {"two": True, "after": True}),
        ("raise ValueError('no')", "failed", {}),
        ("raise KeyError('no')", "completed", {}),
    ],
)
def test_no_match_goes_on_after_ok_and_fails_after_an_error(
    code: str, status: str, ctx: dict[str, Any], tmp_path: Path
) -> None:
    run = ran(ONE.format(code=json.dumps(code)), tmp_path)
    assert (run.status, run.ctx) == (status, ctx)


GUARDED = """
workload: {{ open: {open} }}
workflow:
  - step: start
    spec: {{ next_mode: inclusive }}
    next:
      - step: left
        args: {{ side: left }}
      - step: right
        when: "{{{{ workload.open }}}}"
        args: {{ side: right }}
  - step: left
    when: "{{{{ token.args.side == 'left' }}}}"
    tool:
      - one: {{ kind: noop, eval: [ {{ else: {{ do: continue, set_ctx: {{ left: 1 }} }} }} ] }}
  - step: right
    when: "{{{{ ctx.left == 1 and workload.open }}}}"
    tool:
      - one: {{ kind: noop, eval: [ {{ else: {{ do: break, set_ctx: {{ right: 1 }} }} }} ] }}
"""


@pytest.mark.rule("DIA-S4")
@pytest.mark.parametrize(
    ("open_", "ctx"), [("true", {"left": 1, "right": 1}), ("false", {"left": 1})]
)
def test_a_guard_of_a_step_holds_tokens_back(
    open_: str, ctx: dict[str, Any], tmp_path: Path
) -> None:
    run = ran(GUARDED.format(open=open_), tmp_path)
    assert (run.status, run.ctx) == ("completed", ctx)


COUNTED = """
workload: {{ rows: [3, 1, 2] }}
workflow:
  - step: add
    loop:
      in: "{{{{ workload.rows }}}}"
      iterator: row
      spec: {{ mode: {mode} }}
    tool:
      - one:
          kind: python
          args: {{ n: "{{{{ iter.row }}}}"{reads} }}
          code: {code}
          eval:
            - expr: "{{{{ outcome.status == 'success' }}}}"
              do: continue
              {write}
    next:
      - step: show
        when: "{{{{ vars.total == 6 }}}}"
        args: {{ total: "{{{{ vars.total }}}}" }}
  - step: show
    tool:
      - one:
          kind: noop
          eval:
            - else: {{ do: break, set_ctx: {{ sum: "{{{{ token.args.total }}}}" }} }}
"""
BY_HAND = {
    "mode": "sequential",
    "reads": ', so_far: "{{ vars.total | default(0) }}"',
    "code": "result = so_far + n",
    "write": 'set_vars: { total: "{{ outcome.result }}" }',
}
REDUCED = {
    "reads": "",
    "code": "result = n",
    "write": 'set_shared: { total: { sum: "{{ outcome.result }}" } }',
}


@pytest.mark.rule("DIA-S4")
@pytest.mark.parametrize(
    "parts",
    [BY_HAND, {"mode": "sequential", **REDUCED}, {"mode": "parallel", **REDUCED}],
    ids=["by hand", "reduced", "reduced in parallel"],
)
def test_variables_outlive_iterations_and_reach_the_arcs(
    parts: dict[str, str], tmp_path: Path
) -> None:
    run = ran(COUNTED.format(**parts), tmp_path)
    assert (run.status, run.ctx) == ("completed", {"add_total": 6, "sum": 6})


POLLED = """
workflow:
  - step: start
    tool:
      - init:
          kind: noop
          eval:
            - else: { do: continue, set_vars: { n: 0 } }
      - count:
          kind: python
          args: { n: "{{ vars.n }}" }
          code: result = n + 1
          eval:
            - expr: "{{ outcome.result < 3 }}"
              do: jump
              to: count
              delay: 0
              set_vars: { n: "{{ outcome.result }}" }
            - else: { do: continue, set_prev: "{{ [vars.n, outcome.result] }}" }
"""


@pytest.mark.rule("DIA-S4")
def test_variables_of_a_step_without_loop_are_gone_with_its_run(tmp_path: Path) -> None:
    run = ran(POLLED, tmp_path)
    assert (run.status, run.ctx, run.result) == ("completed", {}, [2, 3])


REPEATED = """
workflow:
  - step: start
    tool:
      - count:
          kind: python
          args: { n: "{{ vars.n | default(0) }}" }
          code: result = n + 1
          eval:
            - else: { do: continue, set_vars: { n: "{{ outcome.result }}" } }
    next:
      - step: start
        when: "{{ vars.n < 3 }}"
"""


@pytest.mark.rule("DIA-S4")
def test_a_variable_that_is_kept_where_it_was_new_is_warned_of() -> None:
    [warning] = migrate(whole(REPEATED)).findings
    assert (warning.code, warning.severity, warning.line) == ("changed-meaning", "warning", 10)
    assert "'vars.n' was new in each run of the step" in warning.message
