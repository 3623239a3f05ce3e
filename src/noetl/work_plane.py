"""A worker process, put together: a line to the servers, a desk, hands and tools (WRK)."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from noetl import __version__
from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.keychain.door import KeychainDoor
from noetl.playbook.plan import Plan
from noetl.ports.credentials import SealedCredential
from noetl.ports.link import Call, CredentialWanted, Link
from noetl.ports.result_store import ResultStore
from noetl.server.library import plan_from
from noetl.settings import Settings
from noetl.tools.table import Toolbox
from noetl.worker.questions import Questions
from noetl.worker.session import Session
from noetl.worker.work_loop import WorkLoop
from noetl.worker.worker import Worker
from noetl.worker.workplace import Surround

if TYPE_CHECKING:
    from noetl.keychain.seals import Seals

PATIENCE = 5.0
"""Seconds: a pause that is longer is waited for without a worker (TASK-8)."""

FRESH = 30.0
"""Seconds that a credential is used before the servers are asked for it again."""

DRAIN = 30.0
"""Seconds that parts have to end when the worker is told to stop."""

Says = Callable[[str], None]


class FetchedKeychain:
    """A keychain whose registered credentials come from the servers, sealed (KEY-2)."""

    def __init__(self, settings: Settings, questions: Questions) -> None:
        self._questions = questions
        self._kept = MemoryCredentials()
        self._until: dict[str, float] = {}
        self._door = KeychainDoor(self._kept, settings.home, None)

    async def unlock(self, plan: Plan, name: str) -> dict[str, Any]:
        await self._fetch(plan, name)
        return await self._door.unlock(plan, name)

    async def secret(self, plan: Plan, provider: str, name: str, auth: str | None) -> Any:
        await self._fetch(plan, name, auth)
        return await self._door.secret(plan, provider, name, auth)

    @property
    def seals(self) -> "Seals":
        return self._door.seals

    async def close(self) -> None:
        await self._door.close()

    async def _fetch(self, plan: Plan, *names: str | None) -> None:
        """Whatever of these the store may have."""
        wanted = {name for name in names if name is not None}
        for entry in plan.keychain:
            if entry.name in wanted:
                wanted.add(entry.key or entry.name)
        for name in wanted:
            if self._until.get(name, 0.0) > time.monotonic():
                continue
            found = await self._questions.ask(CredentialWanted(name))
            if found is None:
                self._kept.remove(name)
            else:
                self._kept.keep(msgspec.convert(found, SealedCredential))
            self._until[name] = time.monotonic() + FRESH


class WorkPlane:
    """One worker of one pool."""

    def __init__(
        self,
        settings: Settings,
        link: Link,
        *,
        results: ResultStore,
        tools: Toolbox,
        says: Says = print,
        name: str | None = None,
    ) -> None:
        self.name = name or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._link = link
        self._results = results
        me = Call(
            worker=self.name,
            pool=settings.pool,
            version=__version__,
            slots=settings.concurrency,
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        self.desk = Session(link, me=me, plan_of=plan_from, says=says)
        self.keychain = FetchedKeychain(settings, self.desk.questions)
        self.worker = Worker(
            name=self.name,
            desk=self.desk,
            tools=tools,
            results=results,
            surround=Surround(
                printed=self.desk,
                keychain=self.keychain,
                broken=self.desk.broken,
                far_ahead=self.desk.far_ahead,
            ),
            slots=settings.slots,
            run_ahead=settings.run_ahead,
            patience=PATIENCE,
        )
        self.desk.worker = self.worker
        self.work_loop = WorkLoop(self.desk)

    async def run(self) -> None:
        """Until drained; raises ServerRefused if the servers want nothing of this worker."""
        await self.work_loop.run()

    async def drain(self, seconds: float = DRAIN) -> None:
        await self.work_loop.drain(seconds)

    async def close(self) -> None:
        await self.worker.close()
        await self.keychain.close()
        await self._link.close()
        await self._results.close()


async def run_worker(
    settings: Settings, *, stop: asyncio.Event, says: Says = print, drain: float = DRAIN
) -> None:
    """Work until `stop` is set, then end well: parts get `drain` seconds, the rest goes back."""
    link, results = await open_line(settings, says)
    tools = Toolbox(settings.home, bounds=settings.bounds)
    plane = WorkPlane(settings, link, results=results, tools=tools, says=says)
    says(f"worker {plane.name} takes up to {settings.concurrency} parts of pool '{settings.pool}'")
    working = asyncio.get_running_loop().create_task(plane.run())
    stopping = asyncio.get_running_loop().create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working  # it was refused
        says(f"worker {plane.name} stops: it takes nothing new, and lets its parts end")
        await plane.drain(drain)
        await working
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await plane.close()


async def open_line(settings: Settings, says: Says) -> tuple[Link, ResultStore]:
    """Over NATS where a queue is set, else over HTTP to the server that is set."""
    if settings.queue is not None:
        from noetl.adapters.nats.link import NatsLink
        from noetl.homes import open_results

        link = NatsLink(settings.queue, name=f"worker-{os.getpid()}", says=says)
        await link.open()
        return link, open_results(settings)
    from noetl.adapters.http.link import open_http

    return await open_http(settings, says=says)
