"""A worker process: a line to the servers, a session, a worker and its tools (WRK)."""

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable, Sequence

import msgspec

from noetl import __version__
from noetl.errors import CredentialUnavailable
from noetl.keychain.door import KeychainDoor
from noetl.node.link_keys import worker_key
from noetl.ports.bodies import Bodies
from noetl.ports.credentials import SealedCredential
from noetl.ports.link import SPEAKS, Call, CredentialWanted, Link, LogKeysWanted
from noetl.ports.result_store import ResultStore
from noetl.server.library import plan_from
from noetl.settings import Settings
from noetl.tools.table import Toolbox
from noetl.worker.questions import Questions
from noetl.worker.session import WireSession
from noetl.worker.work_loop import WorkLoop
from noetl.worker.worker import Worker

PATIENCE = 5.0
"""Seconds: a pause that is longer is waited for without a worker (TASK-8)."""

FRESH = 30.0
"""Seconds that a credential is used before the servers are asked for it again."""

Says = Callable[[str], None]


class FetchedCredentials:
    """
    The registered credentials as servers have them, sealed (KEY-2), and the keys of recorded
    secrets (KEY-3): made by the servers, so that what one worker records every other can read. Only
    a worker that has neither a token nor the servers' NOETL_KEY has one for itself alone.
    """

    def __init__(self, questions: Questions) -> None:
        self._questions = questions
        self._kept: dict[str, tuple[SealedCredential | None, float]] = {}

    async def find(self, name: str) -> SealedCredential | None:
        from noetl.keychain.store import RESERVED

        if name.startswith(RESERVED):
            return next((row for row in await self.all() if row.name == name), None)
        found, until = self._kept.get(name, (None, 0.0))
        if until <= time.monotonic():
            row = await self._questions.ask_for_any(CredentialWanted(name))
            found = None if row is None else msgspec.convert(row, SealedCredential)
            self._kept[name] = (found, time.monotonic() + FRESH)
        return found

    async def all(self) -> Sequence[SealedCredential]:
        """The keys of recorded secrets; whoever lists credentials asks a server."""
        from noetl.keychain.handing import OpenHand  # ciphers are imported with the first secret
        from noetl.keychain.store import HANDED

        hand = OpenHand()
        found = []
        for row in await self._questions.ask_for_any(LogKeysWanted(public=hand.public)):
            key = msgspec.convert(row, SealedCredential)
            if row.get("handed"):
                open_key = hand.take(row["handed"])
                key = msgspec.structs.replace(key, key_id=HANDED, sealed=open_key)
            found.append(key)
        return found

    async def keep(self, credential: SealedCredential) -> None:
        raise CredentialUnavailable(f"'{credential.name}' is kept at a server, not by a worker")

    async def remove(self, name: str) -> bool:
        raise CredentialUnavailable(f"'{name}' is removed at a server, not by a worker")

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        del change
        raise CredentialUnavailable("keys are changed at a server, not by a worker")


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
        self.name = name or f"{socket.gethostname()[:100]}-{os.getpid()}-{secrets.token_hex(3)}"
        key = worker_key(settings)
        if key is not None:  # whose it is shows in the name (decision 0050)
            self.name += f"-{key.caller.tag}"
        self._link = link
        self._results = results
        me = Call(
            worker=self.name,
            pool=settings.pool,
            version=__version__,
            speaks=SPEAKS,
            slots=settings.concurrency,
            host=socket.gethostname(),
            pid=os.getpid(),
        )
        self.session = WireSession(link, me=me, plan_of=plan_from, says=says)
        credentials = FetchedCredentials(self.session.wire.questions)
        self.keychain = KeychainDoor(
            lambda: credentials, settings.home, None, lenient=True, bounds=settings.bounds
        )
        self.worker = Worker(
            name=self.name,
            session=self.session,
            tools=tools,
            results=results,
            bodies=Bodies(results),
            printed=self.session.wire,
            keychain=self.keychain,
            slots=settings.slots,
            run_ahead=settings.run_ahead,
            patience=PATIENCE,
        )
        self.session.worker = self.worker
        self.work_loop = WorkLoop(self.session)

    async def run(self) -> None:
        """Until drained; raises ServerRefused if the servers want nothing of this worker."""
        await self.work_loop.run()

    async def drain(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        await self.work_loop.drain(seconds, hurry or asyncio.Event())

    async def close(self) -> None:
        await self.worker.close()
        await self.keychain.close()
        await self._link.close()
        await self._results.close()


async def run_worker(
    settings: Settings,
    line: tuple[Link, ResultStore],
    *,
    stop: asyncio.Event,
    hurry: asyncio.Event,
    says: Says = print,
) -> None:
    """
    Work until `stop` is set, then end well: parts get `drain` seconds, the rest goes back.

    `hurry` ends the waiting: what still runs is given back at once.
    """
    link, results = line
    tools = Toolbox(settings.home, bounds=settings.bounds)
    plane = WorkPlane(settings, link, results=results, tools=tools, says=says)
    says(f"worker {plane.name} takes up to {settings.concurrency} parts of pool '{settings.pool}'")
    working = asyncio.get_running_loop().create_task(plane.run())
    stopping = asyncio.get_running_loop().create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await working  # it was refused
        says(parting_words(plane.name, len(plane.session.holds), settings.drain))
        await plane.drain(settings.drain, hurry)
        await working
    finally:
        stopping.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await plane.close()


def parting_words(name: str, running: int, drain: float) -> str:
    if not running:
        return f"worker {name} stops: it takes nothing new, and nothing runs"
    return (
        f"worker {name} stops: it takes nothing new; what runs ({running}) has {drain:g} s to end; "
        "told to stop again, it gives that back at once"
    )


async def open_line(settings: Settings, says: Says) -> tuple[Link, ResultStore]:
    """Over NATS where a queue is set, else over HTTP to the server that is set."""
    if settings.queue is not None:
        from noetl.adapters.nats.link import NatsLink
        from noetl.node.opening import open_results

        key = worker_key(settings)
        link = NatsLink(
            settings.queue, name=f"worker-{os.getpid()}", says=says, key=key, pool=settings.pool
        )
        await link.open()
        return link, open_results(settings)
    from noetl.adapters.http.link import open_http

    return await open_http(settings, says=says)
