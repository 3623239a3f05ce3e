"""Threads for libraries that wait inside: a few for each, so that one that hangs stops no other."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Calls that block, off the event loop."""

    def __init__(self, name: str, most: int = 4) -> None:
        self._name = name
        self._most = most

    @cached_property
    def _pool(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor  # many who may call never do

        return ThreadPoolExecutor(self._most, thread_name_prefix=self._name)

    async def run(self, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: call(*args, **named))

    def close(self) -> None:
        if "_pool" in self.__dict__:
            self._pool.shutdown(wait=False, cancel_futures=True)
