"""A world that never ends is a violation with its place, not a run that hangs."""

import asyncio

import pytest
from tests.simulation.audit import Violation
from tests.simulation.endless import bounded


async def asks_for_ever() -> None:
    while True:
        try:
            raise ConnectionError
        except Exception:
            continue


def test_who_asks_for_ever_in_one_turn_is_named() -> None:
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(Violation, match="asks_for_ever"), bounded(0.1):
            loop.run_until_complete(asks_for_ever())
    finally:
        loop.close()
