"""How workers that come over HTTP are woken: they ask and are kept waiting (`ports.link`)."""

import asyncio
from collections import OrderedDict

MOST = 10_000
"""Names that are remembered; a wake-up that is lost costs a poll, no more."""


class WaitingWorker:
    """One worker that waits to be woken."""

    def __init__(self, worker: str, pool: str, *, hungry: bool) -> None:
        self.worker = worker
        self.pool = pool
        self.hungry = hungry
        self.woken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def wake(self, *, rung: bool = True) -> None:
        if not self.woken.done():
            self.woken.set_result(rung)


class HttpWakes:
    """
    Who waits, and what was rung when nobody did.

    A ring between two waits of a worker must not cost it a whole poll, so it is kept: a pool's
    until somebody hungry of that pool comes, a worker's until it comes.
    """

    def __init__(self) -> None:
        self._waiting: dict[WaitingWorker, None] = {}
        self._rung: OrderedDict[str, int] = OrderedDict()
        self._nudged: OrderedDict[str, int] = OrderedDict()
        self._closed = False

    def wake_pool(self, pool: str, parts: int) -> None:
        """Wake as many as there are parts, in the order in which they came."""
        hungry = [one for one in self._waiting if one.hungry and one.pool == pool]
        if not hungry:
            remember(self._rung, pool)
        for one in hungry[:parts]:
            self._drop(one)

    def wake_worker(self, worker: str) -> None:
        waiting = [one for one in self._waiting if one.worker == worker]
        if not waiting:
            remember(self._nudged, worker)
        for one in waiting:
            self._drop(one)

    def close(self) -> None:
        """Wake everybody, now and from now on: the server stops."""
        self._closed = True
        for one in list(self._waiting):
            self._waiting.pop(one)
            one.wake(rung=False)

    async def wait(self, worker: str, pool: str, *, hungry: bool, seconds: float) -> bool:
        """Whether there may be something to do; False after so many seconds without a ring."""
        if self._kept(worker, pool, hungry=hungry):
            return True
        if self._closed or seconds <= 0:
            return False
        one = WaitingWorker(worker, pool, hungry=hungry)
        self._waiting[one] = None
        timer = asyncio.get_running_loop().call_later(seconds, lambda: one.wake(rung=False))
        try:
            return await one.woken
        finally:
            timer.cancel()
            self._waiting.pop(one, None)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _kept(self, worker: str, pool: str, *, hungry: bool) -> bool:
        nudged = self._nudged.pop(worker, None) is not None
        rung = hungry and self._rung.pop(pool, None) is not None
        return nudged or rung

    def _drop(self, one: WaitingWorker) -> None:
        self._waiting.pop(one, None)
        one.wake()


def remember(kept: OrderedDict[str, int], name: str) -> None:
    kept[name] = 1
    if len(kept) > MOST:
        kept.popitem(last=False)
