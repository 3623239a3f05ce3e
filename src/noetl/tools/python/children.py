"""Which child runs which call: warm ones of the same execution, new ones, or whoever is next."""

import asyncio
import os
from collections import OrderedDict, deque
from functools import partial
from operator import attrgetter
from typing import Any

from noetl.tools.bounds import Namespaces
from noetl.tools.process.folders import Folders
from noetl.tools.process.inside.frames import QUICK, SOON
from noetl.tools.process.inside.landlock import version
from noetl.tools.python.child import NOTHING, HiddenPlaces, PythonChild, start
from noetl.tools.python.early import take_early

Key = tuple[str, str, int, bool]
"""
What a child is bound to by its first call: execution, folder of libs, memory, and whether what is
loaded stays for the next call (TOOL-3).
"""
SPARES = 2
"""Children that wait, already started, for an execution that has none."""
BREATH = 0.1
"""
Seconds until a spare is started, so that it delays neither the call that took the last nor those
right after it: namespaces make a start half as long again, and it needs a core of its own.
"""
IDLE = 60.0
"""Seconds after which a child without work is ended."""
QUEUE = {QUICK: 32, SOON: 4}
"""Calls of pure code that may be in a child at once, by how long the last took (decision 0078)."""
RUN_IN = 0.05
"""Seconds that the first children of a call have to themselves before others are started."""
STALLED = 0.1
"""Seconds after which the calls behind one that does not end are asked elsewhere."""
TEXTS = 256
"""Codes whose pace is remembered."""


class Paces:
    """How soon each pure code is over: so many calls of it may queue in a child."""

    def __init__(self) -> None:
        self._depths: dict[str, int] = {}

    def depth(self, text: str | None) -> int:
        """1: a call of it is alone in its child."""
        return 1 if text is None else self._depths.get(text, 1)

    def learn(self, text: str, tag: bytes) -> None:
        depth = QUEUE.get(tag)
        if depth is None:
            self._depths.pop(text, None)
        elif self._depths.get(text) != depth:
            if len(self._depths) >= TEXTS:
                self._depths.clear()
            self._depths[text] = depth


DEPTH = attrgetter("depth")


class PythonChildren:
    """At most `most` processes; a call that finds none free waits for its turn."""

    def __init__(
        self,
        python: str,
        most: int,
        namespaces: Namespaces = "off",
        hidden: HiddenPlaces = NOTHING,
    ) -> None:
        self._hidden = hidden
        self._python = python
        self.mode: str = namespaces
        """As `confine` takes it; what the first child comes to, the others need not try."""
        self._folders = Folders("python")
        self._adopted: list[Folders] = []
        self._most = most
        self.paces = Paces()
        self._lanes = max(2, len(os.sched_getaffinity(0)))
        """So many children of one key are kept busy before calls queue in them."""
        self._busy: dict[PythonChild, Key] = {}
        self._spares: list[PythonChild] = []
        self._idle: OrderedDict[PythonChild, tuple[Key, float]] = OrderedDict()
        """The longest idle first."""
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._ending: set[asyncio.Task[None]] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closed = False

    @property
    def count(self) -> int:
        """Processes that run or could run a call."""
        return len(self._busy) + len(self._idle) + len(self._spares)

    async def take(self, key: Key, text: str | None) -> PythonChild:
        """
        A child for one call; raises OSError if the system starts no process. A call of pure code
        (`text`) may get one that has others; None: it must be alone.
        """
        while (child := self._free(key, depth := self.paces.depth(text))) is None:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:
                    self._next_turn()
                raise
        if child not in self._busy:
            self._busy[child] = key
            child.emptied = self._emptied
            self._later("spare", BREATH, self._start_spare)
        elif "stalled" not in self._timers:
            self._later("stalled", STALLED, self._look_for_stalled)
        child.light = depth > 1
        child.held += 1
        return child

    def learn(self, child: PythonChild) -> bool:
        """Whether to be confined was wanted and is not to be had; true once."""
        if self.mode in ("auto", "demand"):
            landlock = "landlock" if version() > 0 else "off"
            self.mode = "known" if child.confined() else landlock
            return self.mode == "off"
        return False

    def warm(self) -> None:
        """Start a spare before the first call asks for one."""
        if not self.count:
            self._start_spare()

    def give_back(self, child: PythonChild, key: Key, *, again: bool, strays: bool = True) -> None:
        """The call is over; `again` says whether the child may serve the same key once more."""
        if child not in self._busy:
            return
        child.held -= 1
        if again and (child.held or child.depth):
            self._next_turn(room=child.light)
            return
        self._let_go(child, key, again=again, strays=strays)

    def _emptied(self, child: PythonChild) -> None:
        """Its calls were asked elsewhere, and it is through with them: it is nobody's now."""
        key = self._busy.get(child)
        if key is not None and not child.held:
            self._let_go(child, key, again=True, strays=False)

    def _let_go(self, child: PythonChild, key: Key, *, again: bool, strays: bool) -> None:
        del self._busy[child]
        if again and not self._closed and not child.ended.done():
            self._idle[child] = (key, asyncio.get_running_loop().time())
            self._later("idle", IDLE, self._end_idle)
        else:
            self._end(child, strays=strays)
            self._later("spare", BREATH, self._start_spare)
        self._next_turn(room=child.light)

    def forget(self, execution_id: str) -> None:
        """End the idle children of an execution."""
        for child in [c for c, (key, _) in self._idle.items() if key[0] == execution_id]:
            self._end(child, strays=False)

    async def close(self) -> None:
        """End all; a call that still runs learns that its child died."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        for child in [*self._idle, *self._spares]:
            self._end(child, strays=False)
        for child in list(self._busy):
            child.kill()
            await child.ended
        while self._ending or self._busy:
            await asyncio.gather(*self._ending)
            await asyncio.sleep(0)
        for folders in (self._folders, *self._adopted):
            folders.close()

    def _free(self, key: Key, depth: int) -> PythonChild | None:
        if self._closed:
            self._next_turn()  # so that all who wait learn it
            raise OSError("the worker is closing")
        for child in [c for c, (bound, _) in self._idle.items() if bound == key][::-1]:
            del self._idle[child]
            if not child.ended.done():
                return child
            self._end(child, strays=False)
        if depth > 1 and (busy := self._least_busy(key, depth)) is not None:
            return busy
        while self._spares:
            child = self._spares.pop(0)
            if not child.ended.done():
                return child
            self._end(child, strays=False)
        if self.count >= self._most and self._idle:
            self._end(next(iter(self._idle)), strays=False)
        return self._started() if self.count < self._most and self._may_start() else None

    def _least_busy(self, key: Key, depth: int) -> PythonChild | None:
        """One in which a call of pure code may queue, if enough of them work already."""
        same = [child for child, bound in self._busy.items() if bound == key and child.light]
        if len(same) < self._lanes and self.count < self._most:
            return None
        least = min(same, key=DEPTH, default=None)
        return least if least is not None and least.depth < depth else None

    def _look_for_stalled(self) -> None:
        long_ago = asyncio.get_running_loop().time() - STALLED
        queued = [child for child in self._busy if child.depth > 1]
        for child in queued:
            if child.since <= long_ago:
                child.light = False
                child.take_back()
        if queued:
            self._later("stalled", STALLED, self._look_for_stalled)

    def _started(self) -> PythonChild:
        early = take_early(self._python, self.mode, self._hidden)
        if early is not None:
            self._adopted.append(early.folders)
            return PythonChild(early.started, early.folder)
        folder = self._folders.new()
        return PythonChild(start(self._python, folder, self.mode, self._hidden), folder)

    def _may_start(self) -> bool:
        """As many at once as can run: more would only make each other late (decision 0079)."""
        new = [child.begun for child in self._busy if not child.answered]
        long_ago = asyncio.get_running_loop().time() - RUN_IN
        if len(new) < self._lanes or min(new) <= long_ago:
            return True
        self._later("run_in", RUN_IN, partial(self._next_turn, room=True))
        return False

    def _next_turn(self, *, room: bool = False) -> None:
        """Who waited longest looks again; where calls may queue, all of them do."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                if not room:
                    return

    def _later(self, name: str, seconds: float, what: Any) -> None:
        def fire() -> None:
            del self._timers[name]
            what()

        if name not in self._timers and not self._closed:
            self._timers[name] = asyncio.get_running_loop().call_later(seconds, fire)

    def _start_spare(self) -> None:
        if len(self._spares) < SPARES and self.count < self._most:
            try:
                self._spares.append(self._started())
            except OSError:  # the call that needs it will say so
                return
            self._later("spare", BREATH, self._start_spare)

    def _end_idle(self) -> None:
        long_ago = asyncio.get_running_loop().time() - IDLE
        for child in [c for c, (_, since) in self._idle.items() if since <= long_ago]:
            self._end(child, strays=False)
        if self._idle:
            self._later("idle", IDLE, self._end_idle)

    def _end(self, child: PythonChild, *, strays: bool) -> None:
        self._idle.pop(child, None)
        if child in self._spares:
            self._spares.remove(child)
        child.take_back(all_of_them=True)
        child.kill(strays=strays)
        task = asyncio.get_running_loop().create_task(child.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
