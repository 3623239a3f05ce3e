"""The tables of the log in a database: created, brought up to date, or refused untouched."""

import asyncpg
from msgspec.structs import astuple

from noetl.adapters.postgres.door import Door
from noetl.adapters.postgres.faults import AWAY, unavailable
from noetl.adapters.postgres.statements import MIGRATIONS, SQL
from noetl.errors import LogUnavailable
from noetl.messages.names import NAMES

VERSION = len(MIGRATIONS)


async def prepare(door: Door) -> None:
    """Wait for the server, and make sure that its tables are those that this program knows."""
    await door.patiently(lambda: _prepare(door))


async def _prepare(door: Door) -> None:
    connection = await door.connect()
    try:
        version = await _version(connection, door.place)
        if version < VERSION and door.looking:
            found = (
                f"the log at {door.place} has format {version}" if version else "there is no log"
            )
            raise LogUnavailable(f"{found} yet; `noetl server start` makes it ready")
        if version < VERSION:
            await _migrate(connection, door.place)
    except AWAY:
        raise
    except asyncpg.PostgresError as error:
        raise unavailable(error, door.place) from error
    finally:
        await connection.close()


async def _version(connection: asyncpg.Connection, place: str) -> int:
    """The format that is there; 0 where there is nothing yet."""
    found = await connection.fetchrow(SQL["found"])
    if not found["ours"]:
        if found["something"]:
            raise LogUnavailable(
                f"the schema noetl at {place} holds tables of something else; rename it, or use "
                "another database"
            )
        return 0
    version = int(await connection.fetchval(SQL["version"]))
    if version > VERSION:
        raise LogUnavailable(
            f"the log at {place} has format {version}, this program knows {VERSION}: it was "
            "written by a newer NoETL and is left untouched; update NoETL, or use another database"
        )
    return version


async def _migrate(connection: asyncpg.Connection, place: str) -> None:
    """All in one transaction, one process at a time: whoever comes second finds it done."""
    async with connection.transaction():
        await connection.execute(SQL["one_at_a_time"])
        version = await _version(connection, place)
        if version == VERSION:
            return
        if version == 0:
            for statement in ("make_room", "count_versions", "first_version"):
                await connection.execute(SQL[statement])
        for migration in MIGRATIONS[version:]:
            await connection.execute(migration)
        await connection.execute(SQL["unname_events"])
        await connection.executemany(
            SQL["name_event"], [(name, *astuple(NAMES[name])) for name in NAMES]
        )
        await connection.execute(SQL["set_version"], VERSION)
