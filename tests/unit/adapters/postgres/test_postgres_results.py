"""Objects in PostgreSQL: large ones, absent servers, and what is left behind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from tests.contracts.stores import OpenedStore
from tests.support.postgres import Database, PostgresServer

from noetl.adapters.postgres.object_store import MOST, PostgresObjectStore
from noetl.adapters.postgres.storage import open_storage
from noetl.errors import BodyLost, ResultsUnavailable
from noetl.ports.object_store import IN_MEMORY, PIECE
from noetl.ports.result_store import ResultStore

LARGE = b'"' + b"x" * (IN_MEMORY + PIECE) + b'"'


@pytest.fixture
def store(log_database: Database) -> OpenedStore:
    return OpenedStore(PostgresObjectStore(log_database.url))


@asynccontextmanager
async def opened(url: str, patience: float = 60.0) -> AsyncIterator[ResultStore]:
    store = ResultStore(PostgresObjectStore(url), patience=patience)
    try:
        yield store
    finally:
        await store.close()


async def test_equal_bodies_at_once_are_kept_once(
    store: OpenedStore, log_database: Database
) -> None:
    async with opened(log_database.url) as other:
        puts = [(store, other)[n % 2].put("e1", LARGE) for n in range(6)]
        references = await asyncio.gather(*puts)
    assert len({reference.key for reference in references}) == 1
    with psycopg.connect(log_database.url) as beside:
        counted = beside.execute("select count(*), sum(length(piece)) from noetl.body").fetchone()
    assert counted == (len(LARGE) // PIECE + 1, len(LARGE))
    assert await store.fetch(references[0]) == "x" * (len(LARGE) - 2)


async def test_connections_are_few(store: OpenedStore, log_database: Database) -> None:
    references = await asyncio.gather(*(store.put("e1", b"%d" % n) for n in range(20)))
    assert await asyncio.gather(*map(store.fetch, references)) == list(range(20))
    with psycopg.connect(log_database.url) as beside:
        counted = beside.execute(
            "select count(*) from pg_stat_activity where application_name = 'noetl'"
            " and datname = current_database()"
        ).fetchone()
    assert counted is not None
    assert counted[0] <= MOST


async def test_a_body_that_lost_a_piece_is_lost(store: OpenedStore, log_database: Database) -> None:
    reference = await store.put("e1", LARGE)
    with psycopg.connect(log_database.url) as beside:
        beside.execute("delete from noetl.body where number = 3")
    with pytest.raises(BodyLost, match=rf"postgres:{reference.key} .* has {3 * PIECE} bytes now"):
        await store.fetch(reference)
    with pytest.raises(BodyLost, match="bytes now"):
        [piece async for piece in store.pieces(reference)]


async def test_connections_that_died_are_replaced(
    store: OpenedStore, log_database: Database
) -> None:
    reference = await store.put("e1", b"[1]")
    with psycopg.connect(log_database.url, autocommit=True) as beside:
        beside.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    assert await store.fetch(reference) == [1]
    assert (await store.put("e1", b"[2]")).size == 3


async def test_a_server_that_is_away_is_named_and_waited_for(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        await (await open_storage(database.url)).close()
        async with opened(database.url, 600) as patient, opened(database.url, 0) as hasty:
            reference = await patient.put("e1", b"[1]")
            own_server.stop()
            with pytest.raises(ResultsUnavailable) as away:
                await hasty.put("e1", b"[2]")
            waiting = asyncio.ensure_future(patient.fetch(reference))
            own_server.start()
            assert await waiting == [1]
            place = hasty.objects.place
    says = str(away.value)
    assert says.startswith(f"a result cannot be stored in or read from {place}: ")
    assert "(away for 0 s); check the store" in says
    assert database.password not in says
    assert not away.value.refused


async def test_tables_that_are_not_there(database: Database) -> None:
    async with opened(database.url) as store:
        with pytest.raises(
            ResultsUnavailable, match=r'relation "noetl\.body" does not exist'
        ) as no:
            await store.put("e1", b"1")
    assert no.value.refused
