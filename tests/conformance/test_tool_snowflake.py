"""What the rules say about the kind `snowflake`, shown on a server that speaks its protocol."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from tests.support.snowflake import SnowPlace
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.sql import SnowflakeInputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.sql.snowflake import SnowflakeTool, failure_of


class Moving(BaseHTTPRequestHandler):
    """A server that lets anybody in, and answers every statement with files to move."""

    protocol_version = "HTTP/1.1"
    moves: ClassVar[dict[str, Any]] = {}

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        login = {"token": "t", "masterToken": "m", "parameters": [], "sessionInfo": {}}
        asks = self.path.startswith("/queries")
        answered = type(self).moves if asks else login
        answer = {"success": True, "code": None, "message": None, "data": answered}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def moving(command: str, source: str, target: Path) -> Iterator[int]:
    """Its port; files go to and come from the folder `target`, as on a stage of that kind."""
    stage = {"locationType": "LOCAL_FS", "location": str(target), "creds": {}, "path": ""}
    Moving.moves = {
        "command": command,
        "src_locations": [source],
        "localLocation": str(target),
        "stageInfo": stage,
        "sourceCompression": "none",
        "autoCompress": False,
        "overwrite": True,
        "parallel": 1,
        "queryId": "q",
        "encryptionMaterial": [],
    }
    with ThreadingHTTPServer(("127.0.0.1", 0), Moving) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


class Snow:
    """A database of its own; `ask` is one call."""

    def __init__(self, credential: dict[str, Any], **others: dict[str, Any]) -> None:
        self.place = BenchPlace(db=credential, **others)
        self._runner = asyncio.Runner()
        self._tool = SnowflakeTool()

    def ask(self, command: str, auth: str | None = "db", **named: Any) -> Outcome:
        more = {name: named.pop(name) for name in ("max_inline", "timeout") if name in named}
        inputs = SnowflakeInputs(command=command, auth=auth, **named)
        return self._runner.run(self._tool.call(call_of(inputs, **more), self.place))

    def close(self) -> None:
        self._runner.run(self._tool.close())
        self._runner.close()


@pytest.fixture
def snow(snow_server: SnowPlace, silent_port: int) -> Iterator[Snow]:
    credential = snow_server.credential
    snow = Snow(
        credential,
        refused={**credential, "port": 1},
        silent={**credential, "port": silent_port},
        other={"kind": "basic", "user": "x", "password": "y"},
        badkey={**credential, "private_key": "no PEM"},
    )
    yield snow
    snow.close()


def error_of(outcome: Outcome) -> tuple[str, bool]:
    assert outcome.error is not None, outcome
    return outcome.error["kind"], outcome.error["retryable"]


def message_of(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return str(outcome.error["message"])


@pytest.mark.rule("OUT-3")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1", 1),
        ("1.50::number(9, 2)", 1.5),
        ("1.5::float", 1.5),
        ("'é'", "é"),
        ("null", None),
        ("true", True),
        ("to_date('2026-01-02')", "2026-01-02"),
        ("to_timestamp_ntz('2026-01-02 03:04:05')", "2026-01-02T03:04:05"),
        ("parse_json('{\"a\": [1, null]}')", {"a": [1, None]}),
        ("to_binary('00ff', 'hex')", "AP8="),
    ],
)
def test_values_come_as_json_can_hold_them(snow: Snow, expression: str, value: Any) -> None:
    outcome = snow.ask(f"select {expression} as v")

    assert outcome.result == [{"V": value}], outcome.error


@pytest.mark.rule("OUT-2", "OUT-3")
def test_rows_and_counts(snow: Snow) -> None:
    made = snow.ask("create table t (a int, b varchar)")
    filled = snow.ask("insert into t values (1, 'x'), (2, null)")
    read = snow.ask('select a, a, b as "low" from t order by 1')

    assert made.result == {"rowcount": 0}
    assert filled.result == {"rowcount": 2}
    assert read.result == [{"A": 1, "A_2": 1, "low": "x"}, {"A": 2, "A_2": 2, "low": None}]
    assert read.block is not None
    assert read.block["query_id"]
    assert read.block == {**read.block, "code": None, "sqlstate": None, "rowcount": 2}


@pytest.mark.rule("OUT-3")
def test_of_several_statements_the_last_counts(snow: Snow) -> None:
    outcome = snow.ask(
        "create table t (a int); insert into t values (%(a)s); -- done\nselect a from t;",
        params={"a": 7},
    )

    assert outcome.result == [{"A": 7}], outcome.error


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize(
    ("command", "params"),
    [
        ("select %s as v, %s as w", ["a'b", 2]),
        ("select %(v)s as v, %(w)s as w", {"v": "a'b", "w": 2}),
        ("select 'a''b' as v, 2 as w where 'a%' like '%'", []),
    ],
)
def test_parameters_go_by_position_or_by_name(snow: Snow, command: str, params: Any) -> None:
    assert snow.ask(command, params=params).result == [{"V": "a'b", "W": 2}]


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize("kept", ["inline", "stored"])
def test_rows_fill_the_statement_in_batches(snow: Snow, kept: str) -> None:
    import msgspec

    rows: Any = [{"a": n, "b": f"row '{n}'"} for n in range(2100)]
    if kept == "stored":
        rows = snow.place.results.stored("e1", msgspec.json.encode(rows))
    snow.ask("create table t (a int, b varchar)")

    outcome = snow.ask("insert into t (a, b) values (%(a)s, %(b)s)", rows=rows)

    assert outcome.result == {"rowcount": 2100}, outcome.error
    read = snow.ask("select count(*) as n, sum(a) as s, max(b) as b from t").result
    assert read == [{"N": 2100, "S": 2203950, "B": "row '999'"}]


@pytest.mark.rule("TOOL-0")
def test_rows_are_loaded_all_or_none(snow: Snow) -> None:
    snow.ask("create table t (a int)")
    rows: list[Any] = [[n] for n in range(1500)]

    outcome = snow.ask("insert into t (a) values (%s)", rows=[*rows, "no row"])

    assert error_of(outcome) == ("input", False)
    assert "a row is 'no row'" in message_of(outcome)
    assert snow.ask("select count(*) as n from t").result == [{"N": 0}]


@pytest.mark.rule("RES-1")
def test_a_large_result_is_a_reference(snow: Snow) -> None:
    snow.ask("create table t (a int)")
    snow.ask("insert into t (a) values (%s)", rows=[[n] for n in range(1200)])

    outcome = snow.ask("select a from t order by a", max_inline=1000)

    assert isinstance(outcome.result, Reference), outcome.error
    assert snow.place.results.value(outcome.result) == [{"A": n} for n in range(1200)]


@pytest.mark.rule("OUT-2", "OUT-4")
@pytest.mark.parametrize(
    ("command", "code", "sqlstate"),
    [("select * from nowhere", "002003", "42S02"), ("selec 1", "001003", "42000")],
)
def test_errors_fill_the_block(snow: Snow, command: str, code: str, sqlstate: str) -> None:
    outcome = snow.ask(command)

    assert error_of(outcome) == ("snowflake", False)
    assert outcome.block is not None
    assert (outcome.block["code"], outcome.block["sqlstate"]) == (code, sqlstate)
    assert outcome.block["message"] in message_of(outcome)
    assert snow.ask("select 1 as v").result == [{"V": 1}]


@pytest.mark.rule("OUT-4", "KEY-1")
@pytest.mark.parametrize(
    ("named", "kind", "says"),
    [
        ({"command": " -- nothing"}, "input", "holds no statement"),
        ({"command": "put file:///etc/hosts @s"}, "input", "PUT and GET move files"),
        ({"command": "select 1", "auth": None}, "input", "needs 'auth'"),
        ({"command": "select 1", "auth": "nobody"}, "auth", "no credential 'nobody'"),
        ({"command": "select 1", "auth": "other"}, "auth", "expected the fields account"),
        ({"command": "select 1", "auth": "badkey"}, "auth", "expected PEM"),
        ({"command": "select 1; select %s", "params": [1]}, "input", "as a mapping, by name"),
        (
            {"command": "select %s", "rows": [[1]], "params": [1]},
            "input",
            "'params' and 'rows' are both set",
        ),
        ({"command": "select 1; select 2", "rows": [[1]]}, "input", "need one statement"),
        ({"command": "select 1", "rows": {"a": 1}}, "input", "expected a list"),
    ],
)
def test_what_cannot_be_done_says_why(
    snow: Snow, named: dict[str, Any], kind: str, says: str
) -> None:
    outcome = snow.ask(**named)

    assert error_of(outcome) == (kind, False)
    assert says in message_of(outcome)


@pytest.mark.rule("OUT-4")
def test_no_connection_may_pass(snow: Snow) -> None:
    outcome = snow.ask("select 1", auth="refused", timeout=Timeout(connect=1))

    assert error_of(outcome) == ("connection", True)
    assert outcome.block is not None
    assert outcome.block["code"] == "250001"


@pytest.mark.rule("TASK-7")
def test_a_silent_peer_times_out(snow: Snow) -> None:
    outcome = snow.ask("select 1", auth="silent", timeout=Timeout(total=0.1))

    assert error_of(outcome) == ("timeout", True)
    assert "total timeout of 0.1 s" in message_of(outcome)


@pytest.mark.rule("TOOL-0")
def test_the_task_says_the_place_over_the_credential(snow: Snow) -> None:
    snow.ask("create schema elsewhere; create table elsewhere.t (a int)")

    assert snow.ask("select count(*) as n from t", schema="elsewhere").result == [{"N": 0}]
    assert error_of(snow.ask("select count(*) as n from t")) == ("snowflake", False)


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    ("number", "state", "message", "kind", "retryable"),
    [
        (390100, "08001", "Incorrect username or password was specified.", "auth", False),
        (250001, "08001", "Failed to connect: Incorrect username or password", "auth", False),
        (250001, "n/a", "Could not connect to Snowflake backend", "connection", True),
        (290503, None, "HTTP 503: Service Unavailable", "connection", True),
        (251006, None, "Password is empty", "auth", False),
        (604, "57014", "SQL execution canceled", "timeout", True),
        (630, "57014", "Statement reached its timeout", "timeout", True),
        (625, "57014", "Statement has locked table", "snowflake", True),
        (100038, "22018", "Numeric value 'x' is not recognized", "snowflake", False),
        (-1, None, "strange", "snowflake", False),
    ],
)
def test_the_number_decides(
    number: int, state: str | None, message: str, kind: str, retryable: bool
) -> None:
    from snowflake.connector import errors  # slow, and every process collects this file

    outcome = failure_of(errors.Error(msg=message, errno=number, sqlstate=state))

    assert error_of(outcome) == (kind, retryable)


@pytest.mark.parametrize("command", ["UPLOAD", "DOWNLOAD"])
def test_no_answer_of_a_server_moves_a_file_of_the_worker(tmp_path: Path, command: str) -> None:
    """The connector does what the answer says; a playbook can name the server."""
    (tmp_path / "private").write_text("of the worker")
    stage = tmp_path / "stage"
    stage.mkdir()
    source = str(tmp_path / "private") if command == "UPLOAD" else "../private"
    with moving(command, source, stage) as port:
        snow = Snow({**SnowPlace(port).credential, "database": None, "schema": None})
        outcome = snow.ask("select 1")
        snow.close()
    assert error_of(outcome) == ("input", False)
    assert "PUT and GET move files of the worker" in message_of(outcome)
    assert list(stage.iterdir()) == []


@pytest.mark.parametrize("word", ["externalbrowser", "WORKLOAD_IDENTITY", "http://okta"])
def test_no_login_uses_what_is_the_worker_s_own(snow_server: SnowPlace, word: str) -> None:
    snow = Snow({**snow_server.credential, "authenticator": word})
    outcome = snow.ask("select 1")
    snow.close()
    assert error_of(outcome) == ("auth", False)
    assert "expected snowflake, oauth, snowflake_jwt" in message_of(outcome)
