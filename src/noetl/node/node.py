"""
One process of NoETL, put together from its settings.

`noetl run`, a server and a worker are one assembly of the same parts: a control plane, a work
plane, an API, each there or not. `Node` has a control plane and, embedded, a worker in the same
process; `node.work_plane` is a worker alone.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from noetl import __version__
from noetl.adapters.memory.result_store import MemoryResultStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.execution import Execution
from noetl.errors import NoetlError
from noetl.messages import requests as r
from noetl.node.control_plane import ControlPlane, Says
from noetl.node.direct import DirectSession
from noetl.node.opening import lock_home, open_local_storage, open_results, open_settings_storage
from noetl.node.watchdog import Watchdog
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.event_log import ExecutionRow, Printed, PrintedLine
from noetl.ports.result_store import ResultStore
from noetl.ports.roster import ServerRow, WorkerRow
from noetl.ports.storage import Storage
from noetl.server.active import ActiveExecution
from noetl.server.dispatcher import Dispatcher
from noetl.server.ids import new_execution_id
from noetl.server.retention import forget_old, sweep
from noetl.settings import Settings
from noetl.tools.table import Toolbox
from noetl.worker.through import run_through
from noetl.worker.worker import Worker
from noetl.worker.workplace import WorkerContext

ROSTER = 3.0
"""Seconds between two entries into the list of who is there."""

HOUSEKEEPING = 600.0
"""Seconds between two looks for what retention removes."""

SILENT = 5.0
"""Seconds without an answer of the log after which a server is not ready."""


class Overheard:
    """Keeps printed lines where they belong, and lets whoever shows them live hear them too."""

    def __init__(self, printed: Printed) -> None:
        self._printed = printed
        self.listeners: list[Callable[[PrintedLine], None]] = []
        self.read = printed.read

    def keep(self, line: PrintedLine) -> None:
        self._printed.keep(line)
        for listener in self.listeners:
            listener(line)


class Node:
    """What every process with a control plane has."""

    def __init__(
        self, settings: Settings, storage: Storage, *, results: ResultStore, adopts: bool, says: Says
    ) -> None:
        self.settings = settings
        self.storage = storage
        self.results = results
        self.says = says
        self.bodies = Bodies(results)
        self.control = ControlPlane(
            settings, storage, results=results, bodies=self.bodies, adopts=adopts, says=says
        )
        self.server = self.control.server
        self.watchdog = Watchdog()
        self._tasks: list[asyncio.Task[None]] = []

    def go(self, *works: Callable[[], Any]) -> None:
        """Work that goes on as long as the process does."""
        loop = asyncio.get_running_loop()
        for work in works:
            self._tasks.append(loop.create_task(self._for_ever(work)))

    async def _for_ever(self, work: Callable[[], Any]) -> None:
        """Promise 7: a fault in one of these is said, and the work goes on."""
        while True:
            try:
                await work()
            except Exception as fault:
                self.says(f"a fault of NoETL itself: {type(fault).__name__}: {fault}")
                await asyncio.sleep(1.0)

    async def halt(self) -> None:
        self.control.closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class EmbeddedNode(Node):
    """Server and worker in one process on one home: `noetl run`."""

    def __init__(
        self, settings: Settings, storage: Storage, *, results: ResultStore, tools: Toolbox
    ) -> None:
        super().__init__(settings, storage, results=results, adopts=False, says=_unsaid)
        self.overheard = Overheard(storage.printed)
        self.session = DirectSession(self.server, self.control.children, f"local-{os.getpid()}")
        self.worker = Worker(
            name=self.session.name,
            session=self.session,
            tools=tools,
            results=results,
            bodies=self.bodies,
            context=WorkerContext(
                printed=self.overheard,
                keychain=self.control.keychain,
                broken=self.session.broken,
                far_ahead=self.session.far_ahead,
            ),
            slots=settings.slots,
            run_ahead=settings.run_ahead,
        )
        self.session.worker = self.worker
        self.server.runner = self.session

    @classmethod
    async def open(cls, settings: Settings) -> "EmbeddedNode":
        return cls(
            settings,
            await open_local_storage(settings),
            results=open_results(settings, local=True),
            tools=Toolbox(settings.home, bounds=settings.bounds),
        )

    @classmethod
    def in_memory(cls, settings: Settings, tools: Toolbox) -> "EmbeddedNode":
        """The same system on a storage that is gone with the process: tests and simulations."""
        return cls(settings, MemoryStorage(), results=MemoryResultStore(), tools=tools)

    async def start(
        self,
        text: str,
        *,
        folder: str | None,
        payload: dict[str, Any],
        execution_id: str | None = None,
        plan: Plan | None = None,
    ) -> ActiveExecution:
        plan = await self.control.library.plan_of(text, folder, plan)
        active = self.control.begin(
            plan,
            execution_id=execution_id or new_execution_id(),
            payload=payload,
            version=plan.version,
            folder=folder,
        )
        return self._watched(active)

    async def resume(self, execution_id: str) -> ActiveExecution:
        return self._watched(await self.control.take_up(execution_id))

    def _watched(self, active: ActiveExecution) -> ActiveExecution:
        if not self._tasks:
            self.go(self.control.ownership.watch)
        return active

    async def cancel(self, execution_id: str, reason: str) -> None:
        await self.control.cancel_abandoned(execution_id, reason)

    async def row(self, execution_id: str) -> ExecutionRow:
        return await self.control.row(execution_id)

    async def load(self, execution_id: str) -> tuple[Execution, Plan, str | None]:
        """The state of an execution, and the plan that it began with."""
        return await self.control.library.load(execution_id)

    async def clean_up(self, active: ActiveExecution) -> None:
        """RES-4: after an end, remove what nothing refers to and what is too old to keep."""
        if active.resumed:  # a crash may have left bodies without a place in the log
            await sweep(self.storage.log, self.results, active.execution_id)
        days = self.settings.retention_days
        if days is not None:
            before = int((time.time() - days * 86_400) * 1000)
            await forget_old(self.storage.prune, self.results, before)

    async def close(self) -> None:
        await self.halt()
        await self.worker.close()
        await self.control.keychain.close()
        with suppress(NoetlError):
            for active in self.server.owned:
                await self.storage.owners.release(active.execution_id)
        await self.results.close()
        await self.storage.close()


def _unsaid(_: str) -> None:
    """What a run has to say is shown by whoever attends it."""


class ServerNode(Node):
    """A server process: control plane, dispatcher to workers elsewhere, and what the API asks."""

    def __init__(
        self, settings: Settings, storage: Storage, *, results: ResultStore, says: Says = print
    ) -> None:
        super().__init__(settings, storage, results=results, adopts=True, says=says)
        control = self.control
        self.dispatcher = Dispatcher(
            self.server,
            name=storage.owners.me,
            version=__version__,
            printed=storage.printed,
            through=run_through,
            bring=control.ownership.bring,
            ask=control.answers.answer,
            sure=control.ownership.sure,
            ttl=settings.lease_ttl,
        )
        self.server.runner = self.dispatcher
        control.ownership.released = self.dispatcher.release
        self.address = ""
        """Where others reach it; known once it listens."""
        self._began = int(time.time() * 1000)
        self._closers: list[Any] = []
        self._switchboard: Any = None

    @property
    def name(self) -> str:
        return self.dispatcher.name

    @classmethod
    async def open(cls, settings: Settings, *, says: Says = print) -> "ServerNode":
        """Wait for database and queue, where they are away, and begin to serve."""
        lock = lock_home(settings)
        storage = await open_settings_storage(settings, says)
        node = cls(settings, storage, results=open_results(settings), says=says)
        node._closers.append(lock)
        await node.begin()
        return node

    async def begin(self) -> None:
        await self.control.ownership.begin()
        if self.settings.queue is not None:
            from noetl.adapters.nats.switchboard import NatsSwitchboard

            switchboard = NatsSwitchboard(self.settings.queue, self.dispatcher, says=self.says)
            await switchboard.open()
            self._switchboard = switchboard
            self.dispatcher.granting.notifiers.append(switchboard.notifier)
            self.dispatcher.reachable = lambda: switchboard.there
            self._closers.append(switchboard)
        watch = self.control.ownership.watch
        self.go(
            self.dispatcher.watch, watch, self._enter, self._keep_house, self.watchdog.watch
        )

    async def close(self) -> None:
        """Stop taking, write what waits, hand over."""
        await self.halt()
        for closer in reversed(self._closers):
            await closer.close()
        await self.dispatcher.record_claims()
        with suppress(NoetlError):
            await self.storage.roster.server_gone(self.name)
        await self.control.close()
        await self.results.close()

    def health(self) -> dict[str, Any]:
        """Ready while it does not stop, and the log and the queue are there."""
        waits = []
        if self.control.closing.is_set():
            waits.append("this server stops")
        if time.monotonic() - self.control.ownership.looked > SILENT:
            waits.append("the log does not answer")
        if self._switchboard is not None and not self._switchboard.there:
            waits.append("the queue does not answer")
        return {"live": True, "ready": not waits, "waits_for": waits}

    async def counts(self) -> dict[str, Any]:
        executions = self.storage.executions
        return {
            "executions": {
                status: await executions.count(status)
                for status in ("queued", "running", "paused", "completed", "failed", "cancelled")
            },
            "owned": len(self.server.owned),
            "parts_waiting": self.dispatcher.parts.pools(),
            "leases": len(self.dispatcher.leases),
            "workers": len(self.dispatcher.granting.seen),
            "uncommitted": self.server.uncommitted,
            "longest_stall_ms": self.watchdog.longest_ms,
            "set_aside": dict(self.control.ownership.aside),
        }

    async def _enter(self) -> None:
        """Keep the list of who is there."""
        roster = self.storage.roster
        while True:
            now = int(time.time() * 1000)
            await roster.server_seen(
                ServerRow(
                    name=self.name,
                    address=self.address,
                    version=__version__,
                    started_at=self._began,
                    seen_at=now,
                )
            )
            for seen in list(self.dispatcher.granting.seen.values()):
                await roster.seen(
                    WorkerRow(
                        name=seen.name,
                        pool=seen.pool,
                        slots=seen.slots,
                        version=seen.version,
                        host=seen.host,
                        pid=seen.pid,
                        started_at=int(seen.since * 1000),
                        seen_at=int(seen.at * 1000),
                        busy=self.dispatcher.leases.load_of(seen.name),
                        server=self.name,
                    )
                )
            await asyncio.sleep(ROSTER)

    async def _keep_house(self) -> None:
        """RES-4, and keys that nobody will use again."""
        while True:
            now = int(time.time() * 1000)
            await self.storage.keys.prune(now - 86_400_000 * 7)
            days = self.settings.retention_days
            if days is not None:
                before = now - int(days * 86_400_000)
                await forget_old(self.storage.prune, self.results, before)
            await asyncio.sleep(HOUSEKEEPING)
