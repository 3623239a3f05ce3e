"""The answer to an append: it comes when the decision is committed, or was refused."""

import asyncio
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

from noetl.messages.events import Event


class Commit:
    """
    Like a future, at a tenth of its cost: most commits are awaited by nobody.

    Callbacks run at once, on the thread of the event loop, when the answer is there; a future is
    made for each who awaits, so that one who is cancelled takes nothing from the others. A refusal
    that nobody asks for stays quiet: it is told to whoever is responsible for the execution.
    """

    __slots__ = ("_callbacks", "_done", "_fault", "refused")

    def __init__(self) -> None:
        self.refused: Sequence[Event] = ()
        """Of a report to another process: outcomes that were recorded otherwise (LOOP-5)."""
        self._done = False
        self._fault: BaseException | None = None
        self._callbacks: list[Callable[[Commit], None]] | None = None

    def done(self) -> bool:
        return self._done

    def is_kept(self) -> bool:
        """Whether it is committed already: then nobody need wait for it."""
        return self._done and self._fault is None

    def exception(self) -> BaseException | None:
        """Why it was refused; None when it was committed, or before the answer."""
        return self._fault

    def add_done_callback(self, callback: "Callable[[Commit], None]") -> None:
        if self._done:
            callback(self)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def settle(self, fault: BaseException | None = None) -> None:
        """Give the answer. Called once, on the thread of the event loop."""
        self._done, self._fault = True, fault
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for callback in callbacks:
                callback(self)

    def __await__(self) -> Generator[Any, None, None]:
        if not self._done:
            answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            # First of all: whatever a callback does, nobody waits for ever.
            self._callbacks = [partial(_wake, answer), *(self._callbacks or ())]
            yield from answer
        if self._fault is not None:
            raise self._fault


def _wake(answer: "asyncio.Future[None]", _: Commit) -> None:
    if not answer.done():
        answer.set_result(None)


def committed() -> Commit:
    """A commit that needs no waiting."""
    commit = Commit()
    commit.settle()
    return commit
