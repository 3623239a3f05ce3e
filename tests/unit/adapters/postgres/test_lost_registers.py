"""What is said twice for want of an answer is done once, and announcements outlive connections."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.contracts.homes import PostgresHomes, decision, row, taken
from tests.support.postgres import Database, PostgresServer
from tests.unit.adapters.postgres.asking import asking, until
from tests.unit.adapters.postgres.proxy import Proxy

from noetl.adapters.postgres.storage import PostgresStorage
from noetl.errors import LogUnavailable
from noetl.ports.catalog import Registration
from noetl.ports.credentials import SealedCredential
from noetl.ports.tokens import TokenRow

TOKEN = TokenRow(token_id="a", name="n", role="r", digest="d", created_at=1)
SEALED = SealedCredential(name="c", kind="k", key_id="1", sealed=b"x", updated_at=1)
END_ALL = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""

LISTENING = """
select true from pg_stat_activity
where datname = current_database() and query like 'select exists (%noetl.note%'
"""


async def register(home: PostgresStorage) -> Any:
    entry, fresh = await home.catalog.register(
        Registration(path="p", text="text", digest="d", name="n")
    )
    return entry.version, fresh


async def claim(home: PostgresStorage) -> Any:
    return (await home.keys.claim("k", "f", "e1")).fresh


async def add(home: PostgresStorage) -> Any:
    await home.tokens.add(TOKEN)
    return await home.tokens.all()


async def adopt(home: PostgresStorage) -> Any:
    return (await home.owners.adopt(2)).execution_ids


CALLS: list[tuple[Callable[[PostgresStorage], Awaitable[Any]], str, Any]] = [
    (register, "select true from noetl.catalog", (1, True)),
    (claim, "select true from noetl.execution_key", True),
    (add, "select true from noetl.api_token", [TOKEN]),
    (adopt, "select true from noetl.execution where term > 0", ["a", "b"]),
]


@pytest.mark.parametrize(("call", "written", "answer"), CALLS)
async def test_a_call_whose_answer_was_lost(
    log_database: Database, call: Callable[[PostgresStorage], Any], written: str, answer: Any
) -> None:
    async with asking(log_database.url) as beside, Proxy(log_database) as proxy:
        homes = PostgresHomes(proxy.database)
        home = await homes.open()
        for name in ("a", "b", "c"):
            await home.log.append(decision(name, 0))
        await beside.execute("select pg_advisory_lock(1)")
        # The statement waits in the database until nothing that it answers is heard any more.
        await beside.execute(
            "create function noetl.slow() returns trigger language plpgsql as"
            " $$ begin perform pg_advisory_xact_lock_shared(1); return new; end $$"
        )
        for table in ("catalog", "execution_key", "api_token", "execution"):
            await beside.execute(
                f"create trigger slow before insert or update on noetl.{table}"
                " for each row execute function noetl.slow()"
            )
        calling = asyncio.ensure_future(call(home))
        await until(
            lambda: beside.fetchval(
                "select true from pg_locks where locktype = 'advisory' and not granted"
            )
        )
        proxy.deaf = True
        await beside.execute("select pg_advisory_unlock(1)")
        await until(lambda: beside.fetchval(written))
        assert not calling.done()
        proxy.cut()
        assert await calling == answer
        await homes.close_all()


async def test_a_note_is_heard_after_the_connection_was_lost(homes: PostgresHomes) -> None:
    mine, other = await homes.open(), await homes.open()
    await mine.log.append(decision("a", 0, row=row("a", owner=mine.owners.me)))
    waiting = asyncio.ensure_future(mine.inbox.waits(600))
    async with asking(homes.url) as beside:
        for kind in ("pause", "resume"):
            await until(lambda: beside.fetchval(LISTENING))
            await beside.execute(END_ALL)
            await other.inbox.leave("a", kind, {})
            assert await waiting
            assert [note.kind for note in await taken(mine)] == [kind]
            waiting = asyncio.ensure_future(mine.inbox.waits(600))
    waiting.cancel()


async def test_waiting_while_the_server_is_away(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        homes = PostgresHomes(database, patience=600)
        home = await homes.open()
        await home.log.append(decision("a", 0, row=row("a", owner=home.owners.me)))
        await asyncio.to_thread(own_server.stop)
        assert not await home.inbox.waits(0.05)
        waiting = asyncio.ensure_future(home.inbox.waits(600))
        await asyncio.to_thread(own_server.start)
        await home.inbox.leave("a", "pause", {})
        assert await waiting
        await homes.close_all()


async def test_credentials_wait_for_a_server_and_nobody_waits_for_them(
    own_server: PostgresServer,
) -> None:
    with own_server.fresh_database() as database:
        patient, hasty = PostgresHomes(database, patience=600), PostgresHomes(database, patience=0)
        home, other = await patient.open(), await hasty.open()
        await home.credentials.keep(SEALED)
        await asyncio.to_thread(own_server.stop)
        finding = asyncio.ensure_future(home.credentials.find("c"))
        with pytest.raises(LogUnavailable, match=r"does not answer|is lost|failed"):
            await other.credentials.find("c")
        assert not finding.done(), "the loop went on meanwhile"
        await asyncio.to_thread(own_server.start)
        assert await finding == SEALED
        for homes in (patient, hasty):
            await homes.close_all()


async def test_who_comes_while_others_adopt_is_not_taken_for_dead(homes: PostgresHomes) -> None:
    """The lock on a row is waited for by nobody: what another is adopting is passed over."""
    mine, other = await homes.open(), await homes.open()
    for name in ("a", "b"):
        await mine.log.append(decision(name, 0))
    async with asking(homes.url) as beside:
        held = beside.transaction()
        await held.start()
        await beside.execute("select from noetl.execution where execution_id = 'a' for update")
        assert (await other.owners.adopt(5)).execution_ids == ["b"]
        await held.rollback()
    assert (await mine.owners.adopt(5)).execution_ids == ["a"]
