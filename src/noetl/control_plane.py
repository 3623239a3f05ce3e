"""A server process, put together: what the API, the queue and the command line may ask of it."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, Literal

from noetl import __version__
from noetl.control.execution import Execution
from noetl.errors import (
    ExecutionNotFound,
    KeyReused,
    NoetlError,
    PlaybookNotFound,
    ServerRefused,
    VersionConflict,
)
from noetl.homes import lock_home, open_results, open_settings_home
from noetl.keychain.door import KeychainDoor
from noetl.messages import requests as r
from noetl.messages.codec import encode
from noetl.playbook.plan import Plan
from noetl.ports.catalog import CatalogEntry
from noetl.ports.event_log import ExecutionRow, LogRow
from noetl.ports.result_store import ResultStore
from noetl.ports.roster import ServerRow, WorkerRow
from noetl.ports.storage import Storage
from noetl.server.active import ActiveExecution
from noetl.server.answers import Answers
from noetl.server.dispatcher import Dispatcher
from noetl.server.ids import new_execution_id
from noetl.server.library import Library
from noetl.server.ownership import Ownership
from noetl.server.registering import registered
from noetl.server.report import report_of
from noetl.server.retention import forget_old
from noetl.server.server import Server
from noetl.settings import Settings
from noetl.worker.through import run_through

ROSTER = 3.0
"""Seconds between two entries into the list of who is there."""

HOUSEKEEPING = 600.0
"""Seconds between two looks for what retention removes."""

PAGE = 200
"""Decisions that a follower reads at a time."""

NEWEST = 0.25
"""Seconds for which a server remembers which version of a playbook is the newest."""

MOST_ENTRIES = 10_000

SILENT = 5.0
"""Seconds without an answer of the log after which a server is not ready."""

ELSEWHERE = 0.5
"""Seconds between two looks at the log of an execution that another server owns."""

Order = Literal["cancel", "pause", "resume"]
Says = Callable[[str], None]


class ControlPlane:
    """Server, dispatcher, ownership and stores of one process."""

    def __init__(
        self, settings: Settings, storage: Storage, *, results: ResultStore, says: Says = print
    ) -> None:
        self.settings = settings
        self.storage = storage
        self.results = results
        self.says = says
        self.keychain = KeychainDoor(storage.credentials, storage.folder, storage.key)
        self.server = Server(
            log=storage.log, results=results, me=storage.owners.me, run_ahead=settings.run_ahead
        )
        self.library = Library(storage)
        self._answers = Answers(self)
        self.dispatcher = Dispatcher(
            self.server,
            name=storage.owners.me,
            version=__version__,
            printed=storage.printed,
            through=run_through,
            bring=self._bring,
            ask=self._answers.answer,
            ttl=settings.lease_ttl,
        )
        self.server.runner = self.dispatcher
        self.ownership = Ownership(storage, self.server, self.dispatcher, self.library, says)
        self._entries: dict[tuple[str, int | None], tuple[CatalogEntry, float]] = {}
        self._finding: dict[
            tuple[str, int | None], tuple[asyncio.Future[CatalogEntry | None], float]
        ] = {}
        self.address = ""
        self._began = int(time.time() * 1000)
        self._tasks: list[asyncio.Task[None]] = []
        self._closers: list[Any] = []
        self._switchboard: Any = None
        self.closing = asyncio.Event()
        """Set when this server stops: streams and long polls end."""

    @property
    def name(self) -> str:
        return self.dispatcher.name

    @classmethod
    async def open(cls, settings: Settings, *, says: Says = print) -> "ControlPlane":
        """Wait for database and queue, where they are away, and begin to serve."""
        lock = lock_home(settings)
        storage = await open_settings_home(settings, says)
        plane = cls(settings, storage, results=open_results(settings), says=says)
        plane._closers.append(lock)
        await plane.begin()
        return plane

    async def begin(self) -> None:
        await self.ownership.begin()
        if self.settings.queue is not None:
            from noetl.adapters.nats.switchboard import NatsSwitchboard

            switchboard = NatsSwitchboard(self.settings.queue, self.dispatcher, says=self.says)
            await switchboard.open()
            self._switchboard = switchboard
            self.dispatcher.notifiers.append(switchboard.notifier)
            self._closers.append(switchboard)
        loop = asyncio.get_running_loop()
        for work in (self.dispatcher.watch, self.ownership.watch, self._enter, self._keep_house):
            self._tasks.append(loop.create_task(self._for_ever(work)))

    async def _for_ever(self, work: Callable[[], Any]) -> None:
        """Promise 7: a fault in one of these is said, and the work goes on."""
        while True:
            try:
                await work()
            except Exception as fault:
                self.says(f"a fault of NoETL itself: {type(fault).__name__}: {fault}")
                await asyncio.sleep(1.0)

    async def close(self) -> None:
        """Stop taking, write what waits, hand over."""
        self.closing.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for closer in reversed(self._closers):
            await closer.close()
        await self.dispatcher.record_claims()
        with suppress(NoetlError):
            await self.storage.roster.server_gone(self.name)
            await self.ownership.hand_over()
        await self.keychain.close()
        await self.results.close()
        await self.storage.close()

    async def _bring(self, execution_id: str) -> ActiveExecution | str:
        return await self.ownership.bring(execution_id)

    # ── catalog ──────────────────────────────────────────────────────────────────────────────

    async def register(
        self, text: str, *, original: str | None = None
    ) -> tuple[CatalogEntry, bool]:
        """A new version of a playbook, unless the newest is this text; raises PlaybookRejected."""
        entry, fresh = await registered(self.storage.catalog, text, original=original)
        self._entries.pop((entry.path, None), None)
        if self.settings.db is not None:
            await asyncio.sleep(NEWEST)  # from now on no server takes an older one for the newest
        return entry, fresh

    async def entry(
        self, playbook_id: str | None, path: str | None, version: int | None
    ) -> CatalogEntry:
        catalog = self.storage.catalog
        if playbook_id is not None:
            entry = await catalog.by_id(playbook_id)
            wanted = playbook_id
        elif path is not None:
            entry = await self._found(path, version)
            wanted = path if version is None else f"{path}, version {version}"
        else:
            raise ServerRefused("name a playbook by `path` or `playbook_id`", code="invalid")
        if entry is None:
            raise PlaybookNotFound(
                f"the catalog has no playbook '{wanted}'; register it with `noetl register FILE`"
            )
        return entry

    async def _found(self, path: str, version: int | None) -> CatalogEntry | None:
        """A version never changes; which one is the newest is known for a moment."""
        kept = self._entries.get((path, version))
        now = time.monotonic()
        if kept is not None and (version is not None or kept[1] > now):
            return kept[0]
        if (path, version) not in self._finding:  # of many that ask at once one asks the database
            asking = asyncio.ensure_future(self.storage.catalog.find(path, version))
            self._finding[path, version] = (asking, now)
            asking.add_done_callback(lambda _: self._finding.pop((path, version), None))
        finding, began = self._finding[path, version]
        entry = await asyncio.shield(finding)
        if entry is not None:
            if len(self._entries) > MOST_ENTRIES:
                self._entries.clear()
            self._entries[path, version] = (entry, began + NEWEST)
        return entry

    # ── executions ───────────────────────────────────────────────────────────────────────────

    async def execute(
        self,
        *,
        payload: dict[str, Any],
        playbook_id: str | None = None,
        path: str | None = None,
        version: int | None = None,
        key: str | None = None,
    ) -> ExecutionRow:
        """SRV-2. The answer comes after the commit (promise 1); one key starts one execution."""
        entry = await self.entry(playbook_id, path, version)
        plan = await self.library.plan_by(entry.digest)
        execution_id = new_execution_id()
        if key is not None:
            fingerprint = hashlib.sha256(encode([entry.playbook_id, payload])).hexdigest()
            holder = await self.storage.keys.claim(key, fingerprint, execution_id)
            if holder.fingerprint != fingerprint:
                raise KeyReused("this idempotency key came before, with another request")
            execution_id = holder.execution_id
            if not holder.fresh:
                found = await self.storage.executions.find(execution_id)
                if found is not None:
                    return found
        active = await self.start(
            plan, execution_id=execution_id, payload=payload, version=str(entry.version)
        )
        if active is None:
            return await self.row(execution_id)
        return self.server.row(active, active.started_at)

    async def start(
        self,
        plan: Plan,
        *,
        execution_id: str,
        payload: dict[str, Any],
        version: str | None,
        folder: str | None = None,
        parent_execution_id: str | None = None,
        parent_id: str | None = None,
    ) -> ActiveExecution | None:
        """Begin an execution; None where another began it under this id before."""
        request = r.StartExecution(
            execution_id=execution_id,
            path=plan.path,
            digest=plan.digest,
            folder=folder,
            version=version,
            payload=payload,
            store=self.results.name,
            parent_execution_id=parent_execution_id,
            parent_id=parent_id,
        )
        active = self.server.start(request, plan, folder, self.ownership.term)
        try:
            if active.begun is not None:
                await active.begun
            if active.execution.seq == 0:  # it could not even be decided
                await active.finished
        except VersionConflict:
            self.storage.log.forget(execution_id)
            return None
        self.ownership.mind(active)
        return active

    async def order(self, execution_id: str, kind: Order, reason: str = "") -> ExecutionRow:
        """Cancel, pause or resume: durable when this returns, whoever owns the execution."""
        row = await self.row(execution_id)
        if row.finished_at is not None:
            raise ServerRefused(
                f"execution {execution_id} has ended ({row.status}): there is nothing to {kind}",
                code="finished",
                status=409,
            )
        active = self.server.find(execution_id)
        if active is not None:
            await self.ownership.order(active, kind, reason)
        else:
            await self.storage.inbox.leave(execution_id, kind, {"reason": reason})
        return await self.row(execution_id)

    async def row(self, execution_id: str) -> ExecutionRow:
        row = await self.storage.executions.find(execution_id)
        if row is None:
            raise ExecutionNotFound(f"no execution '{execution_id}'; `noetl list` shows them")
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

    async def ended(self, execution_id: str, wait: float) -> bool:
        """Whether it has ended, after waiting so many seconds for it at the most."""
        until = time.monotonic() + wait
        while True:
            active = self.server.find(execution_id)
            left = until - time.monotonic()
            if active is not None and not active.finished.done() and left > 0:
                await self._wait_for(active, left)
                continue
            row = await self.row(execution_id)
            if row.finished_at is not None or left <= 0 or self.closing.is_set():
                return row.finished_at is not None
            if active is None:
                await asyncio.sleep(min(ELSEWHERE, left))

    async def _wait_for(self, active: ActiveExecution, seconds: float) -> None:
        closing = asyncio.ensure_future(self.closing.wait())
        try:
            await asyncio.wait(
                (active.finished, closing), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            closing.cancel()

    # ── following ────────────────────────────────────────────────────────────────────────────

    async def follow(self, execution_id: str, *, after: int = 0) -> AsyncIterator[LogRow]:
        """
        The log from a `seq` on, and what comes until the end.

        It is read page by page as the caller takes it: a slow reader holds up nobody (T13).
        """
        await self.row(execution_id)
        while not self.closing.is_set():
            row = await self.row(execution_id)
            rows = await self.storage.log.read(execution_id, after=after, limit=PAGE)
            for found in rows:
                yield found
                after = found.last
            if rows:
                continue
            if row.finished_at is not None:
                return
            await self._news(execution_id, after)

    async def _news(self, execution_id: str, after: int) -> None:
        """Wait until there may be something new after a `seq`."""
        active = self.server.find(execution_id)
        if active is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self.closing.wait(), ELSEWHERE)
            return
        news = asyncio.Event()
        active.listeners.append(news.set)
        try:
            if active.execution.seq <= after or active.uncommitted:
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), 4 * ELSEWHERE)
        finally:
            active.listeners.remove(news.set)

    # ── about this server ────────────────────────────────────────────────────────────────────

    async def counts(self) -> dict[str, Any]:
        executions = self.storage.executions
        return {
            "executions": {
                status: await executions.count(status)
                for status in ("running", "paused", "completed", "failed", "cancelled")
            },
            "owned": len(self.server.owned),
            "parts_waiting": self.dispatcher.parts.pools(),
            "leases": len(self.dispatcher.leases),
            "workers": len(self.dispatcher.seen),
            "uncommitted": self.server.uncommitted,
            "set_aside": dict(self.ownership.aside),
        }

    def health(self) -> dict[str, Any]:
        """Ready while it does not stop, and the log and the queue are there."""
        waits = []
        if self.closing.is_set():
            waits.append("this server stops")
        if time.monotonic() - self.ownership.looked > SILENT:
            waits.append("the log does not answer")
        if self._switchboard is not None and not self._switchboard.there:
            waits.append("the queue does not answer")
        return {"live": True, "ready": not waits, "waits_for": waits}

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
            for seen in list(self.dispatcher.seen.values()):
                busy = len(self.dispatcher.leases.of_worker(seen.name))
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
                        busy=busy,
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
