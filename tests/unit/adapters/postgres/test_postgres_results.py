"""Bodies in PostgreSQL: large ones, absent servers, and what is left behind."""

import asyncio
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from tests.support.postgres import Database, PostgresServer

from noetl.adapters.postgres.blocking import MOST_IDLE
from noetl.adapters.postgres.result_store import IN_MEMORY, PIECE, PostgresResultStore
from noetl.adapters.postgres.storage import open_storage
from noetl.errors import BodyLost, LogUnavailable

LARGE = b'"' + b"x" * (IN_MEMORY + PIECE) + b'"'


@pytest.fixture
def store(log_database: Database) -> Iterator[PostgresResultStore]:
    with closing(PostgresResultStore(log_database.url)) as opened:
        yield opened


async def test_a_body_larger_than_memory_allows(store: PostgresResultStore) -> None:
    writer = store.open("e1")
    for start in range(0, len(LARGE), 100_000):
        writer.write(LARGE[start : start + 100_000])
    reference = await writer.finish()
    pieces = list(store.pieces(reference))
    assert b"".join(pieces) == LARGE
    assert {len(piece) for piece in pieces[:-1]} == {PIECE}
    assert await store.fetch(reference) == "x" * (len(LARGE) - 2)


async def test_equal_bodies_at_once_are_kept_once(
    store: PostgresResultStore, log_database: Database
) -> None:
    references = await asyncio.gather(*(store.put("e1", LARGE) for _ in range(6)))
    assert len({reference.key for reference in references}) == 1
    with psycopg.connect(log_database.url) as beside:
        counted = beside.execute("select count(*), sum(length(piece)) from noetl.body").fetchone()
    assert counted == (len(LARGE) // PIECE + 1, len(LARGE))
    assert len(store.door._idle) <= MOST_IDLE
    assert await store.fetch(references[0]) == "x" * (len(LARGE) - 2)


async def test_a_body_that_lost_a_piece_is_lost(
    store: PostgresResultStore, log_database: Database
) -> None:
    reference = await store.put("e1", LARGE)
    with psycopg.connect(log_database.url) as beside:
        beside.execute("delete from noetl.body where number = 3")
    with pytest.raises(BodyLost, match=rf"postgres:{reference.key} .* has {3 * PIECE} bytes now"):
        await store.fetch(reference)
    with pytest.raises(BodyLost, match="bytes now"):
        list(store.pieces(reference))


async def test_connections_that_died_are_replaced(
    store: PostgresResultStore, log_database: Database
) -> None:
    reference = await store.put("e1", b"[1]")
    with psycopg.connect(log_database.url, autocommit=True) as beside:
        beside.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    assert store.fetch_now(reference) == [1]
    assert store.put_now("e1", b"[2]").size == 3


async def test_a_server_that_is_away_is_named_and_waited_for(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        await (await open_storage(database.url)).close()
        with (
            closing(PostgresResultStore(database.url, patience=600)) as patient,
            closing(PostgresResultStore(database.url, patience=0)) as hasty,
        ):
            reference = await patient.put("e1", b"[1]")
            own_server.stop()
            with pytest.raises(LogUnavailable) as refused:
                await hasty.put("e1", b"[2]")
            waiting = asyncio.ensure_future(patient.fetch(reference))
            own_server.start()
            assert await waiting == [1]
    says = str(refused.value)
    assert says.startswith(f"a result cannot be stored in or read from {hasty.door.place}: ")
    assert says.endswith("; check the server and try again")
    assert database.password not in says


async def test_tables_that_are_not_there(database: Database) -> None:
    with (
        closing(PostgresResultStore(database.url)) as store,
        pytest.raises(LogUnavailable, match=r'relation "noetl\.body" does not exist'),
    ):
        await store.put("e1", b"1")
