"""Threads for libraries that wait inside: a few for each, so that one that hangs stops no other."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Calls that block, off the event loop."""

    def __init__(self, name: str, most: int = 4) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: call(*args, **named))

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
