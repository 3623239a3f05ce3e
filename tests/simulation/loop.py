"""
An event loop whose time passes only when nothing is left to do, and which knows whose turn it is.

Every handle carries the node that asked for it (a context variable that tasks inherit). What a dead
node asked for is never run again, in the middle of whatever it did: that is a crash at an await.
What a paused node asked for waits until it goes on.
"""

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class Node:
    """A process: it runs, is paused, or is dead for good; a restart is another node."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dead = False
        self.paused = False
        self.skew = 0.0
        """Seconds that its clock is ahead of the world's."""
        self.frozen: list[Turn] = []
        self.context: Context = copy_context()
        self.context.run(NODE.set, self)

    def __repr__(self) -> str:
        return self.name


NODE: ContextVar[Node | None] = ContextVar("NODE", default=None)
"""Whose turn it is; None: the world itself."""


class Turn:
    """What asyncio calls a handle, and no more of it than is asked for: most of the world's time
    went into the bookkeeping of its handles."""

    __slots__ = ("call", "context", "given", "over", "until")

    def __init__(self, call: Any, given: tuple[Any, ...], context: Context, until: float) -> None:
        self.call = call
        self.given = given
        self.context = context
        self.until = until
        self.over = False

    def cancel(self) -> None:
        self.over = True
        self.call = self.given = None  # type: ignore[assignment]

    def cancelled(self) -> bool:
        return self.over

    def when(self) -> float:
        return self.until


class Stuck(AssertionError):
    """Nobody will ever do anything again, and the world still waits."""


class NumberedTask(asyncio.Task[Any]):
    """Sets of tasks have an order that is the same in every process, whatever it ran before."""

    def __init__(self, number: int, *given: Any, **named: Any) -> None:
        self.number = number
        super().__init__(*given, **named)

    def __hash__(self) -> int:
        return self.number


class SimulatedLoop(asyncio.BaseEventLoop):
    """One thread, no sockets, no real time."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.turns = 0
        self.most_turns = 0
        self._buried: list[Turn] = []
        """What the dead asked for: kept to the end, so that nothing is finalized in between."""
        self._left: list[Any] = []
        """Their tasks, likewise."""
        self._timers: list[tuple[float, int, Turn]] = []
        self._timed = 0
        self.tasks = 0
        self.over = False
        self.set_task_factory(_numbered)

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        """Turns until somebody stops the loop: a turn is what was ready when it began."""
        ready = self._ready  # type: ignore[attr-defined]
        while True:
            if not ready:
                self._pass_time(ready)
            for _ in range(len(ready)):
                handle = ready.popleft()
                if handle.over:
                    continue
                node = handle.context.get(NODE)
                if node is not None:
                    if node.dead:
                        self._buried.append(handle)
                        continue
                    if node.paused:
                        node.frozen.append(handle)
                        continue
                try:
                    handle.context.run(handle.call, *handle.given)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as fault:
                    self.call_exception_handler({"exception": fault})
            self.turns += 1
            if self.most_turns and self.turns > self.most_turns:
                raise Stuck(f"{self.turns} turns of the loop, and no end at {self.now:.3f} s")
            if self._stopping:  # type: ignore[attr-defined]
                return

    def _pass_time(self, ready: Any) -> None:
        timers = self._timers
        while timers and timers[0][2].over:
            heapq.heappop(timers)
        if not timers:
            raise Stuck(f"nobody will do anything any more at {self.now:.3f} s")
        self.now = max(self.now, timers[0][0])
        while timers and timers[0][0] <= self.now:
            handle = heapq.heappop(timers)[2]
            if not handle.over:
                ready.append(handle)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *given: Any, context: Context | None = None
    ) -> "Turn":
        """Of two for the same time the first comes first."""
        timer = Turn(callback, given, copy_context() if context is None else context, when)
        self._timed += 1
        heapq.heappush(self._timers, (when, self._timed, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *given: Any, context: Context | None = None
    ) -> "Turn":
        return self.call_at(self.now + delay, callback, *given, context=context)

    # ── nodes ────────────────────────────────────────────────────────────────────────────────

    def on(self, node: Node, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Let a node do something."""
        return self.create_task(work, context=node.context.copy())

    def later(self, seconds: float, call: Callable[..., Any], *given: Any) -> None:
        """The world does something, whoever asked for it."""
        self.call_at(self.now + seconds, call, *given, context=WORLD)

    def kill(self, node: Node) -> None:
        node.dead = True
        self._buried += node.frozen
        self._left += asyncio.all_tasks(self)

    def pause(self, node: Node) -> None:
        node.paused = True

    def go_on(self, node: Node) -> None:
        node.paused = False
        self._ready.extend(node.frozen)  # type: ignore[attr-defined]
        node.frozen = []

    # ── what an event loop of this kind does not have ────────────────────────────────────────

    def call_soon(  # type: ignore[override]
        self, callback: Any, *given: Any, context: Context | None = None
    ) -> "Turn":
        handle = Turn(callback, given, copy_context() if context is None else context, self.now)
        if not self.over:  # else it is finalized after the end
            self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def run_in_executor(  # type: ignore[override]
        self, _: Any, work: Callable[..., T], *given: Any
    ) -> "asyncio.Future[T]":
        """A thread that is done in the next turn."""
        done: asyncio.Future[T] = self.create_future()
        try:
            found = work(*given)
        except BaseException as fault:
            self.call_soon(_refuse, done, fault)
        else:
            self.call_soon(_answer, done, found)
        return done

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What nobody asked for; the world looks for what it must know of itself."""


def _numbered(loop: Any, work: Any, **named: Any) -> NumberedTask:
    loop.tasks += 1
    return NumberedTask(loop.tasks, work, loop=loop, **named)


def _answer(done: "asyncio.Future[T]", value: T) -> None:
    if not done.done():
        done.set_result(value)


def _refuse(done: "asyncio.Future[Any]", fault: BaseException) -> None:
    if not done.done():
        done.set_exception(fault)


WORLD = copy_context()
