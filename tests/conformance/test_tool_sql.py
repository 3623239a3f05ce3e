"""What the rules say about the `postgres` and `duckdb` kinds, shown on the databases."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.postgres import Database
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.sql import DuckdbInputs, PostgresInputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.tools.sql.duck import DuckDbTool
from noetl.tools.sql.postgres import PostgresTool
from noetl.tools.tool import Tool


class Sql:
    """One kind with a place to run in; `ask` is one call of the same step run."""

    def __init__(self, kind: str, place: BenchPlace) -> None:
        self.kind = kind
        self.place = place
        self._runner = asyncio.Runner()
        self._tool: Tool = PostgresTool() if kind == "postgres" else DuckDbTool()

    def ask(self, command: str, params: Any = (), **more: Any) -> Outcome:
        named: dict[str, Any] = {"command": command, "params": params or []}
        inputs = (
            PostgresInputs(**named, auth="db") if self.kind == "postgres" else DuckdbInputs(**named)
        )
        return self._runner.run(self._tool.call(call_of(inputs, **more), self.place))

    def close(self) -> None:
        self._runner.run(self._tool.close())
        self._runner.close()


@pytest.fixture(params=["postgres", "duckdb"])
def sql(request: pytest.FixtureRequest, database: Database) -> Iterator[Sql]:
    sql = Sql(request.param, BenchPlace(db=database.credential))
    yield sql
    sql.close()


@pytest.mark.rule("OUT-3")
def test_rows_are_a_list_of_mappings(sql: Sql) -> None:
    outcome = sql.ask("select 1 as a, 'x' as b union all select 2, null order by a")

    assert outcome.result == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


@pytest.mark.rule("OUT-2", "OUT-3")
def test_a_statement_without_rows_gives_its_rowcount(sql: Sql) -> None:
    sql.ask("create table t (a int)")

    outcome = sql.ask("insert into t values (1), (2)")

    assert outcome.result == {"rowcount": 2}
    assert outcome.block is not None
    assert outcome.block["rowcount"] == 2


@pytest.mark.rule("OUT-3")
def test_of_several_statements_the_last_counts(sql: Sql) -> None:
    outcome = sql.ask("create table t (a int); insert into t values (1); select a from t;")

    assert outcome.result == [{"a": 1}], outcome.error


@pytest.mark.rule("TOOL-0")
@pytest.mark.parametrize(
    ("kind", "command", "params"),
    [
        ("postgres", "select %s::text as v, %s::int as w", ["a'b", 2]),
        ("postgres", "select %(v)s::text as v, %(w)s::int as w", {"v": "a'b", "w": 2}),
        ("duckdb", "select ? as v, ?::int as w", ["a'b", 2]),
        ("duckdb", "select $v as v, $w::int as w", {"v": "a'b", "w": 2}),
    ],
)
def test_parameters_go_by_position_or_by_name(
    database: Database, kind: str, command: str, params: Any
) -> None:
    sql = Sql(kind, BenchPlace(db=database.credential))

    outcome = sql.ask(command, params)
    sql.close()

    assert outcome.result == [{"v": "a'b", "w": 2}], outcome.error


@pytest.mark.rule("OUT-2", "OUT-4")
def test_errors_are_of_the_kind_and_fill_its_block(sql: Sql) -> None:
    outcome = sql.ask("select * from nowhere")

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == (sql.kind, False)
    assert outcome.block is not None
    told = {"postgres": ("code", "42P01"), "duckdb": ("exception_type", "CatalogException")}
    name, value = told[sql.kind]
    assert outcome.block[name] == value
    assert "nowhere" in outcome.block["message"]


@pytest.mark.rule("OUT-2")
def test_code_and_sqlstate_are_the_same(database: Database) -> None:
    sql = Sql("postgres", BenchPlace(db=database.credential))

    outcome = sql.ask("do $$ begin raise sqlstate '40P01' using message = 'stuck'; end $$")
    sql.close()

    assert outcome.block == {
        "code": "40P01",
        "sqlstate": "40P01",
        "message": "stuck",
        "rowcount": None,
        "place": None,
    }
    assert outcome.error is not None
    assert outcome.error["retryable"] is True


@pytest.mark.rule("TASK-7")
def test_a_timeout_ends_the_statement(sql: Sql) -> None:
    endless = {
        "postgres": "select pg_sleep(600)",
        "duckdb": "select count(*) from range(1000000000000) a, range(1000000) b",
    }

    outcome = sql.ask(endless[sql.kind], timeout=Timeout(total=0.1))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("timeout", True)
    assert sql.ask("select 1 as v").result == [{"v": 1}]


@pytest.mark.rule("TASK-11")
def test_the_pool_bounds_the_connections(database: Database) -> None:
    async def calls() -> int:
        tool, place = PostgresTool(), BenchPlace(db=database.credential)
        call = call_of(PostgresInputs(command="select pg_backend_pid() as v", auth="db"), pool=2)
        outcomes = await asyncio.gather(*(tool.call(call, place) for _ in range(20)))
        await tool.close()
        return len({outcome.result[0]["v"] for outcome in outcomes})

    assert asyncio.run(calls()) <= 2


@pytest.mark.rule("KEY-1")
@pytest.mark.parametrize(
    ("changed", "kind"), [({}, None), ({"password": "wrong"}, "auth"), ({"port": 1}, "connection")]
)
def test_the_credential_says_where_and_who(
    database: Database, changed: dict[str, Any], kind: str | None
) -> None:
    sql = Sql("postgres", BenchPlace(db={**database.credential, **changed}))

    outcome = sql.ask("select current_database() as v")
    sql.close()

    assert (outcome.error and outcome.error["kind"]) == kind
    if kind is None:
        assert outcome.result == [{"v": database.database}]


@pytest.mark.rule("RES-1")
def test_a_large_result_is_a_reference(sql: Sql) -> None:
    series = {"postgres": "generate_series(0, 2999) n(n)", "duckdb": "range(3000) n(n)"}

    outcome = sql.ask(f"select n from {series[sql.kind]} order by n", max_inline=9999)

    assert isinstance(outcome.result, Reference), outcome.error
    assert sql.place.results.value(outcome.result) == [{"n": n} for n in range(3000)]
