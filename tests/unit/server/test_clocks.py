"""Clocks that strike at the same moment."""

import asyncio
from functools import partial
from itertools import pairwise

import pytest
from tests.support.cluster import until

from noetl.server.clocks import SHARE, Strikes


class Thread:
    """The time that the loop's thread has worked."""

    def __init__(self) -> None:
        self._worked = 0.0

    def works(self, seconds: float) -> None:
        self._worked += seconds

    def time(self) -> float:
        return self._worked


@pytest.mark.rule("WAIT-3")
def test_others_have_their_turn_between_clocks_that_strike_at_once() -> None:
    """A hundred executions with a wait until midnight had held up everybody else."""
    happened: list[str] = []

    async def other() -> None:
        while happened.count("strike") < 5:
            happened.append("other")
            await asyncio.sleep(0)

    async def at_midnight() -> None:
        strikes = Strikes()
        for _ in range(5):
            strikes.add(lambda: happened.append("strike"))
        await other()

    asyncio.run(at_midnight())
    assert happened.count("strike") == 5
    assert all(one != next_one for one, next_one in pairwise(happened) if one == "strike")


@pytest.mark.rule("WAIT-3")
def test_the_loop_has_as_much_time_for_others_as_it_worked() -> None:
    """Thousands of timers that were due took the whole loop, as long as there were any."""
    thread = Thread()
    worked: list[float] = []

    async def at_midnight() -> None:
        loop = asyncio.get_running_loop()
        strikes = Strikes()

        def strike() -> None:
            worked.append(loop.time())
            thread.works(0.003)
            loop.call_soon(thread.works, 0.002)  # what follows from it

        for _ in range(4):
            strikes.add(strike)
        await until(lambda: len(worked) == 4)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("noetl.server.clocks.time.thread_time", thread.time)
        asyncio.run(at_midnight())
    assert all(after - before >= SHARE * 0.005 for before, after in pairwise(worked))


@pytest.mark.rule("WAIT-3")
def test_clocks_strike_though_others_keep_the_loop_busy() -> None:
    thread = Thread()
    struck: list[int] = []

    async def at_midnight() -> None:
        strikes = Strikes()
        for number in range(3):
            strikes.add(partial(struck.append, number))
        while len(struck) < 3:
            thread.works(60.0)
            await asyncio.sleep(0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("noetl.server.clocks.time.thread_time", thread.time)
        asyncio.run(at_midnight())
    assert struck == [0, 1, 2]


def test_a_fault_of_one_clock_stops_no_other() -> None:
    struck: list[int] = []

    async def strike_all() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: struck.append(0))
        strikes = Strikes()
        strikes.add(lambda: struck.append(1))
        strikes.add(lambda: struck.remove(9))
        strikes.add(lambda: struck.append(2))
        while 2 not in struck:
            await asyncio.sleep(0)

    asyncio.run(strike_all())
    assert struck == [1, 0, 2]
