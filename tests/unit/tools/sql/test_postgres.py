"""The postgres tool against a real PostgreSQL."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import psycopg
import pytest
from tests.support.postgres import Database
from tests.support.turns import most_between_turns
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.sql import PostgresInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.sql import rows
from noetl.tools.sql.postgres import PostgresTool, failure_of

Ask = Callable[..., Awaitable[Outcome]]


def place_of(database: Database) -> BenchPlace:
    return BenchPlace(db=database.credential)


def run(database: Database, *commands: str, params: Any = (), **more: Any) -> Outcome:
    """The outcome of the last of several calls, the parameters going to the last."""

    async def calls() -> Outcome:
        tool, place = PostgresTool(), more.pop("place", None) or place_of(database)
        try:
            for command in commands[:-1]:
                outcome = await tool.call(
                    call_of(PostgresInputs(command=command, auth="db")), place
                )
                assert outcome.status == "ok", outcome.error
            inputs = PostgresInputs(command=commands[-1], params=params or [], auth="db")
            return await tool.call(call_of(inputs, **more), place)
        finally:
            await tool.close()

    return asyncio.run(calls())


def error_of(outcome: Outcome) -> tuple[str, bool, str | None]:
    assert outcome.error is not None, outcome
    assert outcome.block is not None
    return outcome.error["kind"], outcome.error["retryable"], outcome.block["code"]


def message_of(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return str(outcome.error["message"])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1", 1),
        ("9223372036854775807::int8", 9223372036854775807),
        ("1.50::numeric", 1.5),
        ("12345678901234567890.12345::numeric", "12345678901234567890.12345"),
        ("'NaN'::numeric", "NaN"),
        ("'Infinity'::float8", "Infinity"),
        ("1.25::float4", 1.25),
        ("true", True),
        ("null", None),
        ("'é\"'", 'é"'),
        ("'2026-01-02 03:04:05.678'::timestamp", "2026-01-02T03:04:05.678000"),
        ("'2026-01-02 03:04:05+00'::timestamptz at time zone 'UTC'", "2026-01-02T03:04:05"),
        ("'2026-01-02'::date", "2026-01-02"),
        ("'infinity'::date", "infinity"),
        ("'0044-03-15 BC'::date", "0044-03-15 BC"),
        ("'03:04'::time", "03:04:00"),
        ("'1 day 02:00'::interval", "1 day 02:00:00"),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        (r"'\x00ff'::bytea", "AP8="),
        ("'{\"a\": [1, null]}'::jsonb", {"a": [1, None]}),
        ("'[1]'::json", [1]),
        ("'[1e400]'::json", "[1e400]"),
        ("'null'::jsonb", None),
        ("array[1, null, 3]", [1, None, 3]),
        ("array[1.5::numeric, 2]", [1.5, 2]),
        ("'{{a,b},{c,d}}'::text[]", [["a", "b"], ["c", "d"]]),
        ("'10.0.0.1/8'::inet", "10.0.0.1/8"),
        ("int4range(1, 5)", "[1,5)"),
        ("row(1, 'a')", "(1,a)"),
    ],
)
def test_values_come_as_json_can_hold_them(database: Database, expression: str, value: Any) -> None:
    outcome = run(database, f"select {expression} as v")

    assert outcome.result == [{"v": value}], outcome.error
    assert msgspec.json.decode(msgspec.json.encode(outcome.result)) == outcome.result


@pytest.mark.parametrize(
    ("command", "params", "result"),
    [
        ("select %s::int + 1 as v", [41], [{"v": 42}]),
        ("select %(a)s::text as v, %(a)s::text as w", {"a": "x"}, [{"v": "x", "w": "x"}]),
        ("select %s::text as v", ["'; drop table t; --"], [{"v": "'; drop table t; --"}]),
        ("select %s::text as v", [None], [{"v": None}]),
        ("select %s::jsonb as v", [{"a": [1]}], [{"v": {"a": [1]}}]),
        ("select %s::json as v", [[{"a": 1}]], [{"v": [{"a": 1}]}]),
        ("select %s :: jsonb as v, %s::int[] as w", [[], []], [{"v": [], "w": []}]),
        (
            "select %(a)s::jsonb as v, 3 = any(%(b)s) as w",
            {"a": [1], "b": [3]},
            [{"v": [1], "w": True}],
        ),
        ("select x.a as v from json_to_recordset(%s) as x(a int)", [[{"a": 1}]], [{"v": 1}]),
        ("select x.a as v from jsonb_to_recordset( %(r)s) as x(a int)", {"r": []}, []),
        ("select 5 %% 3 as v, %s::jsonb as w", [[1]], [{"v": 2, "w": [1]}]),
        ("select 2 = any(%s) as v", [[1, 2]], [{"v": True}]),
        ("select '100%' as v", [], [{"v": "100%"}]),
        ("select '%s' like '%' as v", {}, [{"v": True}]),
        ("select 10 %% 3 as v, %s::int as w", [1], [{"v": 1, "w": 1}]),
        ("select 1; select %s::text as v", ["a;'b"], [{"v": "a;'b"}]),
        ("select %(a)s::text; select %(b)s::jsonb as v", {"a": 1, "b": [{}]}, [{"v": [{}]}]),
    ],
)
def test_parameters_are_bound(database: Database, command: str, params: Any, result: Any) -> None:
    outcome = run(database, command, params=params)

    assert outcome.result == result, outcome.error


@pytest.mark.parametrize(
    ("command", "result", "rowcount"),
    [
        ("insert into t values (1), (2)", {"rowcount": 2}, 2),
        ("insert into t values (3) returning a", [{"a": 3}], 1),
        ("update t set a = 1", {"rowcount": 1}, 1),
        ("create table u (a int)", {"rowcount": 0}, 0),
        ("select * from t where a > 99", [], 0),
        ("select a as id, a as id from t", [{"id": 0, "id_2": 0}], 1),
        ("with n as (insert into t values (1) returning a) select a from n", [{"a": 1}], 1),
        ("with n as (select 5 as a) insert into t select a from n", {"rowcount": 1}, 1),
        ("select 7 as b into u", {"rowcount": 1}, 1),
        ("insert into t values (1); select a from t order by a", [{"a": 0}, {"a": 1}], 2),
        ("select 1; update t set a = 2", {"rowcount": 1}, 1),
        ("begin; insert into t values (1); commit", {"rowcount": 0}, 0),
        ("do $$ begin perform 1; end $$", {"rowcount": 0}, 0),
        ("show server_encoding", [{"server_encoding": "UTF8"}], 1),
    ],
)
def test_the_last_statement_gives_the_result(
    database: Database, command: str, result: Any, rowcount: int
) -> None:
    outcome = run(database, "create table t (a int); insert into t values (0)", command)

    assert outcome.result == result, outcome.error
    assert outcome.block == {
        "code": None,
        "place": None,
        "sqlstate": None,
        "message": None,
        "rowcount": rowcount,
    }


def test_query_is_another_name_for_command(database: Database) -> None:
    async def calls() -> Outcome:
        tool = PostgresTool()
        call = call_of(PostgresInputs(query="select 1 as v", auth="db"))
        outcome = await tool.call(call, place_of(database))
        await tool.close()
        return outcome

    assert asyncio.run(calls()).result == [{"v": 1}]


def test_a_failing_statement_takes_the_others_back(database: Database) -> None:
    outcome = run(database, "create table t (a int)", "insert into t values (1); select 1/0")

    assert error_of(outcome) == ("postgres", False, "22012")
    assert run(database, "select count(*) as n from t").result == [{"n": 0}]


def test_what_was_answered_is_committed(database: Database) -> None:
    run(database, "create table t (a int)", "insert into t values (1)")

    with psycopg.connect(database.url) as other:
        assert other.execute("select a from t").fetchall() == [(1,)]


@pytest.mark.parametrize("command", ["begin; insert into t values (1)", "begin"])
def test_a_transaction_left_open_is_refused_and_undone(database: Database, command: str) -> None:
    outcome = run(database, "create table t (a int)", command)

    assert error_of(outcome) == ("input", False, None)
    assert "leaves a transaction open" in message_of(outcome)
    assert run(database, "select * from t").result == []


@pytest.mark.parametrize(
    ("command", "params", "kind", "retryable", "code"),
    [
        ("select * from missing", [], "postgres", False, "42P01"),
        ("selec 1", [], "postgres", False, "42601"),
        ("select 1/0", [], "postgres", False, "22012"),
        ("insert into t values (1), (1)", [], "postgres", False, "23505"),
        ("do $$ begin raise sqlstate '40001'; end $$", [], "postgres", True, "40001"),
        ("do $$ begin raise sqlstate '40P01'; end $$", [], "postgres", True, "40P01"),
        ("do $$ begin raise sqlstate '53300'; end $$", [], "postgres", True, "53300"),
        ("do $$ begin raise sqlstate '55P03'; end $$", [], "postgres", True, "55P03"),
        ("do $$ begin raise sqlstate '57P03'; end $$", [], "postgres", True, "57P03"),
        ("do $$ begin raise sqlstate '08006'; end $$", [], "connection", True, "08006"),
        ("do $$ begin raise sqlstate '28000'; end $$", [], "auth", False, "28000"),
        ("set statement_timeout = 1; select pg_sleep(9)", [], "timeout", True, "57014"),
        ("select pg_terminate_backend(pg_backend_pid())", [], "postgres", True, "57P01"),
        ("select %s, %s", [1], "input", False, None),
        ("select %(a)s", {"b": 1}, "input", False, None),
        ("select %s::text", ["a\0b"], "input", False, None),
        ("select %s::text", ["lone \ud800"], "input", False, None),
        ("select %s::jsonb", [[object()]], "input", False, None),
        ("select $1", [], "input", False, "08P01"),
        ("copy t from stdin", [], "input", False, None),
        ("select 1; copy t to stdout", [], "input", False, None),
        ("", [], "input", False, None),
        ("-- nothing", [], "input", False, None),
    ],
)
def test_errors_have_a_kind_and_a_state(
    database: Database, command: str, params: Any, kind: str, retryable: bool, code: str | None
) -> None:
    outcome = run(database, "create table t (a int primary key)", command, params=params)

    assert error_of(outcome) == (kind, retryable, code)


def test_an_error_says_what_and_where(database: Database) -> None:
    outcome = run(database, "select nam from (select 1 as name) t")

    assert message_of(outcome) == (
        'PostgreSQL says 42703: column "nam" does not exist (at character 8); '
        'Perhaps you meant to reference the column "t.name".'
    )
    assert outcome.block is not None
    assert outcome.block["message"] == 'column "nam" does not exist'


@pytest.mark.parametrize(
    ("changed", "kind", "retryable"),
    [
        ({"password": "wrong"}, "auth", False),
        ({"user": "nobody-known"}, "auth", False),
        ({"database": "missing"}, "postgres", False),
        ({"host": "nowhere.invalid"}, "connection", True),
        ({"sslmode": "require"}, "connection", False),
        ({"sslmode": "verify-full"}, "connection", False),
    ],
)
def test_a_connection_that_fails_says_why(
    database: Database, changed: dict[str, Any], kind: str, retryable: bool
) -> None:
    place = BenchPlace(db={**database.credential, **changed})

    outcome = run(database, "select 1", place=place)

    assert error_of(outcome)[:2] == (kind, retryable)
    assert "loopback-only" not in message_of(outcome)


def test_nobody_listens(database: Database) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = BenchPlace(db={**database.credential, "port": probe.getsockname()[1]})

        outcome = run(database, "select 1", place=place)

    assert error_of(outcome) == ("connection", True, None)


@pytest.mark.parametrize(
    ("auth", "kind", "says"),
    [
        (None, "input", "needs 'auth', the name of a credential, or a credential named 'postgres'"),
        ("missing", "auth", "no credential 'missing'"),
        ("empty", "auth", "names no database"),
    ],
)
def test_a_credential_is_needed(auth: str | None, kind: str, says: str) -> None:
    async def calls() -> Outcome:
        call = call_of(PostgresInputs(command="select 1", auth=auth))
        return await PostgresTool().call(call, BenchPlace(empty={"kind": "postgres"}))

    outcome = asyncio.run(calls())

    assert error_of(outcome) == (kind, False, None)
    assert says in message_of(outcome)


def test_a_credential_may_be_one_text(database: Database) -> None:
    place = BenchPlace(db={"kind": "postgres_credential", "dsn": database.url})

    assert run(database, "select 1 as v", place=place).result == [{"v": 1}]


def sleepers(database: Database) -> int:
    with psycopg.connect(database.url) as other:
        found = other.execute(
            "select count(*) from pg_stat_activity "
            "where query like %s and state = 'active' and pid <> pg_backend_pid()",
            ["%pg_sleep%"],
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_a_timeout_stops_the_statement_on_the_server(database: Database) -> None:
    outcome = run(database, "select pg_sleep(600)", timeout=Timeout(total=0.1))

    assert error_of(outcome) == ("timeout", True, None)
    assert "total timeout of 0.1 s" in message_of(outcome)
    assert sleepers(database) == 0


@pytest.mark.parametrize("command", ["select pg_sleep(600)", "select 1; select pg_sleep(600)"])
def test_cancelling_stops_the_statement_on_the_server(database: Database, command: str) -> None:
    async def calls() -> None:
        tool, place = PostgresTool(), place_of(database)
        call = call_of(PostgresInputs(command=command, auth="db"))
        running = asyncio.create_task(tool.call(call, place))
        async with asyncio.timeout(600):
            while not await asyncio.to_thread(sleepers, database):
                pass
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(sleepers, database) == 0
        again = await tool.call(call_of(PostgresInputs(command="select 1 as v", auth="db")), place)
        assert again.result == [{"v": 1}]
        await tool.close()

    asyncio.run(calls())


def test_large_results_go_into_the_store_row_by_row(database: Database) -> None:
    place = place_of(database)

    outcome = run(
        database,
        "select n, repeat('x', 100) as pad from generate_series(1, 5000) n",
        place=place,
        max_inline=100_000,
    )

    assert isinstance(outcome.result, Reference), outcome.error
    rows = place.results.value(outcome.result)
    assert [row["n"] for row in rows] == list(range(1, 5001))
    assert {row["pad"] for row in rows} == {"x" * 100}
    assert outcome.block is not None
    assert outcome.block["rowcount"] == 5000
    assert place.results.largest_piece < 150_000
    assert place.results.unfinished == 0


def test_rows_that_come_at_once_leave_others_their_turns(database: Database) -> None:
    """What a statement gives back is all there when it ends; leases are renewed meanwhile."""
    place = place_of(database)

    async def run() -> tuple[Outcome, int]:
        tool = PostgresTool()
        command = (
            "create temp table t (a int, b text); "
            "insert into t select g, repeat('x', 500) from generate_series(1, 20000) g returning *"
        )
        asking = tool.call(call_of(PostgresInputs(command=command, auth="db")), place)
        try:
            return await most_between_turns(asking, lambda: place.results.taken)
        finally:
            await tool.close()

    outcome, most = asyncio.run(run())
    assert outcome.status == "ok", outcome.error
    assert place.results.taken > 10_000_000
    assert 0 < most < place.results.taken / 4


@pytest.mark.parametrize(
    "value",
    [
        "repeat('x', 70000)",
        "decode(repeat('ab', 60000), 'hex')",
        "(select json_agg(g) from generate_series(1, 20000) g)",
    ],
    ids=["text", "bytes", "json"],
)
def test_a_row_that_is_too_large_is_refused(
    database: Database, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LARGEST_ROW", 60_000)
    place = place_of(database)
    outcome = run(database, f"select 1 as a union all select 2; select {value} as v", place=place)
    assert outcome.error is not None
    assert outcome.error["kind"] == "limit"
    assert "row 1 has more than 60,000 bytes" in message_of(outcome)
    assert (place.results.kept, place.results.unfinished) == ({}, 0)


def test_a_large_result_that_fails_leaves_nothing(database: Database) -> None:
    place = place_of(database)

    outcome = run(
        database,
        "select 1 / (5000 - n) from generate_series(1, 9000) n",
        place=place,
        max_inline=1000,
    )

    assert error_of(outcome) == ("postgres", False, "22012")
    assert (place.results.kept, place.results.unfinished) == ({}, 0)


def test_connections_are_kept_and_never_more_than_the_pool(database: Database) -> None:
    async def calls() -> tuple[set[int], int]:
        tool, place = PostgresTool(), place_of(database)
        inputs = PostgresInputs(command="select pg_backend_pid() as pid", auth="db")
        outcomes = await asyncio.gather(
            *(tool.call(call_of(inputs, pool=3), place) for _ in range(60))
        )
        pids = {outcome.result[0]["pid"] for outcome in outcomes}
        later = await tool.call(call_of(inputs, pool=3), place)
        await tool.close()
        return pids, later.result[0]["pid"]

    pids, later = asyncio.run(calls())

    assert 1 <= len(pids) <= 3
    assert later in pids


@pytest.mark.parametrize(
    "command",
    ["set search_path to pg_catalog", "create temp table left_over (a int)", "listen news"],
)
def test_one_call_leaves_nothing_to_the_next(database: Database, command: str) -> None:
    outcome = run(
        database,
        command,
        "select current_setting('search_path') as path, to_regclass('left_over') is null as clean, "
        "(select count(*) from pg_listening_channels()) as channels",
    )

    assert outcome.result == [{"path": '"$user", public', "clean": True, "channels": 0}]


def test_a_connection_that_the_server_closed_is_not_used_again(database: Database) -> None:
    async def calls() -> Outcome:
        tool, place = PostgresTool(), place_of(database)
        call = call_of(PostgresInputs(command="select 1 as v", auth="db"))
        await tool.call(call, place)
        with psycopg.connect(database.url, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )
        outcome = await tool.call(call, place)
        await tool.close()
        return outcome

    assert asyncio.run(calls()).result == [{"v": 1}]


def test_a_percent_sign_beside_params_says_how_it_is_written() -> None:
    said = "only '%s', '%b', '%t' are allowed as placeholders, got '%d'"
    error = failure_of(psycopg.ProgrammingError(said)).error
    assert error is not None
    assert error["message"].endswith("; beside params a percent sign is written %%")


def test_half_a_secret_is_in_no_place_of_a_fault() -> None:
    """The driver shows a window of a long line, which may begin or end within one."""
    secret = "qwjkzmxptrvnldshfgbcyaeuio-QWJKZMXPTRVNLDSHFGBCYAEUIO"
    KNOWN.add(secret)
    command = f"select 1 form t where key = '{secret}'"
    for line in (f"LINE 1: {command[:50]}...", f"LINE 1: ...{command[40:]}"):
        fault = psycopg.errors.SyntaxError(f'syntax error at or near "form"\n{line}\n    ^')
        assert "QWJ" not in str(failure_of(fault, command)).upper()
    fault = psycopg.errors.SyntaxError("syntax error\nLINE 1: ...t 1 form\n    ^")
    assert "...t 1 form" in str(failure_of(fault, "select 1, 1 form"))


def test_the_place_of_a_fault_is_told_with_its_line() -> None:
    said = 'syntax error at or near "form"\nLINE 1: select 1 form\n                 ^'
    outcome = failure_of(psycopg.errors.SyntaxError(said))
    assert outcome.block is not None
    assert outcome.block["place"] == "LINE 1: select 1 form\n                 ^"
