"""The control plane of a node: what the API, the workers and the command line may ask of it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from noetl.control.execution import Execution
from noetl.errors import (
    ExecutionNotFound,
    InputsRejected,
    LogUnavailable,
    NoetlError,
    OutcomeUnknown,
    PlaceLost,
    PlaybookNotFound,
    PlaybookRejected,
    VersionConflict,
)
from noetl.keychain.door import KeychainDoor
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events
from noetl.messages.depth import refuse_deep
from noetl.node.children import Children
from noetl.node.following import Following
from noetl.node.limited import LimitedStarts
from noetl.node.orders import Orders
from noetl.node.playbooks import PlaybookFinder, record_refusal
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.event_log import ExecutionRow
from noetl.ports.large import written_values
from noetl.ports.result_store import ResultStore
from noetl.server.active import ActiveExecution
from noetl.server.finding import Version
from noetl.server.library import Library
from noetl.server.ownership import Ownership
from noetl.server.replay import rows_of
from noetl.server.report import report_of
from noetl.server.server import Server
from noetl.settings import Settings
from noetl.worker.worker import WITHOUT_SLOT

if TYPE_CHECKING:
    from noetl.messages.written import WrittenValues
    from noetl.node.restarts import Restarts
    from noetl.ports.limits import LimitClaim
    from noetl.ports.storage import Storage
    from noetl.server.caching import TaskCache
    from noetl.server.limits import LimitKeeper

PAYLOAD = "the payload"

LATELY = 5_000
"""Events that are looked through for progress when a process has died."""

AGAIN = 1.0
"""Seconds after which work that fell to a fault of ours is taken up again."""

ATTEMPTS = 5
"""Starts of one request: a place can be lost between two of them, and seldom twice (LIMIT-3)."""

Says = Callable[[str], None]


class ControlPlane:
    """Server, ownership and stores of one process, with or without workers of its own."""

    def __init__(
        self,
        settings: Settings,
        storage: "Storage",
        *,
        results: ResultStore,
        adopts: bool,
        says: Says = print,
    ) -> None:
        self.settings = settings
        self.storage = storage
        self.results = results
        self.says = says
        self._tasks: list[asyncio.Task[None]] = []
        bodies = Bodies(results)
        self.keychain = KeychainDoor(
            lambda: storage.credentials, storage.folder, storage.key, bounds=settings.bounds
        )
        self.server = Server(
            log=storage.log,
            results=results,
            bodies=bodies,
            me=storage.owners.me,
            run_ahead=settings.run_ahead,
        )
        self.library = Library(storage, settings.bounds, bodies.load)
        self.ownership = Ownership(storage, self.server, self.library, says, adopts=adopts)
        self.server.aside = self
        self.playbooks = PlaybookFinder(storage, shared=settings.db is not None)
        self.register = self.playbooks.register
        self.bodies = bodies
        self.children = Children(self)
        self.limited = LimitedStarts(self)
        self._starting: dict[str, asyncio.Future[None]] = {}
        """Starts whose commit is awaited: one at a time under one id."""
        orders = Orders(self)
        self.order, self.signal, self.answer = orders.order, orders.signal, orders.answer
        self.user = ""
        """Who starts executions here where nobody else is named."""
        self.unproved: Counter[str] = Counter()
        """Calls of hooks that proved nothing, by trigger; "" for those of none."""
        self.unproved_why: dict[str, str] = {}
        """By trigger, what the last such call lacked: for whoever may look at triggers."""
        following = Following(self)
        self.ended, self.follow = following.ended, following.follow
        self.closing = asyncio.Event()
        """Set when this process stops: streams and long polls end."""

    @property
    def name(self) -> str:
        return self.storage.owners.me

    @cached_property
    def limits(self) -> "LimitKeeper":
        from noetl.server.limits import LimitKeeper  # few playbooks have one

        if not self.ownership.adopts:  # whoever started something stays with it
            return LimitKeeper(self.server, self.storage.limits, self.says)
        from noetl.server.parking import Parking

        parking = Parking(self.server, self.ownership, self.storage.limits)
        return LimitKeeper(self.server, self.storage.limits, self.says, parking)

    @cached_property
    def cache(self) -> "TaskCache":
        from noetl.server.caching import TaskCache

        return TaskCache(self.storage.cache, self.says)

    @cached_property
    def restarts(self) -> "Restarts":
        from noetl.node.restarts import Restarts  # few ever ask for one

        return Restarts(self)

    # ── starting ─────────────────────────────────────────────────────────────────────────────

    def begin(
        self,
        plan: Plan,
        *,
        execution_id: str,
        payload: dict[str, Any],
        ctx: dict[str, Any] | None = None,
        version: str | None,
        path: str | None = None,
        folder: str | None = None,
        claim: "LimitClaim | None" = None,
        written: "WrittenValues | None" = None,
        **more: Any,
    ) -> ActiveExecution:
        """Begin an execution; it exists when `begun` is committed. `more`: of StartExecution."""
        if written is None:
            refuse_deep([payload, ctx], PAYLOAD)
        if more.get("parent_execution_id") is None:
            more.setdefault("sender", self.user)
        request = r.StartExecution(
            execution_id=execution_id,
            path=plan.path if path is None else path,
            digest=plan.digest,
            folder=folder,
            version=version,
            payload=payload,
            ctx=ctx or {},
            store=self.results.name,
            written=written,
            **more,
        )
        active = self.server.start(request, plan, folder, self.ownership.term, claim)
        return self.ownership.mind(active)

    async def start(
        self,
        plan: Plan,
        *,
        execution_id: str,
        wanted: Callable[[], bool] = lambda: True,
        **request: Any,
    ) -> ActiveExecution | None:
        """
        Begin an execution and wait for its commit (promise 1); None where another began it under
        this id before, or where it is not `wanted` any more once all is known. Raises
        OutcomeUnknown where the log went away before it answered: if the decision is there after
        all, `Ownership.compare` finds it and it runs (T23).
        """
        while (before := self._starting.get(execution_id)) is not None:
            # A call whose answer took too long is made again while it is still under way.
            await asyncio.wait([before])
            if await self.storage.executions.find(execution_id) is not None:
                return None
        if self.server.find(execution_id) is not None:
            return None
        began = self._starting[execution_id] = asyncio.get_running_loop().create_future()
        try:
            return await self._start(plan, execution_id, request, wanted)
        finally:
            del self._starting[execution_id]
            began.set_result(None)

    async def _start(
        self,
        plan: Plan,
        execution_id: str,
        request: dict[str, Any],
        wanted: Callable[[], bool],
        attempt: int = 1,
    ) -> ActiveExecution | None:
        limited: dict[str, Any] = {}
        if plan.limit is not None:
            limited = await self.limited.asked(plan, execution_id, request, hopes=attempt == 1)
        if not wanted():  # from here on nothing is awaited until it is decided
            if "limit" in limited and "claim" not in limited:  # it has a place, or waits for one
                await self.limits.give_back(execution_id)
            return None
        active = self.begin(plan, execution_id=execution_id, **(request | limited))
        try:
            assert active.begun is not None, "it was decided"
            await active.begun
            gone = active.finished.done() and not active.finished.cancelled()
            if gone or active.execution.seq == 0:
                await active.finished  # raises what kept it from being decided (promise 1)
        except PlaceLost:  # there was none to take, or this process was taken for dead meanwhile
            self.storage.log.forget(execution_id)
            self.limits.reached.note(plan.path)
            if attempt == ATTEMPTS:
                raise
            return await self._start(plan, execution_id, request, wanted, attempt + 1)
        except VersionConflict:
            self.storage.log.forget(execution_id)
            if limited:
                await self.limited.ended_before(execution_id)
            return None
        except LogUnavailable as away:
            self.storage.log.forget(execution_id)  # the next one with this key may begin it
            raise OutcomeUnknown(
                f"it is not known whether execution {execution_id} has started: {away}; try again "
                "with the same Idempotency-Key"
            ) from away
        return active

    async def execute(
        self,
        *,
        payload: dict[str, Any],
        ctx: dict[str, Any] | None = None,
        playbook_id: str | None = None,
        path: str | None = None,
        version: Version = None,
        key: str | None = None,
        traceparent: str | None = None,
        triggered: bool = False,
        depth: int = 0,
        sender: str = "",
        strict: bool = False,
    ) -> ExecutionRow:
        """
        SRV-2. The answer comes after the commit (promise 1); one key starts one execution.

        `traceparent` is the trace of whoever asks (EVT-1). `triggered`: the key is that of a
        trigger's start, and means it whatever the payload says (START-2). `strict` refuses a
        payload that does not fit before anything is recorded (VAL-7).
        """
        from noetl.messages.trace import trace_in

        trace_id, parent_id = trace_in(traceparent)
        asked: dict[str, Any] = {
            "payload": payload,
            "ctx": ctx,
            "trace_id": trace_id,
            "parent_id": parent_id,
            "trigger": key if triggered else None,
            "depth": depth,
            "sender": sender,
        }
        try:
            entry = await self.playbooks.entry(playbook_id, path, version)
            plan = await self.library.plan_by(entry.digest)
        except (PlaybookNotFound, PlaybookRejected) as wrong:
            named = (path or playbook_id or "", None if version is None else str(version))
            wrong.execution_id = await record_refusal(self, *named, wrong, **asked)
            raise
        if strict and (misfits := await self.library.warnings(entry.digest, payload)):
            raise InputsRejected(tuple(misfits))
        written = await written_values([payload, ctx or {}], PAYLOAD)
        asks = [key] if triggered else [entry.playbook_id, payload, *([ctx] if ctx else [])]
        execution_id, found = await self.playbooks.claimed(asks, key, triggered=triggered)
        if found is not None:
            return found
        version = str(entry.version)
        asked |= {"version": version, "written": written}
        active = await self.start(plan, execution_id=execution_id, **asked)
        if active is None:
            return await self.row(execution_id)
        return self.server.appender.row(active, active.started_at)

    async def take_up(self, execution_id: str) -> ActiveExecution:
        """Own an execution whose owner is gone, and go on where its log stands (`noetl resume`)."""
        row = await self.row(execution_id)
        died = row.finished_at is None and await self.storage.owners.claim(execution_id)
        execution, plan, folder = await self.library.load(execution_id)
        if execution.stop and not execution.finished:
            await self._stop_children(execution_id)
        progressed = died and await has_progressed(self.storage, execution)
        active = self.ownership.mind(self.server.go_on(execution, plan, row, folder))
        active.resumed, active.careful = True, died
        if died:
            self._record_losses(active, counted=not progressed)
        if execution.status == "paused":
            self.server.receive(active, r.ResumeExecution(sender=self.user))
        return active

    def _record_losses(self, active: ActiveExecution, *, counted: bool) -> None:
        """T11: what a process had begun when it died; the third time without progress ends it."""
        for run in list(active.execution.runs.values()):
            tasks = active.plan.steps[run.step].pipeline.tasks
            waited = all(task.kind in WITHOUT_SLOT for task in tasks)  # a child counts its own
            for part in list(run.parts.values()):
                if part.worker is not None:
                    lost = r.LeaseLost(
                        step_run_id=run.step_run_id,
                        part=part.part,
                        epoch=part.epoch,
                        worker=part.worker,
                        counted=counted and not waited,
                    )
                    self.server.receive(active, lost)

    # ── orders ───────────────────────────────────────────────────────────────────────────────

    async def cancel_abandoned(self, execution_id: str, reason: str, sender: str = "") -> None:
        """End an execution that nobody runs, and its children; HomeInUse where somebody does."""
        row = await self.row(execution_id)
        await self.storage.owners.claim(execution_id)
        await self._stop_children(execution_id)
        execution, plan, folder = await self.library.load(execution_id)
        active = self.server.go_on(execution, plan, row, folder)
        self.server.receive(active, r.CancelExecution(reason=reason, sender=sender))
        self.server.handout.end_stopped(active)
        await active.finished

    async def _stop_children(self, execution_id: str) -> None:
        """TOOL-1. They end first: once their parent has ended nobody would remember them."""
        for row in await self.storage.executions.children(execution_id):
            if row.finished_at is None:
                await self.cancel_abandoned(row.execution_id, "the parent was cancelled")

    # ── looking ──────────────────────────────────────────────────────────────────────────────

    async def row(self, execution_id: str) -> ExecutionRow:
        row = await self.storage.executions.find(execution_id)
        if row is None:
            where = "" if self.settings.db is not None else f" in {self.settings.home}"
            raise ExecutionNotFound(f"no execution '{execution_id}'{where}; see `noetl list`")
        return row

    async def state(self, execution_id: str) -> tuple[Execution, Plan]:
        """Rebuilt from the log (EVT-5): any server can, whoever owns the execution."""
        await self.row(execution_id)
        execution, plan, _ = await self.library.load(execution_id)
        return execution, plan

    async def summary(self, execution_id: str, *, wait: float = 0.0) -> dict[str, Any]:
        """What `noetl run --json` prints; before the end with the status as it stands."""
        await self.ended(execution_id, wait)
        row = await self.row(execution_id)
        execution, _ = await self.state(execution_id)
        until = row.finished_at or int(time.time() * 1000)
        report = await report_of(execution, self.results, until - row.started_at)
        return {field: getattr(report, field) for field in report.__struct_fields__}

    # ── going on and stopping ────────────────────────────────────────────────────────────────

    def go(self, *works: Callable[[], Any]) -> None:
        """Work that goes on as long as the process does."""
        loop = asyncio.get_running_loop()
        for work in works:
            named = loop.create_task(self._for_ever(work), name=work.__qualname__)
            self._tasks.append(named)

    async def _for_ever(self, work: Callable[[], Any]) -> None:
        """Promise 7: a fault in one of these is said, and the work goes on."""
        while True:
            try:
                await work()
            except NoetlError as away:  # a log or a store that does not answer is nobody's bug
                self.says(f"{work.__qualname__} is tried again: {away}")
                await asyncio.sleep(AGAIN)
            except Exception as fault:
                self.says(f"a bug in NoETL: {type(fault).__name__}: {fault}")
                await asyncio.sleep(AGAIN)

    async def halt(self) -> None:
        self.closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for used in self.__dict__.keys() & {"limits", "cache"}:
            await getattr(self, used).close()

    async def close(self) -> None:
        """Write what waits, and let go of everything."""
        await self.halt()
        await self.keychain.close()
        await self.results.close()
        await self.storage.close()


async def has_progressed(storage: "Storage", execution: Execution) -> bool:
    """Whether anything was recorded since the death before this one."""
    progress = False
    async for row in rows_of(storage.log, execution.execution_id, max(0, execution.seq - LATELY)):
        for event in decode_events(row.events):
            if isinstance(event, e.LeaseExpired):
                progress = False
            elif isinstance(event, e.TaskDone | e.IterationDone | e.IterationFailed):
                progress = True
    return progress
