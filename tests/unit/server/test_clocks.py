"""Clocks that strike at the same moment."""

import asyncio

import pytest

from noetl.server.clocks import Strikes


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
    assert happened == ["other", "strike"] * 5


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
