"""A worker at work for servers elsewhere: it seeks parts, renews leases, and drains well."""

import asyncio
from contextlib import suppress

from noetl.errors import ServerAway, ServerRefused
from noetl.worker.outbox import FIRST_PAUSE
from noetl.worker.session import Session

IDLE_BEAT = 1.0
LAST_WORDS = 5.0
"""Seconds that the last reports of a shift may take."""


class WorkLoop:
    """From the first call to the last."""

    def __init__(self, desk: Session) -> None:
        self._desk = desk

    async def run(self) -> None:
        """Seek work and keep leases until drained; raises ServerRefused for a wrong version."""
        desk = self._desk
        beating = asyncio.get_running_loop().create_task(self._beat())
        try:
            while not desk.draining:
                await self._seek()
                if desk.refusal:
                    raise ServerRefused(desk.refusal, code="version")
        finally:
            beating.cancel()

    async def _seek(self) -> None:
        """Wait for a wake-up, or for a place that becomes free, and call."""
        desk = self._desk
        hungry = desk.hungry = desk.free > 0
        loop = asyncio.get_running_loop()
        woken = loop.create_task(desk.link.wake(desk.me.worker, desk.me.pool, hungry=hungry))
        try:
            while not woken.done():
                desk.changed.clear()
                if desk.draining or desk.refusal or (desk.free > 0) != hungry:
                    return
                changed = loop.create_task(desk.changed.wait())
                await asyncio.wait((woken, changed), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
            await self._call_on(woken.result())
        except ServerAway:
            await asyncio.sleep(FIRST_PAUSE)
        finally:
            woken.cancel()

    async def _call_on(self, server: str) -> None:
        """Take what there is, as long as there is more and room for it."""
        desk = self._desk
        line = desk.line(server)
        while not line.blocked:
            answer = await desk.exchange(line, desk.batch(line, [], desk.free, beat=True))
            if answer is None or not answer.more or not answer.grants or desk.free == 0:
                return

    async def _beat(self) -> None:
        """Leases are renewed in good time, whatever else happens."""
        desk = self._desk
        while True:
            shortest = min((held.beat for held in desk.holds.values()), default=IDLE_BEAT)
            await asyncio.sleep(max(0.01, min(shortest, IDLE_BEAT)))
            for server in {held.server for held in desk.holds.values()}:
                line = desk.line(server)
                if not line.recovering:
                    desk.chore(desk.exchange(line, desk.batch(line, [], 0, beat=True)))

    async def drain(self, seconds: float) -> None:
        """WRK-2: take nothing new, let parts end for a while, give back the rest."""
        desk = self._desk
        desk.draining = True
        desk.changed.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while desk.holds:
                    desk.changed.clear()
                    await desk.changed.wait()
        await desk.worker.stop()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_WORDS):
                while desk.waiting:
                    desk.changed.clear()
                    await desk.changed.wait()
                await self._return_all()

    async def _return_all(self) -> None:
        desk = self._desk
        for hold, held in desk.holds.items():
            desk.line(held.server).returns.append(hold)
        desk.holds.clear()
        for line in list(desk.lines.values()):
            if line.returns or line.lines:
                await desk.exchange(line, desk.batch(line, [], 0))
