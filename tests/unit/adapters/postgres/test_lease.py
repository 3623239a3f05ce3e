"""A process is alive by the clock of the database, and as long as it renews."""

import os
import socket
from typing import Any

import asyncpg
import pytest
from tests.contracts.homes import PostgresHomes, decision, row
from tests.unit.adapters.postgres.asking import asking, until

from noetl.errors import HomeInUse
from noetl.ports.event_log import clock

HELD = "select expires_at from noetl.process where token = $1"


async def test_the_lease_is_renewed_in_the_background(homes: PostgresHomes) -> None:
    home = await homes.open(lease=0.03)
    await home.log.append(decision("a", 0))
    async with asking(homes.url) as beside:
        seen = {await beside.fetchval(HELD, home.owners.me)}

        async def renewed() -> bool:
            seen.add(await beside.fetchval(HELD, home.owners.me))
            return len(seen) == 4

        await until(renewed)


async def test_renewing_outlives_a_lost_connection(homes: PostgresHomes) -> None:
    home = await homes.open(lease=0.03)
    await home.log.append(decision("a", 0))
    async with asking(homes.url) as beside:
        await beside.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'noetl' and datname = current_database()"
        )
        before = await beside.fetchval("select clock_timestamp()")
        after = "select expires_at > $2 from noetl.process where token = $1"
        await until(lambda: beside.fetchval(after, home.owners.me, before))


async def test_sure_since_it_was_asked(homes: PostgresHomes) -> None:
    home = await homes.open(lease=600)
    before = clock()
    await home.log.append(decision("a", 0))
    assert before + 600 < home.owners.sure_until < clock() + 600


async def test_each_renewal_makes_sure_for_longer(homes: PostgresHomes) -> None:
    home = await homes.open(lease=0.3)
    await home.log.append(decision("a", 0))
    since = home.owners.sure_until

    async def longer() -> bool:
        return home.owners.sure_until > since

    await until(longer)


@pytest.mark.rule("SRV-3")
@pytest.mark.parametrize(
    "lose",
    [
        "delete from noetl.process where token = $1",
        "update noetl.process set expires_at = now() where token = $1",
    ],
)
async def test_a_lease_that_ran_out_is_entered_again(homes: PostgresHomes, lose: str) -> None:
    """What was taken over meanwhile stays taken; the process knows, and goes on with the rest."""
    home, other = await homes.open(lease=0.3), await homes.open()
    for name in ("a", "b"):
        await home.log.append(decision(name, 0, row=row(name, owner=home.owners.me)))
    async with asking(homes.url) as beside:
        async with beside.transaction():
            await beside.execute(lose, home.owners.me)
            # As if another had been there in between.
            await beside.execute(
                "update noetl.execution set owner = $1 where execution_id = 'a'", other.owners.me
            )

        async def noticed() -> bool:
            return home.owners.lapses > 0

        await until(noticed)
        alive = "select true from noetl.process where token = $1 and expires_at > now()"
        await until(lambda: beside.fetchval(alive, home.owners.me))
    assert await home.owners.owned() == ["b"]
    await home.log.append(decision("b", 1))
    await home.log.append(decision("b", 2, row=row("b", owner=home.owners.me)))


async def test_claiming_renews_a_lease_that_is_not_sure(homes: PostgresHomes) -> None:
    home = await homes.open(lease=600)
    await home.log.append(decision("a", 0))
    home.writer.lease.sure_until = clock()  # as if no renewal had got through
    await home.owners.claim("a")
    assert home.owners.sure_until > clock()
    assert home.owners.lapses == 1


async def held_by(connection: asyncpg.Connection) -> list[Any]:
    rows = await connection.fetch("select token from noetl.process where expires_at > now()")
    return [row["token"] for row in rows]


async def test_leaving_in_good_order_needs_no_waiting(homes: PostgresHomes) -> None:
    leaving, staying = await homes.open(lease=600), await homes.open()
    await leaving.log.append(decision("a", 0, row=row("a", owner=leaving.owners.me)))
    with pytest.raises(HomeInUse) as refused:
        await staying.owners.claim("a")
    assert str(refused.value) == (
        f"execution a is run by process {os.getpid()}; wait for it (on {socket.gethostname()}), or "
        "stop it with `noetl cancel a`"
    )
    await leaving.close()
    await staying.owners.claim("a")
    async with asking(homes.url) as beside:
        assert await held_by(beside) == [staying.owners.me]


async def test_who_owns_nothing_leaves_no_row(homes: PostgresHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    await home.close()
    async with asking(homes.url) as beside:
        assert await beside.fetch("select * from noetl.process") == []


async def test_the_long_dead_are_struck_out_unless_they_own_something(homes: PostgresHomes) -> None:
    async with asking(homes.url) as beside:
        await beside.execute(
            "insert into noetl.process (token, pid, host, expires_at) values"
            " ('idle', 1, 'h', now() - interval '2 days'),"
            " ('owner', 2, 'h', now() - interval '2 days'), ('lately', 3, 'h', now())"
        )
        await beside.execute(
            "insert into noetl.execution (execution_id, path, digest, status, started_at,"
            " updated_at, owner, seq) values ('x', 'p', 'd', 'running', 0, 0, 'owner', 1)"
        )
        home = await homes.open()
        await home.log.append(decision("a", 0))
        tokens = await beside.fetch("select token from noetl.process order by pid")
        assert {row["token"] for row in tokens} == {"owner", "lately", home.owners.me}


async def test_two_that_claim_after_the_same_owner(homes: PostgresHomes) -> None:
    """The second statement of a claim meets an owner that has changed since the first."""
    dead, mine, other = [await homes.open() for _ in range(3)]
    await dead.log.append(decision("a", 0, row=row("a", owner=dead.owners.me)))
    await homes.kill(dead)
    rows = mine.owners._reader.rows

    async def overtaken(statement: str, *parameters: Any) -> list[Any]:
        await other.owners.claim("a")
        return await rows(statement, *parameters)

    mine.owners._reader.rows = overtaken  # type: ignore[method-assign]
    with pytest.raises(HomeInUse):
        await mine.owners.claim("a")
    mine.owners._reader.rows = rows  # type: ignore[method-assign]
    found = await mine.executions.find("a")
    assert found is not None
    assert found.owner == other.owners.me
