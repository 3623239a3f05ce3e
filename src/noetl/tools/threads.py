"""Calls of libraries that wait inside: each in a thread of its own that nobody has to wait for."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

Done = TypeVar("Done")


def fetched(source: AsyncIterator[Done], most: int) -> Iterator[Done]:
    """The same for a thread, from the event loop that runs now, up to so many at a time."""
    loop = asyncio.get_running_loop()

    async def some() -> list[Done]:
        taken: list[Done] = []
        async for one in source:
            taken.append(one)
            if len(taken) == most:
                break
        return taken

    def each() -> Iterator[Done]:
        while taken := asyncio.run_coroutine_threadsafe(some(), loop).result():
            yield from taken

    return each()


async def in_thread(work: Callable[[], Done], stop: Callable[[], object]) -> Done:
    """
    What `work` returns or raises. Cancelling calls `stop`, which ends the work from outside, and
    goes on at once. The thread is a daemon: a peer that went silent keeps no process alive.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Done] = loop.create_future()

    def answer(tell: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            tell(value)

    def run() -> None:
        try:
            told: tuple[Callable[[Any], None], Any] = (done.set_result, work())
        except BaseException as fault:
            told = (done.set_exception, fault)
        try:
            loop.call_soon_threadsafe(answer, *told)
        except RuntimeError:
            return  # the loop is closed; nobody waits any more

    threading.Thread(target=run, name="waiting-call", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        threading.Thread(target=stop, name="stopping-call", daemon=True).start()
        raise
