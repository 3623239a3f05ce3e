"""Work that nobody cancels: it is told to stop, and waited for until it has cleaned up."""

import asyncio
from abc import abstractmethod
from typing import Any

from noetl.messages.outcome import Outcome
from noetl.tools.frame import FramedTool
from noetl.tools.tool import ToolCall, Workplace

Stop = asyncio.Future[None]
"""Done when nobody waits for the work any more."""


class UnbrokenTool(FramedTool):
    """
    Cancelling a call tells its work to stop and then waits for its end, so that no process and no
    container outlives the call that started it.
    """

    keeps_time = True

    def __init__(self) -> None:
        self._work: dict[asyncio.Task[Outcome], Stop] = {}

    @abstractmethod
    async def _begun(self, call: ToolCall[Any], workplace: Workplace, stop: Stop) -> Outcome:
        """The work of one call; what a stopped one comes to nobody reads."""

    async def _run(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        loop = asyncio.get_running_loop()
        stop: Stop = loop.create_future()
        work = loop.create_task(self._begun(call, workplace, stop))
        self._work[work] = stop
        work.add_done_callback(lambda done: self._work.pop(done, None))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            tell(stop)
            await asyncio.wait({work})
            work.exception()  # it is seen here, and nobody's any more
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


async def ends_in_time(work: asyncio.Future[Any], stop: Stop, total: float | None) -> bool:
    """Whether the work is done before its time is over and before anybody stops it."""
    either: set[asyncio.Future[Any]] = {work, stop}
    await asyncio.wait(either, timeout=total, return_when=asyncio.FIRST_COMPLETED)
    return work.done()
