"""Work that nobody cancels: it is told to stop, and waited for until it has cleaned up."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from noetl.messages.outcome import Outcome

Stop = asyncio.Future[None]
"""Done when nobody waits for the work any more."""


class Unbroken:
    """
    The calls of one tool. Cancelling a call tells its work to stop and then waits for its end, so
    that no process and no container outlives the call that started it.
    """

    def __init__(self) -> None:
        self._work: dict[asyncio.Task[Outcome], Stop] = {}

    async def run(self, begin: Callable[[Stop], Coroutine[Any, Any, Outcome]]) -> Outcome:
        loop = asyncio.get_running_loop()
        stop: Stop = loop.create_future()
        work = loop.create_task(begin(stop))
        self._work[work] = stop
        work.add_done_callback(lambda done: self._work.pop(done, None))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            tell(stop)
            await asyncio.shield(work)
            raise

    async def close(self) -> None:
        """End what still runs."""
        for stop in self._work.values():
            tell(stop)
        while self._work:
            await asyncio.gather(*self._work, return_exceptions=True)


def tell(stop: Stop) -> None:
    if not stop.done():
        stop.set_result(None)
