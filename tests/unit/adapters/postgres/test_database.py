"""How the tables come to be, and when they are refused."""

import asyncio
from typing import Any

import asyncpg
import msgspec
import pytest
from tests.contracts.homes import PostgresHomes, decision
from tests.support.postgres import Database, PostgresServer
from tests.unit.adapters.postgres.asking import asking

from noetl.adapters.postgres.database import VERSION
from noetl.adapters.postgres.door import durable
from noetl.adapters.postgres.faults import place_of, unavailable
from noetl.adapters.postgres.statements import MIGRATIONS, SQL
from noetl.adapters.postgres.storage import open_storage
from noetl.errors import LogUnavailable, SettingRefused
from noetl.messages.names import NAMES

EVERYTHING = """
select table_name, column_name, data_type from information_schema.columns
where table_schema = 'noetl' order by 1, 2
"""


async def test_an_empty_database_gets_its_tables(database: Database) -> None:
    homes = PostgresHomes(database)
    home = await homes.open()
    await home.log.append(decision("a", 0))
    async with asking(database.url) as beside:
        assert await beside.fetchval("select version from noetl.format") == VERSION
        assert await beside.fetchval("select count(*) from noetl.event_name") == len(NAMES)
    await homes.close_all()


async def test_many_may_come_first(database: Database) -> None:
    homes = PostgresHomes(database)
    opened = await asyncio.gather(*(homes.open() for _ in range(8)))
    for n, home in enumerate(opened):
        await home.log.append(decision(f"e{n}", 0))
    assert len(await opened[0].executions.page()) == 8
    await homes.close_all()


@pytest.mark.fault("T19")
async def test_a_newer_format_is_left_untouched(log_database: Database) -> None:
    async with asking(log_database.url) as beside:
        await beside.execute("update noetl.format set version = 99")
        await beside.execute("alter table noetl.note add column new text")
        before = await beside.fetch(EVERYTHING)
        with pytest.raises(LogUnavailable) as refused:
            await open_storage(log_database.url)
        assert str(refused.value) == (
            f"the log at {place_of(log_database.url)} has format 99, this program knows {VERSION}: "
            "it was written by a newer NoETL and is left untouched; update NoETL, or use another "
            "database"
        )
        assert await beside.fetch(EVERYTHING) == before
        assert await beside.fetchval("select version from noetl.format") == 99


async def old_log(connection: asyncpg.Connection, version: int) -> None:
    """The tables as they were in that format, with an execution in them."""
    for statement in ("make_room", "count_versions", "first_version"):
        await connection.execute(SQL[statement])
    for migration in MIGRATIONS[:version]:
        await connection.execute(migration)
    await connection.execute(SQL["set_version"], version)
    await connection.execute(
        "insert into noetl.event_name values ('old.name', '', '', '', '');"
        "insert into noetl.execution (execution_id, path, digest, status, started_at, updated_at,"
        " seq) values ('a', 'p', 'd', 'running', 1, 1, 1);"
        "insert into noetl.decision values ('a', 1, 1, 5, '[{}]')"
    )


@pytest.mark.parametrize("version", range(1, VERSION))
async def test_an_older_format_is_brought_up_to_date(database: Database, version: int) -> None:
    async with asking(database.url) as beside:
        await old_log(beside, version)
        homes = PostgresHomes(database)
        opened = await asyncio.gather(*(homes.open() for _ in range(4)))
        assert await beside.fetchval("select version from noetl.format") == VERSION
        names = await beside.fetch("select name from noetl.event_name")
        assert {row["name"] for row in names} == set(NAMES)
    home = opened[0]
    await home.log.append(decision("a", 1, at=6))
    assert [(row.first, row.last) for row in await home.log.read("a")] == [(1, 1), (2, 2)]
    assert (await home.owners.adopt(1)).execution_ids == ["a"]
    assert [found.execution_id for found in await home.executions.page(since=1)] == ["a"]
    await homes.close_all()


async def test_a_migration_is_done_whole_or_not_at_all(database: Database) -> None:
    async with asking(database.url) as beside:
        await old_log(beside, 1)
        await beside.execute("create table noetl.server (mine int)")  # in the way of the second
        before = await beside.fetch(EVERYTHING)
        with pytest.raises(LogUnavailable, match=r'relation "server" already exists'):
            await open_storage(database.url)
        assert await beside.fetch(EVERYTHING) == before
        assert await beside.fetchval("select version from noetl.format") == 1


async def test_tables_of_something_else_are_not_touched(database: Database) -> None:
    async with asking(database.url) as beside:
        await beside.execute("create schema noetl; create table noetl.mine (a int)")
        with pytest.raises(LogUnavailable, match=r"holds tables of something else; rename it"):
            await open_storage(database.url)
        assert [row["table_name"] for row in await beside.fetch(EVERYTHING)] == ["mine"]


async def test_an_empty_schema_of_that_name_is_taken(database: Database) -> None:
    async with asking(database.url) as beside:
        await beside.execute("create schema noetl")
    await (await open_storage(database.url)).close()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"password": "wrong"}, r"refuses the user or the password; check both and try again"),
        ({"user": "nobody"}, r"refuses the user or the password"),
        ({"database": "nowhere"}, r"there is no database at postgresql://.*/nowhere; create it"),
    ],
)
async def test_what_waiting_does_not_mend_is_said_at_once(
    database: Database, change: dict[str, str], says: str
) -> None:
    wrong = msgspec.structs.replace(database, **change)
    with pytest.raises(LogUnavailable, match=says) as refused:
        await open_storage(wrong.url, patience=600)
    assert wrong.password not in str(refused.value)


@pytest.mark.parametrize("dsn", ["mysql://x/y", "postgresql://h:port/d", "nothing"])
async def test_an_address_that_is_none(dsn: str) -> None:
    with pytest.raises(SettingRefused, match=r"expected postgresql://user:password@host:port/"):
        await open_storage(dsn, patience=600)


async def test_a_server_that_is_absent_is_waited_for_and_it_is_said(
    own_server: PostgresServer,
) -> None:
    with own_server.fresh_database() as database:
        own_server.stop()
        heard: list[str] = []
        waiting = asyncio.Event()

        def says(words: str) -> None:
            heard.append(words)
            waiting.set()

        opening = asyncio.ensure_future(open_storage(database.url, patience=600, says=says))
        await waiting.wait()
        assert not opening.done()
        await asyncio.to_thread(own_server.start)
        home = await opening
        await home.log.append(decision("a", 0))
        await home.close()
        place = place_of(database.url)
        assert heard == [f"waiting for PostgreSQL at {place}", f"PostgreSQL at {place} is back"]


async def test_a_server_that_stays_away_is_named(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        own_server.stop()
        with pytest.raises(LogUnavailable) as refused:
            await open_storage(database.url, patience=0)
        own_server.start()
    says = str(refused.value)
    assert says.startswith(f"PostgreSQL at {place_of(database.url)} does not answer: ")
    assert says.endswith("; start it, or check the address and try again")


async def test_a_user_who_may_do_little_is_told(database: Database) -> None:
    async with asking(database.url) as beside:
        await beside.execute("create role guest login password 'guest'")
        try:
            guest = msgspec.structs.replace(database, user="guest", password="guest")
            with pytest.raises(
                LogUnavailable, match=r"allows too little: permission denied .*grant"
            ):
                await open_storage(guest.url)
        finally:
            await beside.execute("drop role guest")


async def test_commits_are_durable_whatever_the_default(log_database: Database) -> None:
    async with asking(log_database.url) as beside:
        name = log_database.database
        await beside.execute(f"alter database {name} set synchronous_commit = off")
    homes = PostgresHomes(log_database)
    home = await homes.open()
    await home.log.append(decision("a", 0))
    connection: Any = home.writer._connection
    assert await connection.fetchval("show synchronous_commit") == "on"
    await homes.close_all()


@pytest.mark.parametrize(
    ("dsn", "place"),
    [
        ("postgresql://u:p@h:1/d", "postgresql://h:1/d"),
        ("postgres://h/d?user=u&password=p", "postgresql://h/d"),
        ("postgresql://u:p%40q@h/d", "postgresql://h/d"),
        ("postgresql:///d", "postgresql:///d"),
    ],
)
def test_a_place_tells_no_secret(dsn: str, place: str) -> None:
    assert place_of(dsn) == place


def test_the_words_of_an_unknown_error() -> None:
    says = str(unavailable(ZeroDivisionError("a\n b"), "p", "e1"))
    assert says == "the log at p failed: a b; check the server and run `noetl resume e1`"


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(database: Database) -> None:
    connection = await asyncpg.connect(database.url)
    readying = asyncio.ensure_future(durable(connection))
    await asyncio.sleep(0)
    readying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await readying
    assert connection.is_closed()
