"""Plans are made once, and kept within bounds."""

import asyncio

import pytest
from tests.support.steps import noop, playbook, step

from noetl.errors import ExecutionNotFound
from noetl.playbook.plan import Plan, digest_of
from noetl.ports.plans import Plans
from noetl.server.library import plan_from

TEXTS = [playbook(step(f"step{number}", noop("rest"))) for number in range(6)]
DIGESTS = [digest_of(text) for text in TEXTS]


class Making:
    """Counts what is asked for."""

    def __init__(self, room: int) -> None:
        self.plans = Plans(self._make, room)
        self.made: list[str] = []

    def _make(self, text: str) -> Plan:
        self.made.append(text)
        return plan_from(text)

    async def by(self, number: int) -> Plan:
        async def text() -> str:
            await asyncio.sleep(0)
            return TEXTS[number]

        return await self.plans.by(DIGESTS[number], text)


async def test_the_plans_that_were_asked_for_last_are_kept() -> None:
    making = Making(3 * len(TEXTS[0]))
    for number in range(3):
        await making.by(number)
    await making.by(0)
    for number in (3, 4):
        await making.by(number)
    kept = [number for number, digest in enumerate(DIGESTS) if making.plans.find(digest)]
    assert kept == [0, 3, 4]
    assert len(making.made) == 5


async def test_one_that_is_larger_than_the_room_is_kept_until_the_next() -> None:
    making = Making(10)
    await making.by(0)
    assert making.plans.find(DIGESTS[0]) is not None
    await making.by(1)
    assert making.plans.find(DIGESTS[0]) is None


async def test_of_many_that_want_a_plan_at_once_one_makes_it() -> None:
    making = Making(10_000)
    found = await asyncio.gather(*(making.by(0) for _ in range(10)))
    assert len(making.made) == 1
    assert all(one is found[0] for one in found)


async def test_who_comes_while_another_is_refused_asks_anew() -> None:
    """In the very turn in which the other failed: a worker asked for it again without an end."""
    making = Making(10_000)

    async def refused() -> str:
        raise ExecutionNotFound("the lease is lost")

    async def first() -> None:
        with pytest.raises(ExecutionNotFound):
            await making.plans.by(DIGESTS[0], refused)

    other = asyncio.create_task(first())
    await asyncio.sleep(0)  # it has begun; its question is answered in the next turn
    plan = await asyncio.create_task(making.by(0))
    assert making.plans.find(DIGESTS[0]) is plan
    await other
