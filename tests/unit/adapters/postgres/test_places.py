"""A place under a limit: the commit that rests on it, and the sweep that ends it (LIMIT-3)."""

import asyncio
from typing import Any

import pytest
from tests.contracts.homes import PostgresHomes, answer_of, decision, row
from tests.unit.adapters.postgres.asking import asking, writer_of

from noetl.adapters.postgres.statements import SQL
from noetl.ports.limits import UNBEGUN, LimitClaim
from noetl.ports.storage import Storage

pytestmark = pytest.mark.rule("LIMIT-3")


SAME = (
    "insert into noetl.execution"
    " (execution_id, path, digest, status, started_at, updated_at, seq)"
    " values ('a', 'p', 'd', 'running', 1, 1, 1)"
)

CLAIM = (
    "insert into noetl.limit_claim (execution_id, holder, limit_group, limit_key, seconds,"
    " priority, turn, asked_at, process) values ('b', '', 'elsewhere', '', 0, 0, 0, 0, 'p')"
)


WAITING = (
    "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
    " and datname = current_database()"
)


async def claimed(homes: PostgresHomes) -> tuple[Storage, Any]:
    """A process that is taken for dead before its start is committed, and its first decision."""
    home = await homes.open()
    assert await home.limits.take([LimitClaim(execution_id="a", group="g", at_once=1)]) == [0]
    await homes.kill(home)
    return home, decision("a", 0, row=row("a", owner=home.owners.me), holds=True)


async def test_a_sweep_leaves_a_place_on_which_a_commit_rests(homes: PostgresHomes) -> None:
    home, first = await claimed(homes)
    sweeping = await homes.open()
    async with asking(homes.url) as holding, asking(homes.url) as beside:
        lock = holding.transaction()
        await lock.start()
        await holding.execute(SAME)
        beginning = home.log.append(first)
        await writer_of(beside)  # it has locked the claim, and waits for the row
        assert await sweeping.limits.abandoned() == 0
        await lock.rollback()
    assert await answer_of(beginning) == "ok"
    assert await sweeping.limits.abandoned() == 0
    assert [one.place for one in await home.limits.places("a")] == [0]


async def test_a_commit_waits_for_the_sweep_and_is_refused(homes: PostgresHomes) -> None:
    home, first = await claimed(homes)
    async with asking(homes.url) as sweeping, asking(homes.url) as beside:
        sweep = sweeping.transaction()
        await sweep.start()
        assert len(await sweeping.fetch(SQL["lock_unbegun"], UNBEGUN)) == 1
        beginning = home.log.append(first)
        await writer_of(beside)
        await sweeping.execute(SQL["drop_unbegun"], ["a"])
        await sweep.commit()
    assert await answer_of(beginning) == "PlaceLost"
    assert await home.executions.find("a") is None


async def test_what_was_committed_before_the_locks_of_a_sweep_stays(homes: PostgresHomes) -> None:
    home, first = await claimed(homes)
    async with asking(homes.url) as sweeping:
        await home.log.append(first)
        await sweeping.execute(SQL["drop_unbegun"], ["a"])  # as found before that commit
    assert [one.place for one in await home.limits.places("a")] == [0]


async def test_a_claim_that_ends_while_it_is_asked_for_has_an_answer(homes: PostgresHomes) -> None:
    """It was left out, and who asked beside it waited for ever."""
    home = await homes.open()
    ending, other = (LimitClaim(execution_id=name, group="g", at_once=2) for name in "ab")
    assert await home.limits.take([ending]) == [0]
    async with asking(homes.url) as holding, asking(homes.url) as beside:
        lock = holding.transaction()
        await lock.start()
        await holding.execute(CLAIM)
        asked = asyncio.ensure_future(home.limits.take([ending, other]))
        await writer_of(beside)  # it has seen the one, and waits to make the other
        await home.limits.release("a")
        await lock.rollback()
    assert await asked == [1, 0]


def brought(home: Storage, name: str) -> Any:
    """A first decision that brings its claim."""
    mine = row(name, owner=home.owners.me)
    claim = LimitClaim(execution_id=name, group="g", at_once=1)
    return decision(name, 0, row=mine, holds=True, claim=claim)


async def test_a_start_that_brings_its_claim_waits_for_nobody_who_counts(
    homes: PostgresHomes,
) -> None:
    """Whoever has the lock may wait for a row of the same commit: both would wait for ever."""
    home = await homes.open()
    async with asking(homes.url) as counting:
        lock = counting.transaction()
        await lock.start()
        await counting.fetch("select * from noetl.limit_grant('g')")
        assert await answer_of(home.log.append(brought(home, "a"))) == "PlaceLost"
        await lock.rollback()
    home.log.forget("a")
    assert await answer_of(home.log.append(brought(home, "a"))) == "ok"


async def test_nobody_counts_while_a_start_that_brings_its_claim_is_committed(
    homes: PostgresHomes,
) -> None:
    home, other = await homes.open(), await homes.open()
    late = LimitClaim(execution_id="late", group="g", at_once=1)
    async with asking(homes.url) as holding, asking(homes.url) as beside:
        lock = holding.transaction()
        await lock.start()
        await holding.execute(SAME)
        beginning = home.log.append(brought(home, "a"))
        await writer_of(beside)  # it has counted, and waits for the row
        asked = asyncio.ensure_future(other.limits.take([late]))
        while (await beside.fetchval(WAITING)) < 2:
            await asyncio.sleep(0)
        assert not asked.done()
        await lock.rollback()
    assert await answer_of(beginning) == "ok"
    assert await asked == [1]
