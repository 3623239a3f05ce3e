"""
A control plane and a worker in one process on one home: `noetl run`.

Every process of NoETL is one assembly of the same parts, each there or not: a control plane
(`node.control_plane`), here with a worker beside it, with the API and workers elsewhere in
`node.server`; a work plane alone in `node.work_plane`.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from noetl.adapters.sqlite.locks import to_stderr
from noetl.errors import NoetlError, ResultsUnavailable
from noetl.node.control_plane import ControlPlane
from noetl.node.direct import DirectSession
from noetl.node.opening import open_local_storage, open_results
from noetl.playbook.plan import Plan
from noetl.ports.event_log import Printed, PrintedLine
from noetl.ports.result_store import ResultStore
from noetl.server.active import ActiveExecution
from noetl.server.ids import new_execution_id
from noetl.settings import Settings
from noetl.tools.table import Toolbox
from noetl.worker.worker import Worker

if TYPE_CHECKING:
    from noetl.ports.storage import Storage

MOST_REMOVED = 1000
"""Executions that go after one run: it ends soon, whatever there is to remove."""


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


class LocalNode(ControlPlane):
    """Server and worker in one process on one home: `noetl run`."""

    def __init__(
        self, settings: Settings, storage: "Storage", *, results: ResultStore, tools: Toolbox
    ) -> None:
        super().__init__(settings, storage, results=results, adopts=False, says=_unsaid)
        self.user = os_user()
        self.overheard = Overheard(storage.printed)
        self.session = DirectSession(self.server, self.children, f"local-{os.getpid()}")
        self.worker = Worker(
            name=self.session.name,
            session=self.session,
            tools=tools,
            results=results,
            bodies=self.bodies,
            printed=self.overheard,
            keychain=self.keychain,
            slots=settings.slots,
            run_ahead=settings.run_ahead,
        )
        self.session.worker = self.worker
        self.server.runner = self.session

    @classmethod
    async def open(cls, settings: Settings, *, looking: bool = False) -> "LocalNode":
        """`looking`: nothing will be written, and the home may be one that cannot be."""
        return cls(
            settings,
            await open_local_storage(settings, looking=looking),
            results=open_results(settings, local=True),
            tools=Toolbox(settings.home, bounds=settings.bounds),
        )

    @classmethod
    def in_memory(cls, settings: Settings, tools: Toolbox) -> "LocalNode":
        """The same system on a storage that is gone with the process: tests and simulations."""
        from noetl.adapters.memory.object_store import MemoryObjectStore
        from noetl.adapters.memory.storage import MemoryStorage

        return cls(settings, MemoryStorage(), results=ResultStore(MemoryObjectStore()), tools=tools)

    async def run_text(
        self,
        text: str,
        *,
        folder: str | None,
        payload: dict[str, Any],
        ctx: dict[str, Any] | None = None,
        execution_id: str | None = None,
        plan: Plan | None = None,
        former: str | None = None,
    ) -> ActiveExecution:
        """Run a text to its end; `former` is the one that it was translated from."""
        plan = await self.library.plan_of(text, folder, plan)
        if former is not None:
            from noetl.server.former import keep_former

            await keep_former(self.storage.playbooks, text, plan.path, former)
        self.worker.warm(plan)
        name = execution_id or new_execution_id()
        request: dict[str, Any] = {
            "payload": payload,
            "ctx": ctx,
            "version": plan.version,
            "folder": folder,
        }
        if plan.limit is not None:
            request |= await self.limited.asked(plan, name, request)
        active = self.begin(plan, execution_id=name, **request)
        return self._watched(active)

    async def resume(self, execution_id: str) -> ActiveExecution:
        return self._watched(await self.take_up(execution_id))

    async def restart(self, origin: str, **asked: Any) -> ActiveExecution:
        """See `Restarts.begin`."""
        return self._watched(await self.restarts.begin(origin, **asked))

    def _watched(self, active: ActiveExecution) -> ActiveExecution:
        if not self._tasks:
            self.go(self.ownership.watch)
        return active

    async def clean_up(self, active: ActiveExecution) -> None:
        """RES-4: after an end, remove what nothing refers to and what is too old to keep."""
        if active.resumed:  # a crash may have left bodies without a place in the log
            from noetl.server.retention import sweep

            await sweep(self.storage.log, self.results, active.execution_id)
        if active.plan.cached:
            await self.storage.cache.expire(int(time.time() * 1000))
        settings = self.settings
        if settings.retention is not None or settings.retention_days is not None:
            from noetl.node.housekeeping import policies_in, retention_of

            policies = policies_in(settings)
            try:
                async with retention_of(self, local=True) as retention:
                    await retention.remove(policies, most=MOST_REMOVED)
                    await retention.clear()
            except ResultsUnavailable as away:  # an archive: the run itself is done
                to_stderr(f"retention stopped: {away}")

    async def close(self) -> None:
        await self.halt()
        await self.worker.close()
        with suppress(NoetlError):
            for active in self.server.owned:
                if active.uncommitted or not active.execution.finished:  # else its end let it go
                    await self.storage.owners.release(active.execution_id)
        await super().close()


def os_user() -> str:
    """Whoever runs this process; a number where the machine has no name for it."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):  # as `getpass` does, which can do more
        if os.environ.get(name):
            return os.environ[name]
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except (KeyError, OSError):
        return str(os.getuid())


def _unsaid(_: str) -> None:
    """What a run has to say is shown by whoever attends it."""
