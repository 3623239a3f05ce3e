"""What a server puts away beside its work: old executions, keys that nobody uses (KEEP-1)."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from noetl.errors import NoetlError, ServerRefused
from noetl.messages.clipping import beginning
from noetl.node.opening import open_archive
from noetl.server.policies import Pruned, RetentionPolicy, policies_of
from noetl.server.retention import RESTS, Retention
from noetl.settings import Settings

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

LOOK: Final = 600.0
"""Seconds between two looks for what may go."""
GRACE: Final = 60.0
KEPT: Final = 86_400_000 * 7
"""Milliseconds for which keys are known, and executions that were removed."""
SEEN: Final = 12_000
"""Milliseconds for which a server counts as there after its last entry."""
DAY: Final = 86_400
AT_ONCE: Final = 1000
"""Executions that go before it is asked again who leads."""


def policies_in(settings: Settings) -> tuple[RetentionPolicy, ...]:
    """The policies that are set; `retention_days` is the last, and about everything."""
    days = settings.retention_days
    last = () if days is None else (RetentionPolicy(older_than=days * DAY),)
    return policies_of(settings.retention or "") + last


@asynccontextmanager
async def retention_of(
    plane: "ControlPlane", *, local: bool = False, rests: float = 0.0, grace: float = 0.0
) -> AsyncIterator[Retention]:
    """Retention on what a plane keeps, with the archives that it opens meanwhile."""
    from noetl.node.archiving import Archives  # with what exports need: most runs remove nothing

    opening = partial(open_archive, plane.settings, local=local)
    archives = Archives(plane.storage.log, plane.results, opening)
    try:
        yield Retention(plane.storage, plane.results, archives.keep, rests=rests, grace=grace)
    finally:
        await archives.close()


async def prune(
    plane: "ControlPlane", policy: RetentionPolicy, *, most: int, dry_run: bool, local: bool = False
) -> Pruned:
    """By hand: remove up to about so many executions, or say which would go."""
    async with retention_of(plane, local=local) as retention:
        if not dry_run:
            gone = await retention.remove([policy], most=most)
            await retention.clear()
            if retention.kept and not gone:
                stays, why = next(iter(retention.kept.items()))
                raise ServerRefused(f"{stays} cannot be archived, and stays: {why}", code="kept")
            return Pruned(executions=gone, bodies=retention.counts["bodies"])
        found: list[str] = []
        async for row, _ in retention.candidates([policy]):
            found += await plane.storage.removals.family(row.execution_id)
            if len(found) >= most:
                break
        return Pruned(executions=found)


class Housekeeping:
    """Of one server. Of several that share a database the one that is there longest does it."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane
        self._policies = policies_in(plane.settings)
        self.counts: Counter[str] = Counter(executions=0, archived=0, bodies=0)
        """What went since the server began."""

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.turn()
            except NoetlError as wrong:  # an archive is away: nothing went that it does not have
                self._plane.says(f"retention stopped and is tried again later: {wrong}")
            await asyncio.sleep(LOOK)

    async def turn(self) -> None:
        """Put away what may go now."""
        storage, now = self._plane.storage, time.time_ns() // 1_000_000
        await storage.keys.prune(now - KEPT)
        await storage.cache.expire(now)
        await storage.removals.forget(now - KEPT)
        async with retention_of(self._plane, rests=RESTS, grace=GRACE) as retention:
            try:
                gone = [""]
                while gone and await self._leads():
                    gone = await retention.remove(self._policies, most=AT_ONCE)
                    await retention.clear()
            finally:
                self.counts.update(retention.counts)
                self._tell(retention.counts, retention.kept)

    def _tell(self, gone: Counter[str], kept: Mapping[str, str]) -> None:
        if kept:
            stays, why = next(iter(kept.items()))
            self._plane.says(
                f"retention cannot archive {len(kept)}, such as {stays}: {beginning(why, 500)}"
            )
        if any(gone.values()):
            said = ", ".join(f"{name} {number}" for name, number in gone.items())
            self._plane.says(f"retention removed: {said}")

    async def _leads(self) -> bool:
        """
        Whether this server does it: its entry among the servers is its lease. Two that both
        believe so, for a moment, remove each family once; the archive has it once.
        """
        now = time.time_ns() // 1_000_000
        servers: Sequence[tuple[int, str]] = [
            (row.started_at, row.name)
            for row in await self._plane.storage.roster.servers(since_ms=now - SEEN)
        ]
        return not servers or min(servers)[1] == self._plane.name
