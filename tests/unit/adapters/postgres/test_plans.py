"""That what a read costs does not grow with the history: every one walks an index."""

from collections.abc import Iterator
from typing import Any

import asyncpg
import msgspec
import psycopg
import pytest
from tests.contracts.homes import PostgresHomes
from tests.support.postgres import Database, PostgresServer
from tests.unit.adapters.postgres.asking import asking

from noetl.adapters.postgres.reader import READING
from noetl.adapters.postgres.statements import SQL

HISTORY = """
insert into noetl.process (token, pid, host, expires_at)
values ('alive', 1, 'h', now() + interval '1 day'), ('dead', 2, 'h', now());
insert into noetl.execution (
    execution_id, path, digest, status, started_at, updated_at, finished_at, parent_execution_id,
    owner, seq
)
select
    'e' || n, 'path ' || n % 100, 'd', case when n % 1000 = 0 then 'running' else 'completed' end,
    n, n, case when n % 1000 = 0 then null else n end, case when n % 500 = 0 then 'e1' end,
    case when n = 9000 then 'dead' when n % 1000 = 0 and n > 1000 then 'alive' end, 1
from generate_series(1, 20000) as n;
insert into noetl.decision (execution_id, first_seq, last_seq, at, events)
select case when n % 4 = 0 then 'e' || n % 100 else 'long' end, n * 2 + 1, n * 2 + 2, 0, '[]'
from generate_series(0, 39999) as n;
insert into noetl.catalog (
    path, version, digest, registered_at, name, labels, mark
)
select 'path ' || n % 20, n / 20 + 1, 'd' || n, 0, 'n', '{}', 'm' || n
from generate_series(0, 9999) as n;
analyze noetl.execution, noetl.decision, noetl.catalog
"""

READS: dict[str, tuple[str, tuple[Any, ...], int]] = {
    "the log from a point on": ("read_decisions", ("long", 20_000, 50), 60),
    "a page": ("page_executions", (None, None, None, None, 50), 60),
    "the next page": ("page_executions", (None, None, None, "e9000", 50), 60),
    "a rare status": ("page_executions", ("running", None, None, None, 10), 40),
    "a frequent status": ("page_executions", ("completed", None, None, "e5000", 50), 60),
    "a path": ("page_executions", (None, "path 7", None, None, 50), 60),
    "children in pages": ("page_executions", (None, None, "e1", None, 50), 60),
    "a time long ago": ("page_executions_between", (None, None, None, None, 50, 5, 99), 120),
    "a time until": ("page_executions_between", (None, None, None, None, 50, None, 99), 120),
    "a time since": ("page_executions_between", (None, None, None, "e19999", 50, 5, None), 60),
    "children": ("children", ("e1",), 60),
    "what runs": ("count_executions", ("running",), 60),
    "what a process owns": ("owned_executions", ("alive",), 30),
    "orphans": ("any_orphan", (), 10),
    "adoption": ("adopt", ("me", 1, 10), 80),
    "what has ended": ("ended_roots", (50, 0, "", 20), 120),
    "nothing has ended": ("ended_roots", (0, 0, "", 20), 10),
    "the catalog": ("page_catalog", ("path 1", 5), 30),
    "versions": ("page_versions", ("path 3", 400, 50), 60),
}
"""The statement, its parameters, and how many rows it may touch at most."""


LARGE = ("execution", "decision", "catalog")


@pytest.fixture(scope="module")
def history(postgres_server: PostgresServer, log_template: Database) -> Iterator[Database]:
    with postgres_server.fresh_database(like=log_template) as fresh:
        with psycopg.connect(fresh.url) as connection:
            connection.execute(HISTORY.encode())
        yield fresh


@pytest.mark.parametrize("read", READS)
async def test_a_read_touches_what_it_returns(history: Database, read: str) -> None:
    statement, parameters, most = READS[read]
    async with asking(history.url) as beside:
        for name, value in READING.items():
            await beside.execute(f"set {name} = {value}")
        plan = await plan_of(beside, statement, parameters)
    large = [node for node in plan if node.get("Relation Name") in LARGE]
    assert large, "it reads something"
    assert "Seq Scan" not in {node["Node Type"] for node in large}
    assert sum(rows_in(node) for node in large) <= most


async def plan_of(
    connection: asyncpg.Connection, statement: str, parameters: tuple[Any, ...]
) -> list[dict[str, Any]]:
    """The nodes of the plan as it was carried out."""
    given = ", ".join("null" if value is None else repr(value) for value in parameters)
    await connection.execute(f"prepare asked as {SQL[statement]}")
    call = f"asked ({given})" if parameters else "asked"
    begun = connection.transaction()
    await begun.start()
    told = await connection.fetchval(f"explain (analyze, format json) execute {call}")
    await begun.rollback()
    return nodes_of(msgspec.json.decode(told)[0]["Plan"])


def nodes_of(plan: dict[str, Any]) -> list[dict[str, Any]]:
    below = [node for part in plan.get("Plans", []) for node in nodes_of(part)]
    return [plan, *below]


def rows_in(node: dict[str, Any]) -> int:
    """Rows that the node has read, those that it dropped included."""
    read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return int(read * node["Actual Loops"])


async def test_a_large_number_that_only_grows_is_estimated(history: Database) -> None:
    homes = PostgresHomes(history)
    home = await homes.open()
    assert await home.executions.count("completed") == 19980
    async with asking(history.url) as beside:
        # As if it were ten times as large: nobody counts that far.
        await beside.execute(
            "update pg_class set reltuples = 200000 where oid = 'noetl.execution'::regclass"
        )
    assert 195_000 < await home.executions.count("completed") < 200_000
    assert await home.executions.count("running") == 20, "what runs is counted"
    assert await home.executions.count("failed") == 0, "the statistics know nothing of it"
    await homes.close_all()
