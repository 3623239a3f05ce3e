"""DIA-S2: what the case dialect says happens, after it was translated."""

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from tests.conformance.cases import FOLDER
from tests.conformance.migrations import whole
from tests.support.http_server import HttpServer
from tests.support.one_run import OneRun, run_file
from tests.support.postgres import Database
from tests.system.program import noetl

from noetl.playbook.dialects.migrate import migrate

ONBOARDING = FOLDER / "migrated" / "case_onboarding.yaml"


def ran(text: str, folder: Path) -> OneRun:
    """The end of a playbook that is translated first."""
    migrated = migrate(whole(text))
    assert migrated.complete, migrated.findings
    file = folder / "playbook.yaml"
    file.write_text(migrated.text)
    run, _ = asyncio.run(run_file(file, folder / "home"))
    return run


def rows_in(database: Database, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url, autocommit=True) as connection:
        ran_it = connection.execute(statement.encode())
        return ran_it.fetchall() if ran_it.description else []


# ── the complete example ──


@pytest.mark.rule("DIA-S2")
def test_the_complete_example_runs_to_its_end(
    tmp_path: Path, http_server: HttpServer, database: Database
) -> None:
    rows_in(database, "CREATE TABLE users (id int, name text, email text)")
    rows_in(database, "INSERT INTO users VALUES (1, 'Ann', 'ann@example.com'), (2, 'Bo', 'bo@x')")
    url = f"{http_server.url}/api/v1"
    pg = json.dumps(database.credential)
    words = ("--migrate", "--json", "--set", f"api_url={url}", ONBOARDING)
    answer = noetl("run", *words, NOETL_HOME=str(tmp_path), MIGRATED_PG=pg)
    [report] = answer.objects()
    assert (answer.code, report["status"]) == (0, "completed")
    assert report["ctx"] == {"user_email": "bo@x", "user_name": "Bo"}
    assert [step["step"] for step in report["steps"]] == [
        "start",
        "fetch_user",
        "send_welcome",
        "end",
    ]
    [sent] = [seen for seen in http_server.seen if seen.path == "/api/v1/email"]
    assert (sent.method, json.loads(sent.body)) == ("POST", {"template": "welcome", "to": "bo@x"})
    verified = noetl("replay", report["execution_id"], "--verify", NOETL_HOME=str(tmp_path))
    assert (verified.code, verified.err) == (0, "")


@pytest.mark.rule("DIA-S2")
def test_the_complete_example_stops_at_a_failure(
    tmp_path: Path, http_server: HttpServer, database: Database
) -> None:
    pg = json.dumps(database.credential)
    words = ("--migrate", "--json", "--set", f"api_url={http_server.url}", ONBOARDING)
    [report] = noetl("run", *words, NOETL_HOME=str(tmp_path), MIGRATED_PG=pg).objects()
    assert report["status"] == "failed"
    assert [step["step"] for step in report["steps"]] == ["start", "fetch_user"]
    assert http_server.seen == []


# ── retry (S2 §7) ──

RETRIED = """
workflow:
  - step: start
    tool: {{ kind: http, url: "{url}" }}
    retry: {retry}
    case:
      - when: "{{{{ event.name == 'call.error' }}}}"
        then: {{ next: sorry }}
    next: fine
  - step: fine
  - step: sorry
"""


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize(
    ("retry", "fails", "calls", "end"),
    [
        ("{ max_attempts: 3 }", 2, 3, "fine"),
        ("{ max_attempts: 3 }", 3, 3, "sorry"),
        ('{ max_attempts: 5, retry_when: "{{ status_code == 503 }}" }', 1, 2, "fine"),
        ('{ max_attempts: 5, retry_when: "{{ status_code == 500 }}" }', 1, 1, "sorry"),
        ('{ max_attempts: 4, retry_when: "{{ not success and attempt < 2 }}" }', 3, 2, "sorry"),
        ('{ max_attempts: 4, retry_when: "{{ error is not none }}" }', 2, 3, "fine"),
        ('{ max_attempts: 4, retry_when: "{{ error is defined }}" }', 2, 3, "fine"),
        ('{ max_attempts: 4, stop_when: "{{ success }}" }', 2, 3, "fine"),
        ('{ max_attempts: 2, stop_when: "{{ success }}" }', 2, 2, "sorry"),
        ('{ max_attempts: 3, stop_when: "{{ false }}" }', 0, 3, "fine"),
        (
            '{ max_attempts: 3, retry_when: "{{ true }}", stop_when: "{{ attempt == 2 }}" }',
            0,
            2,
            "fine",
        ),
        ("3", 2, 3, "fine"),
        ("{}", 9, 3, "sorry"),
        (
            "{ max_attempts: 3, initial_delay: 0.001, backoff_multiplier: 3 }",
            2,
            3,
            "fine",
        ),
    ],
)
def test_a_retry_runs_the_tool_as_often_as_it_says(
    retry: str, fails: int, calls: int, end: str, tmp_path: Path, http_server: HttpServer
) -> None:
    http_server.fail("/echo", times=fails, status=503)
    run = ran(RETRIED.format(url=f"{http_server.url}/echo", retry=retry), tmp_path)
    assert (run.status, run.steps) == ("completed", {"start": 1, end: 1})
    assert http_server.count("/echo") == calls


POLLED = """
workflow:
  - step: start
    tool: { kind: python, args: { n: "{{ _attempt }}" }, code: "result = {'n': n}" }
    case:
      - when: "{{ event.name == 'call.done' and response.data.n < 3 }}"
        then:
          retry: { max_attempts: 5 }
      - when: "{{ event.name == 'step.exit' }}"
        then:
          next: { step: after, args: { n: "{{ result.n }}" } }
  - step: after
    tool: { kind: python, args: { n: "{{ n }}" }, code: "result = n" }
    vars: { n: "{{ result }}" }
"""


@pytest.mark.rule("DIA-S2")
def test_a_case_can_ask_for_a_retry(tmp_path: Path) -> None:
    run = ran(POLLED, tmp_path)
    assert (run.status, run.ctx, run.steps) == ("completed", {"n": 3}, {"start": 1, "after": 1})


# ── case (S2 §8) ──

CASES = """
workload: {{ api_url: "{url}" }}
workflow:
  - step: start
    tool: {{ kind: http, url: "{{{{ workload.api_url }}}}" }}
    case:
      - when: "{{{{ event.name == 'call.error' and response.status_code == 404 }}}}"
        then:
          set: {{ missing: "{{{{ response.status_code }}}}" }}
          next: [ {{ step: left, args: {{ why: "{{{{ this.error }}}}" }} }} ]
      - when: "{{{{ event.name == 'call.error' }}}}"
        then:
          next: [ left, right ]
      - when: "{{{{ response.status_code == 201 }}}}"
        then:
          set: {{ made: "{{{{ result.code }}}}" }}
          next: right
      - when: "{{{{ event.name == 'step.exit' and result.code == 202 }}}}"
        then: {{ set: {{ waits: true }} }}
    next: [ left, right ]
  - step: left
    tool: {{ kind: python, args: {{ why: "{{{{ why | default('') }}}}" }}, code: result = why }}
  - step: right
"""


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize(
    ("status", "ctx", "steps"),
    [
        (200, {}, {"left": 1, "right": 1}),
        (201, {"made": 201}, {"right": 1}),
        (202, {"waits": True}, {}),
        (404, {"missing": 404}, {"left": 1}),
        (500, {}, {"left": 1, "right": 1}),
    ],
)
def test_the_first_case_that_matches_decides(
    status: int, ctx: dict[str, Any], steps: dict[str, int], tmp_path: Path, http_server: HttpServer
) -> None:
    run = ran(CASES.format(url=f"{http_server.url}/status/{status}"), tmp_path)
    assert run.status == "completed"
    assert run.steps == {"start": 1, **steps}
    kept = {key: value for key, value in run.ctx.items() if key != "start_status_code"}
    assert kept == ctx


ORDER = """
workflow:
  - step: start
    tool: { kind: python, code: "result = {'n': 5}" }
    vars: { n: "{{ result.n }}" }
    case:
      - when: "{{ event.name == 'call.done' and vars.n == 5 }}"
        then: { set: { first: "{{ result.n + 1 }}" } }
      - when: "{{ event.name == 'step.exit' and vars.first == 6 }}"
        then: { set: { second: "{{ vars.first + 1 }}" }, next: after }
  - step: after
    tool:
      kind: python
      args: { all: "{{ [vars.n, vars.first, vars.second] }}" }
      code: result = all
"""


@pytest.mark.rule("DIA-S2")
def test_variables_come_before_cases_and_calls_before_ends(tmp_path: Path) -> None:
    run = ran(ORDER, tmp_path)
    assert (run.status, run.result) == ("completed", [5, 6, 7])


# ── loops (S2 §6) ──

LOOPED = """
workload: {{ rows: {rows} }}
workflow:
  - step: double
    loop: {{ in: "{{{{ workload.rows }}}}", iterator: row, mode: {mode} }}
    tool:
      kind: python
      args: {{ n: "{{{{ row }}}}", at: "{{{{ loop_index }}}}" }}
      code: result = [at, n * 2]
    vars: {{ many: "{{{{ result | length }}}}" }}
    next: show
  - step: show
    tool: {{ kind: python, args: {{ rows: "{{{{ double }}}}" }}, code: "result = rows" }}
"""


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize("mode", ["sequential", "parallel", "async"])
@pytest.mark.parametrize(
    ("rows", "result"), [("[3, 4]", [[0, 6], [1, 8]]), ("[]", [])], ids=["two", "none"]
)
def test_a_loop_is_bound_when_all_iterations_have_ended(
    mode: str, rows: str, result: list[Any], tmp_path: Path
) -> None:
    run = ran(LOOPED.format(mode=mode, rows=rows), tmp_path)
    assert (run.status, run.result) == ("completed", result)
    assert run.ctx == {"many": len(result), "double": result}


CALLED = """
workload: {{ rows: [3, 1, 2] }}
workflow:
  - step: start
    loop: {{ in: "{{{{ workload.rows }}}}", iterator: row, mode: {mode} }}
    tool: {{ kind: python, args: {{ n: "{{{{ row }}}}" }}, code: "result = 6 // (n - {bad})" }}
    case:
      - when: "{{{{ event.name == 'call.done' and result > 2 }}}}"
        then: {{ set: {{ last: "{{{{ result }}}}" }} }}
      - when: "{{{{ event.name == 'call.error' }}}}"
        then: {{ set: {{ failed: true }}, next: end }}
      - when: "{{{{ event.name == 'step.exit' }}}}"
        then: {{ set: {{ all: "{{{{ result }}}}" }}, next: end }}
  - step: end
"""


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize("mode", ["sequential", "async"])
@pytest.mark.parametrize(
    ("bad", "ctx"), [(0, {"last": 3, "all": [2, 6, 3]}), (3, {"failed": True})]
)
def test_a_call_writes_with_each_iteration_and_the_end_once(
    mode: str, bad: int, ctx: dict[str, Any], tmp_path: Path
) -> None:
    run = ran(CALLED.format(mode=mode, bad=bad), tmp_path)
    assert (run.status, run.steps) == ("completed", {"start": 1, "end": 1})
    assert run.ctx == ctx


# ── sinks (S2 §10) ──

SAVED = """
keychain:
  - {{ name: pg, kind: postgres, {fields} }}
workflow:
  - step: start
    loop: {{ in: [1, 2, 3], iterator: n, mode: async }}
    tool:
      kind: python
      args: {{ n: "{{{{ n }}}}" }}
      code: "result = {{'n': n, 'word': 'x' * n}}"
    sink:
      tool: {{ kind: postgres, auth: pg }}
      table: kept
      args:
        n: "{{{{ result.n }}}}"
        word: "{{{{ this.data.word }}}}"
        status: "{{{{ this.status }}}}"
      when: "{{{{ result.n != 2 }}}}"
    next: all
  - step: all
    tool: {{ kind: python, code: "result = [{{'n': 7, 'word': 'seven'}}, {{'n': 8}}]" }}
    sink: {{ tool: {{ kind: postgres, auth: pg }}, table: kept }}
"""


@pytest.mark.rule("DIA-S2")
def test_a_sink_saves_what_its_condition_lets_pass(tmp_path: Path, database: Database) -> None:
    rows_in(database, "CREATE TABLE kept (n int, word text, status text)")
    fields = ", ".join(
        f"{key}: {json.dumps(value)}" for key, value in database.credential.items() if key != "kind"
    )
    run = ran(SAVED.format(fields=fields), tmp_path)
    assert run.status == "completed", run.error
    assert run.result == [{"n": 7, "word": "seven"}, {"n": 8}]
    assert rows_in(database, "SELECT * FROM kept ORDER BY n") == [
        (1, "x", "success"),
        (3, "xxx", "success"),
        (7, "seven", None),
        (8, None, None),
    ]


FILED = """
workflow:
  - step: start
    tool: {{ kind: python, code: "result = {{'n': 1, 'word': 'one'}}" }}
    case:
      - when: "{{{{ event.name == 'call.done' and result.n == 0 }}}}"
        then:
          sink: {{ tool: {{ kind: duckdb, database: "{file}" }}, table: kept, args: {{ n: 0 }} }}
      - when: "{{{{ event.name == 'call.done' and result.n == 1 }}}}"
        then:
          sink:
            - {{ tool: {{ kind: duckdb, database: "{file}" }}, table: kept }}
            - tool: {{ kind: duckdb, database: "{file}" }}
              table: kept
              args: {{ n: "{{{{ result.n + 1 }}}}", word: again }}
    sink:
      tool: {{ kind: http, url: "{url}" }}
      args: {{ row: "{{{{ result }}}}" }}
"""


@pytest.mark.rule("DIA-S2")
def test_sinks_of_cases_come_before_that_of_the_step(
    tmp_path: Path, http_server: HttpServer
) -> None:
    file = tmp_path / "kept.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE kept (n int, word text)")
    run = ran(FILED.format(file=file, url=f"{http_server.url}/echo"), tmp_path)
    assert run.status == "completed", run.error
    assert run.result == {"n": 1, "word": "one"}
    with duckdb.connect(str(file)) as kept:
        assert kept.execute("SELECT * FROM kept").fetchall() == [(1, "one"), (2, "again")]
    [sent] = http_server.seen
    assert (sent.method, json.loads(sent.body)) == ("POST", {"row": {"n": 1, "word": "one"}})


CHOSEN = """
workflow:
  - step: start
    tool: {{ kind: python, code: "result = {{'n': {n}}}" }}
    case:
      - when: "{{{{ event.name == 'call.done' and result.n == 1 }}}}"
        then:
          sink: {{ tool: {{ kind: http, url: "{url}/status/201" }}, args: {{ n: 1 }} }}
      - when: "{{{{ event.name == 'call.done' and result.n == 2 }}}}"
        then: {{ set: {{ two: true }} }}
      - when: "{{{{ event.name == 'call.done' and result.n > 2 }}}}"
        then:
          sink:
            tool: {{ kind: http, url: "{url}/status/202" }}
            args: {{ n: 3 }}
            when: "{{{{ result.n == 3 }}}}"
    sink: {{ tool: {{ kind: http, url: "{url}/status/200" }} }}
"""


@pytest.mark.rule("DIA-S2")
@pytest.mark.parametrize(
    ("n", "saved", "ctx"),
    [
        (1, ["/status/201", "/status/200"], {}),
        (2, ["/status/200"], {"two": True}),
        (3, ["/status/202", "/status/200"], {}),
        (4, ["/status/200"], {}),
        (0, ["/status/200"], {}),
    ],
)
def test_a_case_saves_by_its_own_sink_alone(
    n: int, saved: list[str], ctx: dict[str, Any], tmp_path: Path, http_server: HttpServer
) -> None:
    run = ran(CHOSEN.format(n=n, url=http_server.url), tmp_path)
    assert (run.status, run.ctx, run.result) == ("completed", ctx, {"n": n})
    assert [seen.path for seen in http_server.seen] == saved


FAILED = """
workflow:
  - step: start
    tool: {{ kind: http, url: "{url}/status/410" }}
    retry: {{ max_attempts: 2 }}
    case:
      - when: "{{{{ event.name == 'call.error' }}}}"
        then:
          sink:
            tool: {{ kind: http, url: "{url}/echo" }}
            args: {{ code: "{{{{ response.status_code }}}}", error: "{{{{ this.error }}}}" }}
          next: [ {{ step: after, args: {{ why: "{{{{ response.error }}}}" }} }} ]
  - step: after
    tool: {{ kind: python, args: {{ why: "{{{{ why }}}}" }}, code: result = why }}
"""


@pytest.mark.rule("DIA-S2")
def test_a_sink_after_a_failure_saves_it_and_the_step_fails(
    tmp_path: Path, http_server: HttpServer
) -> None:
    run = ran(FAILED.format(url=http_server.url), tmp_path)
    assert (run.status, run.steps) == ("completed", {"start": 1, "after": 1})
    assert Counter(seen.path for seen in http_server.seen) == {"/status/410": 2, "/echo": 1}
    told = json.loads(http_server.seen[-1].body)
    assert told["code"] == 410
    assert "was answered with 410" in told["error"]
    assert run.result == told["error"]


LENT = """
workbook:
  - name: ask
    tool: {{ kind: http, url: "{url}/echo", params: {{ q: "{{{{ q }}}}" }} }}
    sink:
      tool: {{ kind: http, method: PUT, url: "{url}/status/200" }}
      args: {{ asked: "{{{{ q }}}}", got: "{{{{ result.query }}}}" }}
workflow:
  - step: start
    tool: {{ kind: workbook, name: ask, args: {{ q: weather }} }}
    next: after
  - step: after
    tool: {{ kind: python, args: {{ got: "{{{{ start.query }}}}" }}, code: result = got }}
"""


@pytest.mark.rule("DIA-S2")
def test_a_task_of_the_workbook_brings_its_sink(tmp_path: Path, http_server: HttpServer) -> None:
    run = ran(LENT.format(url=http_server.url), tmp_path)
    assert (run.status, run.result) == ("completed", [["q", "weather"]])
    put = http_server.seen[-1]
    assert (put.method, put.path) == ("PUT", "/status/200")
    assert json.loads(put.body) == {"asked": "weather", "got": [["q", "weather"]]}


# ── args (S2 §3.4) ──

BOUND = """
workload: { city: Oslo }
workflow:
  - step: start
    args: { place: "{{ workload.city }}", n: 2 }
    tool:
      kind: python
      args: { shown: "{{ args.place }} {{ n }}" }
      code: result = [shown, place, n]
    case:
      - when: "{{ event.name == 'step.exit' and args.n == 2 }}"
        then:
          next: { step: after, args: { from: "{{ place }}" } }
  - step: after
    tool:
      kind: python
      args: { got: "{{ start }}", of: "{{ args['from'] }}" }
      code: result = got + [of]
"""


@pytest.mark.rule("DIA-S2")
def test_args_of_a_step_reach_its_task_its_templates_and_its_arcs(tmp_path: Path) -> None:
    run = ran(BOUND, tmp_path)
    assert run.status == "completed", run.error
    assert run.result == ["Oslo 2", "Oslo", 2, "Oslo"]
