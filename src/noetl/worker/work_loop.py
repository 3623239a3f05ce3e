"""A worker at work for servers elsewhere: it seeks parts, renews leases, and drains well."""

import asyncio
import time
from contextlib import suppress

from noetl.errors import ServerAway, ServerRefused
from noetl.worker.outbox import FIRST_PAUSE
from noetl.worker.session import IDLE_BEAT, WireSession

LAST_WORDS = 5.0
"""Seconds that the last reports may take."""


class WorkLoop:
    """From the first call to the last."""

    def __init__(self, session: WireSession) -> None:
        self._session, self._wire = session, session.wire
        self._drained = asyncio.Event()

    async def run(self) -> None:
        """Seek work and keep leases until drained; raises ServerRefused for a wrong version."""
        session, wire = self._session, self._wire
        beating = asyncio.get_running_loop().create_task(self._beat())
        try:
            while not session.draining:
                await self._seek()
                if wire.refusal:
                    raise ServerRefused(wire.refusal, code="version")
            await self._drained.wait()  # leases are renewed to the last moment
        finally:
            beating.cancel()

    async def _seek(self) -> None:
        """Wait for a wake-up, or for a place that becomes free, and call."""
        session, wire = self._session, self._wire
        hungry = session.hungry = session.free > 0
        loop = asyncio.get_running_loop()
        woken = loop.create_task(wire.link.wake(wire.me.worker, wire.me.pool, hungry=hungry))
        try:
            while not woken.done():
                session.changed.clear()
                if session.draining or wire.refusal or (session.free > 0) != hungry:
                    return
                changed = loop.create_task(session.changed.wait())
                await asyncio.wait((woken, changed), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            await self._call_on(woken.result())
        except ServerAway:
            await asyncio.sleep(FIRST_PAUSE)
        finally:
            woken.cancel()

    async def _call_on(self, server: str) -> None:
        """Take what there is, as long as there is more and room for it."""
        session, wire = self._session, self._wire
        outbox = wire.outbox(server)
        while not outbox.blocked:
            bundle = wire.bundle(outbox, [], session.free, beat=True)
            answer = await wire.exchange(outbox, bundle)
            if answer is None or not answer.more or not answer.grants or session.free == 0:
                return

    async def _beat(self) -> None:
        """Leases are renewed in good time, whatever else happens."""
        session, wire = self._session, self._wire
        before = time.monotonic()
        while True:
            session.hurried.clear()
            shortest = min((held.beat for held in session.holds.values()), default=IDLE_BEAT)
            left = before + max(0.01, min(shortest, IDLE_BEAT)) - time.monotonic()
            if left > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(session.hurried.wait(), left)
                continue
            before = time.monotonic()
            for server in {held.server for held in session.holds.values()}:
                wire.chore(wire.renew(server))

    async def drain(self, seconds: float, hurry: asyncio.Event) -> None:
        """WRK-2: take nothing new, let parts end in time or until `hurry`, give back the rest."""
        session = self._session
        session.draining = True
        session.changed.set()
        try:
            ends = asyncio.get_running_loop().create_task(self._holds_end())
            told = asyncio.get_running_loop().create_task(hurry.wait())
            await asyncio.wait((ends, told), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            ends.cancel()
            told.cancel()
            await session.worker.stop()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    while session.waiting:
                        session.changed.clear()
                        await session.changed.wait()
            with suppress(TimeoutError):
                async with asyncio.timeout(LAST_WORDS):
                    await self._return_all()
        finally:
            self._drained.set()

    async def _holds_end(self) -> None:
        while self._session.holds:
            self._session.changed.clear()
            await self._session.changed.wait()

    async def _return_all(self) -> None:
        session, wire = self._session, self._wire
        for hold, held in session.holds.items():
            wire.outbox(held.server).returns.append(hold)
        session.holds.clear()
        owed = wire.owed_lines()
        last = [box for box in wire.outboxes.values() if box.returns or box.server in owed]
        await asyncio.gather(*(wire.exchange(box, wire.bundle(box, [], 0)) for box in last))
