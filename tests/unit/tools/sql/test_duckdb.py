"""The duckdb tool against DuckDB itself."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from tests.house.tree import ROOT
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.sql import DuckdbInputs
from noetl.masking import KNOWN
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.children import descendants
from noetl.tools.sql.duck import DuckDbTool

ENDLESS = "select count(*) from range(1000000000000) a, range(1000000) b"


def run(*commands: str, params: Any = (), database: str | None = None, **more: Any) -> Outcome:
    """The outcome of the last of several calls of one step run."""

    async def calls() -> Outcome:
        tool, place = DuckDbTool(), more.pop("place", None) or BenchPlace()
        try:
            for command in commands[:-1]:
                inputs = DuckdbInputs(command=command, database=database)
                outcome = await tool.call(call_of(inputs, **more), place)
                assert outcome.status == "ok", outcome.error
            inputs = DuckdbInputs(command=commands[-1], params=params or [], database=database)
            return await tool.call(call_of(inputs, **more), place)
        finally:
            await tool.close()

    return asyncio.run(calls())


def error_of(outcome: Outcome) -> tuple[str, bool, str | None]:
    assert outcome.error is not None, outcome
    assert outcome.block is not None
    return outcome.error["kind"], outcome.error["retryable"], outcome.block["exception_type"]


def message_of(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    return str(outcome.error["message"])


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1", 1),
        ("170141183460469231731687303715884105727::hugeint", str(2**127 - 1)),
        ("1.50::decimal(9, 2)", 1.5),
        ("'nan'::double", "NaN"),
        ("true", True),
        ("null", None),
        ("'é'", "é"),
        ("timestamp '2026-01-02 03:04:05'", "2026-01-02T03:04:05"),
        ("'2026-01-02 03:04:05.5+00'::timestamptz", "2026-01-02T03:04:05.500000+00:00"),
        ("null::timestamptz", None),
        ("['2026-01-02 03:04:05+00'::timestamptz]", ["2026-01-02 03:04:05+00"]),
        ("interval '1 month 2 days'", "1 month 2 days"),
        ("date '2026-01-02'", "2026-01-02"),
        ("time '03:04:05'", "03:04:05"),
        ("'00000000-0000-0000-0000-000000000001'::uuid", "00000000-0000-0000-0000-000000000001"),
        (r"'\x00\xFF'::blob", "AP8="),
        ("'{\"a\": [1, null]}'::json", {"a": [1, None]}),
        ("null::json", None),
        ("[1, null, 3]", [1, None, 3]),
        ("{'a': {'b': [1.5]}}", {"a": {"b": [1.5]}}),
        ("map {1: 'x'}", {"1": "x"}),
    ],
)
def test_values_come_as_json_can_hold_them(expression: str, value: Any) -> None:
    outcome = run(f"select {expression} as v")

    assert outcome.result == [{"v": value}], outcome.error
    assert msgspec.json.decode(msgspec.json.encode(outcome.result)) == outcome.result


@pytest.mark.parametrize(
    ("command", "params", "result"),
    [
        ("select ?::int + ? as v", [40, 2], [{"v": 42}]),
        ("select $1 || $1 as v", ["a"], [{"v": "aa"}]),
        ("select $a::int + $b as v", {"a": 40, "b": 2}, [{"v": 42}]),
        ("select ? as v", ["'; drop table t; --"], [{"v": "'; drop table t; --"}]),
        ("select $a as a; select $b as v, $a as w", {"a": 1, "b": 2}, [{"v": 2, "w": 1}]),
        ("select ?; select ? as v, ? as w", [1, 2, 3], [{"v": 2, "w": 3}]),
        ("select $t::timestamptz as v", {"t": "2026-01-02"}, [{"v": "2026-01-02T00:00:00+00:00"}]),
        ("select '100%' as v", [], [{"v": "100%"}]),
    ],
)
def test_parameters_are_bound(command: str, params: Any, result: Any) -> None:
    outcome = run("set timezone = 'UTC'", command, params=params)

    assert outcome.result == result, outcome.error


@pytest.mark.parametrize(
    ("command", "result", "rowcount"),
    [
        ("insert into t values (1), (2)", {"rowcount": 2}, 2),
        ("insert into t values (3) returning a", [{"a": 3}], 1),
        ("update t set a = 1", {"rowcount": 1}, 1),
        ("delete from t where a > 9", {"rowcount": 0}, 0),
        ("create table u (a int)", {"rowcount": 0}, 0),
        ("begin", {"rowcount": 0}, 0),
        ("set threads = 1", {"rowcount": 0}, 0),
        ("select * from t where a > 99", [], 0),
        ("select a as id, a as id from t", [{"id": 0, "id_2": 0}], 1),
        ("select a as Count from t", [{"Count": 0}], 1),
        (
            "select now() is null as id, a as id, interval 1 hour as i from t -- end",
            [{"id": False, "id_2": 0, "i": "01:00:00"}],
            1,
        ),
        ("insert into t values (1); select a from t order by a;", [{"a": 0}, {"a": 1}], 2),
        ("select 1; update t set a = 2", {"rowcount": 1}, 1),
        ("from t", [{"a": 0}], 1),
    ],
)
def test_the_last_statement_gives_the_result(command: str, result: Any, rowcount: int) -> None:
    outcome = run("create table t (a int); insert into t values (0)", command)

    assert outcome.result == result, outcome.error
    assert outcome.block == {"exception_type": None, "message": None, "rowcount": rowcount}


@pytest.mark.parametrize(
    ("command", "params", "kind", "exception"),
    [
        ("selec 1", [], "duckdb", "ParserException"),
        ("select * from missing", [], "duckdb", "CatalogException"),
        ("select 'a'::int", [], "duckdb", "ConversionException"),
        ("select missing from t", [], "duckdb", "BinderException"),
        ("insert into t values (1), (1)", [], "duckdb", "ConstraintException"),
        ("select ?", [], "duckdb", "InvalidInputException"),
        ("select 1", [1], "duckdb", "BinderException"),
        ("select 1; select ?", [1, 2], "input", None),
        ("", [], "input", None),
        ("-- nothing", [], "input", None),
    ],
)
def test_errors_have_a_kind(command: str, params: Any, kind: str, exception: str | None) -> None:
    outcome = run("create table t (a int primary key)", command, params=params)

    assert error_of(outcome) == (kind, False, exception)


def test_half_a_secret_is_in_no_message() -> None:
    """DuckDB shows a window of a long line, which may begin or end within one."""
    secret = "qwjkzmxptrvnldshfgbcyaeuio-QWJKZMXPTRVNLDSHFGBCYAEUIO-0123456789"
    KNOWN.add(secret)
    for before in (1, 30):
        outcome = run(f"select 'x' as {'a' * before}, missing, '{secret}'")
        said = KNOWN.masked(f"{outcome.error} {outcome.block}").upper()
        assert ("LINE 1:" in said, "QWJKZM" in said) == (True, False)


def test_an_extension_is_never_fetched_unasked() -> None:
    outcome = run("select st_point(1, 2)")

    assert error_of(outcome) == ("duckdb", False, "CatalogException")


def test_tables_live_as_long_as_the_step_run() -> None:
    async def calls() -> list[str]:
        tool, place = DuckDbTool(), BenchPlace()

        async def ask(command: str, scratch: str) -> str:
            call = call_of(DuckdbInputs(command=command), scratch=scratch)
            return (await tool.call(call, place)).status

        found = [
            await ask("create table t (a int)", "one"),
            await ask("select * from t", "one"),
            await ask("select * from t", "two"),
        ]
        await tool.forget("one")
        found.append(await ask("select * from t", "one"))
        await tool.close()
        return found

    assert asyncio.run(calls()) == ["ok", "ok", "error", "error"]


def test_a_file_keeps_its_tables_and_is_let_go(tmp_path: Path) -> None:
    outcome = run(
        "create table t as select 7 as a",
        "select a from t",
        database="sub.db",
        folder=str(tmp_path),
    )

    assert outcome.result == [{"a": 7}]
    with duckdb.connect(tmp_path / "sub.db", read_only=True) as other:
        assert other.execute("select a from t").fetchall() == [(7,)]


@pytest.mark.parametrize(
    ("database", "kind", "says"),
    [
        ("../x.db", "input", "leaves the playbook's folder"),
        ("no.db", "duckdb", "not a valid DuckDB database file"),
        ("missing/x.db", "duckdb", "No such file or directory"),
    ],
)
def test_a_file_that_cannot_be_a_database(
    tmp_path: Path, database: str, kind: str, says: str
) -> None:
    (tmp_path / "no.db").write_text("this is some text" * 999)

    outcome = run("select 1", database=database, folder=str(tmp_path))

    assert error_of(outcome)[0] == kind
    assert says in message_of(outcome)


def test_a_file_that_another_process_holds_may_come_free(tmp_path: Path) -> None:
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('held', flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "x.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"

        outcome = run("select 1", database="x.db", folder=str(tmp_path))

        holder.communicate(b"\n")

    assert error_of(outcome) == ("duckdb", True, "IOException")


def test_relative_files_start_at_the_playbook(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n1,x\n2,y\n")

    outcome = run("select * from 'rows.csv'", folder=str(tmp_path))

    assert outcome.result == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], outcome.error


@pytest.mark.parametrize(
    ("resources", "memory", "cpu"),
    [
        ({"memory": "64Mi", "cpu": 1}, "64.0 MiB", 1),
        ({"memory": 134217728, "cpu": 0.5}, "128.0 MiB", 1),
        ({"memory": "1Gi", "cpu": 3}, "1.0 GiB", 3),
    ],
)
def test_resources_bound_memory_and_threads(
    resources: dict[str, Any], memory: str, cpu: int
) -> None:
    outcome = run(
        "select current_setting('memory_limit') as memory, current_setting('threads') as cpu",
        resources=resources,
    )

    assert outcome.result == [{"memory": memory, "cpu": cpu}]


@pytest.mark.parametrize("resources", [{"memory": "much"}, {"cpu": "all"}, {"cpu": 0}])
def test_resources_that_say_nothing_are_refused(resources: dict[str, Any]) -> None:
    outcome = run("select 1", resources=resources)

    assert error_of(outcome) == ("input", False, None)
    assert f"spec.resources.{next(iter(resources))} is" in message_of(outcome)


def test_memory_that_does_not_suffice_is_an_error() -> None:
    outcome = run(
        "select count(distinct range::varchar || 'padding') from range(10000000)",
        resources={"memory": "20M"},
        timeout=Timeout(total=60),
    )

    assert error_of(outcome) == ("duckdb", False, "OutOfMemoryException")


def test_a_timeout_interrupts_the_query() -> None:
    outcome = run(ENDLESS, timeout=Timeout(total=0.1))

    assert error_of(outcome) == ("timeout", True, None)
    assert "total timeout of 0.1 s" in message_of(outcome)


def test_cancelling_interrupts_the_query_and_keeps_the_database() -> None:
    async def calls() -> Outcome:
        tool, place = DuckDbTool(), BenchPlace()
        made = call_of(DuckdbInputs(command="create table t as select 1 as v"))
        assert (await tool.call(made, place)).error is None
        tasks = [
            asyncio.create_task(tool.call(call_of(DuckdbInputs(command=ENDLESS)), place))
            for _ in range(6)
        ]
        await tool.call(call_of(DuckdbInputs(command="select 1")), place)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ended] == [asyncio.CancelledError] * 6
        outcome = await tool.call(call_of(DuckdbInputs(command="select v from t")), place)
        await tool.close()
        return outcome

    assert asyncio.run(calls()).result == [{"v": 1}]


def ticks_of(pid: int) -> int:
    """Processor time that it has used."""
    return int(Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[11])


def test_a_process_that_ends_ends_no_other_database() -> None:
    """That of its step run is gone, those of others are not."""

    async def calls() -> list[Any]:
        tool, place = DuckDbTool(), BenchPlace()

        async def ask(command: str, scratch: str) -> Outcome:
            return await tool.call(call_of(DuckdbInputs(command=command), scratch=scratch), place)

        await ask("create table t as select 7 as a", "one")
        before = descendants(os.getpid())
        await ask("create table t as select 7 as a", "two")
        (second,) = descendants(os.getpid()) - before
        running = asyncio.create_task(ask(ENDLESS, "two"))
        while ticks_of(second) < 20:
            await ask("select 1", "one")
        os.kill(second, signal.SIGKILL)
        found = [error_of(await running), (await ask("select a from t", "one")).result]
        found.append(error_of(await ask("select a from t", "two")))
        await tool.close()
        return found

    assert asyncio.run(calls()) == [
        ("duckdb", False, "ProcessDied"),
        [{"a": 7}],
        ("duckdb", False, "CatalogException"),
    ]


ABORTING = "call enable_logging(storage = 'file', storage_path = '/nowhere/x'); select 1"
ABORTED = """
import asyncio, sys
from tests.unit.tools.sql.test_duckdb import ABORTING, run

for database in (None, "x.db"):
    more = {"folder": sys.argv[1], "files": sys.argv[1], "database": database}
    print(run(ABORTING, **more).status, run("select 1 as v", **more).result)
"""


def test_sql_that_aborts_its_process_leaves_the_worker_alone(tmp_path: Path) -> None:
    words = [sys.executable, "-c", ABORTED, str(tmp_path)]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, check=False, text=True)
    assert (ended.returncode, ended.stdout) == (0, "error [{'v': 1}]\n" * 2), ended.stderr


@pytest.mark.parametrize("bounded", [False, True], ids=["free", "bounded"])
def test_calls_of_one_step_run_share_a_file(bounded: bool, tmp_path: Path) -> None:
    """However many open it at once, and whether or not `files` bounds them."""
    calls_at_once, rounds = 8, 5
    more = {"folder": str(tmp_path), "files": str(tmp_path) if bounded else None}

    async def calls() -> list[Any]:
        tool, place = DuckDbTool(), BenchPlace()

        async def ask(command: str) -> Outcome:
            inputs = DuckdbInputs(command=command, database="x.db")
            return await tool.call(call_of(inputs, **more), place)

        await ask("create table t (a int)")
        errors = []
        for _ in range(rounds):
            insert = "insert into t select * from range(1000)"
            ended = await asyncio.gather(*(ask(insert) for _ in range(calls_at_once)))
            errors += [outcome.error for outcome in ended if outcome.error is not None]
        counted = await ask("select count(*) as n from t")
        await tool.close()
        return [errors, counted.result]

    assert asyncio.run(calls()) == [[], [{"n": calls_at_once * rounds * 1000}]]


def test_large_results_go_into_the_store() -> None:
    place = BenchPlace()

    outcome = run(
        "select range as n, repeat('x', 100) as pad from range(5000)",
        place=place,
        max_inline=100_000,
    )

    assert isinstance(outcome.result, Reference), outcome.error
    rows = place.results.value(outcome.result)
    assert [row["n"] for row in rows] == list(range(5000))
    assert outcome.block is not None
    assert outcome.block["rowcount"] == 5000
    assert place.results.unfinished == 0
