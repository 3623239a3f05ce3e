"""How much is done between two turns of the event loop: whoever else needs one waits so long."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def most_between_turns(work: Awaitable[T], done: Callable[[], int]) -> tuple[T, int]:
    """What the work comes to, and by how much `done` grew between two turns, at the most."""
    loop, before, most = asyncio.get_running_loop(), done(), 0
    ended = False

    def turn() -> None:
        nonlocal before, most
        most, before = max(most, done() - before), done()
        if not ended:
            loop.call_soon(turn)

    turn()
    try:
        return await work, most
    finally:
        ended = True
