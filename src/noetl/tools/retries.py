"""TASK-11: `client_retries` further tries inside a tool, before the policy sees the outcome."""

import asyncio
from collections.abc import Awaitable, Callable

from noetl.messages.outcome import Outcome

Pause = Callable[[float], Awaitable[object]]
FIRST, LONGEST = 0.1, 2.0
"""Seconds between two tries: the first pause, and the longest."""


async def repeated(
    send: Callable[[], Awaitable[Outcome]], tries: int, pause: Pause = asyncio.sleep
) -> Outcome:
    """Repeats what may pass. A timeout is none of that: the time is the task's to give again."""
    for sent in range(tries):
        outcome = await send()
        error = outcome.error
        if error is None or not error["retryable"] or error["kind"] == "timeout":
            return outcome
        await pause(min(FIRST * 2**sent, LONGEST))
    return await send()
