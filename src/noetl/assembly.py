"""The only module that knows rooms and furniture alike: settings → a running system."""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from noetl.adapters.files.result_store import RESULTS, FileResultStore
from noetl.adapters.memory.result_store import MemoryResultStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.adapters.sqlite.storage import SqliteStorage, open_storage
from noetl.control.dispatch import Command
from noetl.control.execution import Execution
from noetl.errors import ExecutionNotFound
from noetl.keychain.door import KeychainDoor
from noetl.messages import requests as r
from noetl.playbook.plan import Plan
from noetl.ports.desk import Taken
from noetl.ports.event_log import ExecutionRow, Note, Printed, PrintedLine
from noetl.ports.result_store import ResultStore
from noetl.server.active import ActiveExecution
from noetl.server.answers import summary as summary_of
from noetl.server.ids import new_execution_id
from noetl.server.library import Library
from noetl.server.ownership import ORDERS
from noetl.server.retention import forget_old, sweep
from noetl.server.server import Server
from noetl.settings import Settings
from noetl.tools.table import Toolbox
from noetl.worker.worker import Worker
from noetl.worker.workplace import Surround

AnyStorage = SqliteStorage | MemoryStorage

WATCH = 0.25
"""Seconds between two looks into the inbox."""


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


class Local:
    """Server and worker in one process on one home: `noetl run`."""

    def __init__(
        self, settings: Settings, storage: AnyStorage, *, results: ResultStore, tools: Toolbox
    ) -> None:
        self.settings = settings
        self.storage = storage
        self.results = results
        self.server = Server(
            log=storage.log,
            results=self.results,
            me=storage.owners.me,
            run_ahead=settings.run_ahead,
        )
        self.overheard = Overheard(storage.printed)
        self.keychain = KeychainDoor(storage.credentials, storage.folder, storage.key)
        self.worker = Worker(
            name=f"local-{os.getpid()}",
            desk=self,
            tools=tools,
            results=self.results,
            surround=Surround(
                printed=self.overheard,
                keychain=self.keychain,
                broken=self._broken,
                far_ahead=lambda: self.server.far_ahead,
            ),
            slots=settings.slots,
            run_ahead=settings.run_ahead,
        )
        self.server.runner = self.worker
        self.library = Library(storage)
        self._inbox: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, settings: Settings, *, looking: bool = False) -> "Local":
        return cls(
            settings,
            await open_storage(settings.home, looking=looking),
            results=FileResultStore(settings.home / RESULTS),
            tools=Toolbox(settings.home, bounds=settings.bounds),
        )

    @classmethod
    def in_memory(cls, settings: Settings, tools: Toolbox) -> "Local":
        """The same system on a home that is gone with the process: tests and simulations."""
        return cls(settings, MemoryStorage(), results=MemoryResultStore(), tools=tools)

    async def clean_up(self, active: ActiveExecution) -> None:
        """RES-4: after an end, remove what nothing refers to and what is too old to keep."""
        if active.resumed:  # a crash may have left bodies without a place in the log
            await sweep(self.storage.log, self.results, active.execution.execution_id)
        days = self.settings.retention_days
        if days is not None:
            before = int((time.time() - days * 86_400) * 1000)
            await forget_old(self.storage.prune, self.results, before)

    async def close(self) -> None:
        if self._inbox is not None:
            self._inbox.cancel()
        await self.worker.close()
        await self.keychain.close()
        for active in list(self.server.owned):
            await self.storage.owners.release(active.execution.execution_id)
        await self.storage.close()

    # ── starting and going on ────────────────────────────────────────────────────────────────

    async def plan_of(self, text: str, folder: str | None, made: Plan | None = None) -> Plan:
        return await self.library.plan_of(text, folder, made)

    async def start(
        self,
        text: str,
        *,
        folder: str | None,
        payload: dict[str, Any],
        execution_id: str | None = None,
        parent_execution_id: str | None = None,
        parent_id: str | None = None,
        plan: Plan | None = None,
    ) -> ActiveExecution:
        plan = await self.plan_of(text, folder, plan)
        request = r.StartExecution(
            execution_id=execution_id or new_execution_id(),
            path=plan.path,
            digest=plan.digest,
            folder=folder,
            version=plan.version,
            payload=payload,
            store=self.results.name,
            parent_execution_id=parent_execution_id,
            parent_id=parent_id,
        )
        return self._watched(self.server.start(request, plan, folder))

    async def resume(self, execution_id: str) -> ActiveExecution:
        """Own an execution whose owner is gone, and go on where its log stands."""
        row = await self.row(execution_id)
        if row.finished_at is None:
            await self.storage.owners.claim(execution_id)
        execution, plan, folder = await self.load(execution_id)
        if execution.stop and not execution.finished:
            await self._stop_children(execution_id)
        active = self._watched(self.server.go_on(execution, plan, row, folder))
        active.resumed = True
        if execution.status == "paused":
            self.server.receive(active, r.ResumeExecution())
        return active

    async def cancel(self, execution_id: str, reason: str) -> None:
        """End an execution that nobody runs, and its children; HomeInUse where somebody does."""
        row = await self.row(execution_id)
        await self.storage.owners.claim(execution_id)
        await self._stop_children(execution_id)
        execution, plan, folder = await self.load(execution_id)
        active = self.server.go_on(execution, plan, row, folder)
        self.server.receive(active, r.CancelExecution(reason=reason))
        self.server.end_stopped(active)
        await active.finished

    async def _stop_children(self, execution_id: str) -> None:
        """TOOL-1. They end first: once their parent has ended nobody would remember them."""
        for child in await self.open_children(execution_id):
            await self.cancel(child, "the parent was cancelled")

    async def open_children(self, execution_id: str) -> list[str]:
        """TOOL-1: the children that have not ended."""
        rows = await self.storage.executions.children(execution_id)
        return [row.execution_id for row in rows if row.finished_at is None]

    async def row(self, execution_id: str) -> ExecutionRow:
        row = await self.storage.executions.find(execution_id)
        if row is None:
            raise ExecutionNotFound(
                f"no execution '{execution_id}' in {self.settings.home}; see `noetl list`"
            )
        return row

    async def load(self, execution_id: str) -> tuple[Execution, Plan, str | None]:
        """The state of an execution, and the plan that it began with."""
        return await self.library.load(execution_id)

    # ── what the worker asks (ports.desk.Desk) ───────────────────────────────────────────────

    immediate = True

    def hand_back(self, command: Command) -> None:
        """A process that is its own worker waits itself."""

    def take(self, execution_id: str, report: r.Report) -> Taken:
        return self.server.take(execution_id, report)

    async def child(
        self,
        *,
        execution_id: str,
        parent_execution_id: str,
        parent_id: str,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        active = self.server.find(execution_id)
        if active is None and await self.storage.executions.find(execution_id) is not None:
            active = await self.resume(execution_id)
        if active is None:
            parent = self.server.find(parent_execution_id)
            assert parent is not None, "it runs the task that asks"
            found = await self.library.child(path, version, parent.plan.path, parent.folder)
            active = await self.start(
                found.text,
                folder=found.folder,
                payload=payload,
                execution_id=execution_id,
                parent_execution_id=parent_execution_id,
                parent_id=parent_id,
            )
        if wait:
            try:
                await asyncio.shield(active.finished)
            except asyncio.CancelledError:
                if not self.worker.stopping:
                    self.server.receive(
                        active, r.CancelExecution(reason="the parent was cancelled")
                    )
                    await asyncio.wait([active.finished])
                raise
        return summary(active)

    # ── orders from other processes ──────────────────────────────────────────────────────────

    def _watched(self, active: ActiveExecution) -> ActiveExecution:
        if self._inbox is None:
            self._inbox = asyncio.get_running_loop().create_task(self._watch())
        return active

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH)
            for note in await self.storage.inbox.waiting():
                self.obey(note)
                await self.storage.inbox.discard([note.note_id])

    def obey(self, note: Note) -> None:
        active = self.server.find(note.execution_id)
        order = ORDERS.get(note.kind)
        if active is not None and order is not None:
            self.server.receive(active, order(**note.fields))
            if order is r.CancelExecution:
                self._cancel_below(active)

    def _cancel_below(self, parent: ActiveExecution) -> None:
        """TOOL-1: cancelling the parent cancels its children, those nobody waits for included."""
        name = parent.execution.execution_id
        for active in self.server.owned:
            if active.execution.parent_execution_id == name and not active.execution.finished:
                self.server.receive(active, r.CancelExecution(reason="the parent was cancelled"))
                self._cancel_below(active)

    def _broken(self, command: Command, fault: BaseException) -> None:
        """A part fell to a fault of ours: its run fails honestly, the others go on (promise 7)."""
        active = self.server.find(command.execution_id)
        if active is not None:
            self.server.give_up(active, command, fault)


def summary(active: ActiveExecution) -> dict[str, Any]:
    """TOOL-1: what a parent sees of its child."""
    return summary_of(active.execution)
