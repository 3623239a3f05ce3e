"""A worker: it takes parts, runs them within its slots, and lets go of them when told to."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from noetl.control.dispatch import Command
from noetl.errors import NoetlError
from noetl.masking import KNOWN
from noetl.messages.fitting import Unfitting
from noetl.messages.outcome import make_error
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.event_log import Printed
from noetl.ports.result_store import ResultStore
from noetl.ports.session import PartLost, Session
from noetl.tools.table import Toolbox
from noetl.worker.turn import Turn

if TYPE_CHECKING:
    from noetl.worker.iterations import LoopWork
    from noetl.worker.part import PartWork, PlainWork
    from noetl.worker.secrecy import Sealing
    from noetl.worker.workplace import PartWorkplace, Unlocking

WITHOUT_SLOT = frozenset({"playbook", "wait"})
"""TASK-8: kinds that wait for others hold no slot."""

WARMED = frozenset({"python"})
"""Kinds whose tool has a `warm`: something that takes a while to be ready."""

LAST_BODIES = 5.0
"""Seconds that bodies have to be stored when the worker stops."""

NEWS = 0.2
"""Seconds after which what a part has not reported yet is reported."""


class Worker:
    """Runs parts. In `noetl run` it shares the process with the server; it decides nothing."""

    def __init__(
        self,
        *,
        name: str,
        session: Session,
        tools: Toolbox,
        results: ResultStore,
        bodies: Bodies,
        printed: Printed,
        keychain: "Unlocking",
        slots: int = 100,
        run_ahead: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        patience: float = math.inf,
    ) -> None:
        self.name = name
        self.sleep = sleep
        """How a pause of a pipeline passes; a test or a simulation has its own time."""
        self.session = session
        self.tools = tools
        self.results = results
        self.run_ahead = run_ahead
        self.printed = printed
        self.keychain = keychain
        self._slots = asyncio.Semaphore(slots)
        self._work: dict[asyncio.Task[None], PartWork] = {}
        self.turn = Turn()
        self._news: asyncio.Task[None] | None = None
        self._storing: set[asyncio.Task[None]] = set()
        self.bodies = bodies
        self.cans_waits = False
        """Whether a wait is answered like a call, by the outcomes of a test (`noetl test`)."""
        self.stopping = False
        self.patience = patience
        """Seconds: a part that pauses longer is given back, and taken up by any worker (TASK-8)."""

    # ── parts ─────────────────────────────────────────────────────────────────────────────────

    def begin(self, command: Command, plan: Plan, folder: str | None) -> None:
        """Run a part. What needs no waiting is done, and reported, when this returns."""
        looped = plan.steps[command.step].loop is not None
        work = work_of(looped=looped)(self, command, plan, folder)
        try:
            work.begin()
        except PartLost:
            return
        except Exception as fault:  # promise 7: one bad part does not stop the others
            self.session.broken(command, fault)

    def spawn(
        self, part: "PartWork", work: Coroutine[Any, Any, None], unbegun: Callable[[], None]
    ) -> None:
        """Run a part of a part; `unbegun` reports its end if it is cancelled before its turn."""
        task = asyncio.get_running_loop().create_task(work)
        self._work[task] = part
        task.add_done_callback(partial(self._done, unbegun))
        if self._news is None:
            self._news = asyncio.get_running_loop().create_task(self._tell_news())

    def _done(self, unbegun: Callable[[], None], task: "asyncio.Task[None]") -> None:
        part = self._work.pop(task)
        if task.cancelled():
            if not part.stopped:
                with suppress(PartLost):
                    unbegun()
            return
        fault = task.exception()
        while isinstance(fault, BaseExceptionGroup):  # of iterations that ran at once
            fault = fault.exceptions[0]
        if fault is not None and not isinstance(fault, PartLost):
            self.session.broken(part.command, fault)

    def store(self, work: Coroutine[Any, Any, None]) -> None:
        """Bodies go to their store beside the work that made them; a stop waits for them."""
        task = asyncio.get_running_loop().create_task(work)
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    def abandon(self, part: "PartWork") -> None:
        """What still runs of a part that has failed is ended."""
        for task, work in self._work.items():
            if work is part:
                task.cancel()

    def _report(self, part: "PartWork") -> None:
        with suppress(PartLost):
            part.report()

    async def _tell_news(self) -> None:
        """A task that runs long is seen to run: its `task.started` does not wait for its end."""
        while self._work:
            await asyncio.sleep(NEWS)
            for part in dict.fromkeys(self._work.values()):
                self._report(part)
        self._news = None

    async def breathe(self, part: "PartWork") -> None:
        """Let others have a turn; a part that is far ahead of the log waits for it."""
        committed = part.committed
        if committed is not None and (not self.run_ahead or self.session.far_ahead()):
            await committed
        else:
            await asyncio.sleep(0)

    def warm(self, plan: Plan) -> None:
        """Have ready what the first step will ask for: its order is not committed yet."""
        kinds = {task.kind for task in plan.steps[plan.entry].pipeline.tasks}
        for kind in kinds & WARMED:
            tool = self.tools[kind]
            from noetl.tools.tool import Warmable

            if isinstance(tool, Warmable):  # canned answers have nothing to prepare
                tool.warm()

    # ── what parts need ───────────────────────────────────────────────────────────────────────

    def slot(self, kind: str) -> AbstractAsyncContextManager[None]:
        return nullcontext() if kind in WITHOUT_SLOT else self._slots

    @property
    def sealing(self) -> "Sealing":
        return self.keychain.seals

    async def unseal(self, reference: Reference) -> Any:
        """The value of a recorded secret (KEY-3)."""
        return await self.sealing.open(reference)

    def workplace(self, part: "PartWork", kind: str) -> "PartWorkplace":
        """The same for all calls of a kind in a part."""
        place = part.places.get(kind)
        if place is None:
            from noetl.worker.workplace import PartWorkplace

            place = part.places[kind] = PartWorkplace(self, part.plan, part.command, kind)
        return place

    # ── stopping ─────────────────────────────────────────────────────────────────────────────

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None:
        """NEXT-8: running tools are told; their runs end as cancelled. All runs, or one."""
        tasks = [
            task
            for task, part in self._work.items()
            if part.command.execution_id == execution_id
            and step_run_id in (None, part.command.step_run_id)
        ]
        await self._end(tasks)

    async def let_go(self, execution_id: str, step_run_id: str, part: int, epoch: int) -> None:
        """
        The lease of this epoch is lost: end what runs of it, and say nothing.

        This very worker may have the part again, in a later epoch: that goes on.
        """
        lost = (execution_id, step_run_id, part, epoch)
        tasks = []
        for task, work in self._work.items():
            command = work.command
            if lost == (command.execution_id, command.step_run_id, command.part, command.epoch):
                work.stopped = work.lost = True
                tasks.append(task)
        await self._end(tasks)

    async def stop(self) -> None:
        """Let go of everything: what is recorded stays recorded, the rest can be resumed."""
        self.stopping = True
        for part in self._work.values():
            part.stopped = True
        await self._end(list(self._work))
        if self._storing:
            await asyncio.wait(self._storing, timeout=LAST_BODIES)
            for task in self._storing:
                task.cancel()
        if self._news is not None:
            self._news.cancel()

    async def _end(self, tasks: list["asyncio.Task[None]"]) -> None:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError, PartLost, NoetlError, ExceptionGroup):
                await task  # what went wrong is told by whoever ended it (`_done`)

    async def forget(self, scratch: str) -> None:
        """A step run is over: tools drop what they kept for it."""
        for tool in self.tools.built:
            await tool.forget(scratch)

    async def close(self) -> None:
        """Let go of everything, tools included."""
        await self.stop()
        for tool in self.tools.built:
            await tool.close()


@cache
def work_of(*, looped: bool) -> "type[LoopWork | PlainWork]":
    """Imported with the first part: a small playbook may have none (`worker.through`)."""
    from noetl.worker.iterations import LoopWork
    from noetl.worker.part import PlainWork

    return LoopWork if looped else PlainWork


def error_of(fault: BaseException) -> dict[str, Any]:
    """What the run of a part says that could not go on: its own result, or a fault of ours."""
    if isinstance(fault, Unfitting):
        return make_error("result", str(fault))
    return make_error("internal", KNOWN.masked(f"{type(fault).__name__}: {fault}"))
