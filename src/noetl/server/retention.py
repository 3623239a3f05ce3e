"""What is kept and for how long: old executions go, and bodies that nothing refers to (KEEP-1)."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final

from noetl.errors import BodyLost, LogDamaged, NoetlError, UnwritableFile
from noetl.messages.codec import recorded_events
from noetl.messages.references import chunks_of, in_chunks, references_in
from noetl.ports.event_log import EventLog
from noetl.ports.removals import EndedRoot
from noetl.ports.result_store import ResultStore
from noetl.ports.storage import Storage
from noetl.ports.triggers import WATCH
from noetl.server.labels import PlaybookLabels
from noetl.server.policies import RetentionPolicy, verdict, youngest
from noetl.server.replay import rows_of, with_state

PAGE: Final = 100
ROWS: Final = 500
"""Rows of a log that are deleted in one commit."""
RESTS: Final = 4.0
"""For each second of work a server lets others have so many."""

ITS_OWN: Final = (BodyLost, LogDamaged, UnwritableFile)
"""What is wrong with one family, and not with the log or with the archive."""

Archive = Callable[[RetentionPolicy, Sequence[str]], Awaitable[None]]
"""Keeps a family outside; it is durable when it returns, and doing it twice is doing it once."""


class Retention:
    """
    Removes what policies let go, a family at a time.

    A family goes in three steps, each of which can be done again: it is archived; it leaves all
    lists in one commit; then its log goes bit by bit, and its bodies. A crash in between loses
    nothing: the archive has the same names again, and what was left is found by whoever is next.
    """

    def __init__(
        self,
        storage: Storage,
        results: ResultStore,
        archive: Archive,
        *,
        rests: float = 0.0,
        grace: float = 0.0,
    ) -> None:
        self._storage = storage
        self._removals = storage.removals
        self._results = results
        self._archive = archive
        self._rests = rests
        self._grace = grace
        """Seconds before the log of what was removed goes: a restart may just be reading it."""
        self._labels = PlaybookLabels(storage.playbooks)
        self.counts: Counter[str] = Counter(executions=0, archived=0, bodies=0)
        """What went since the process began."""
        self.kept: dict[str, str] = {}
        """What could not be archived, and so stays; why."""

    async def candidates(
        self, policies: Sequence[RetentionPolicy]
    ) -> AsyncIterator[tuple[EndedRoot, RetentionPolicy]]:
        """What may go by the policies, the one that ended first in front."""
        age, now = youngest(policies), time.time_ns() // 1_000_000
        if age is None:
            return
        before = max(0, min(now - int(age * 1000) + 1, await self._unseen()))
        since, after, began = 0, "", time.monotonic()
        while rows := await self._removals.ended(before, since=since, after=after, limit=PAGE):
            labels = [await self._labels_of(row, policies) for row in rows]
            await self._rest(began)
            for row, labelled in zip(rows, labels, strict=True):
                found = verdict(policies, row, labelled, now)
                if found is not None:
                    yield row, found
            since, after, began = rows[-1].finished_at, rows[-1].execution_id, time.monotonic()

    async def remove(
        self, policies: Sequence[RetentionPolicy], *, most: int | None = None
    ) -> list[str]:
        """Archive and remove families that may go, until so many executions went."""
        gone: list[str] = []
        async for row, policy in self.candidates(policies):
            began = time.monotonic()
            try:
                gone += await self.remove_one(row, policy)
            except Exception as wrong:  # promise 7: what cannot be archived stays, alone
                if isinstance(wrong, NoetlError) and not isinstance(wrong, ITS_OWN):
                    raise
                self.kept[row.execution_id] = f"{type(wrong).__name__}: {wrong}"
            if most is not None and len(gone) >= most:
                break
            await self._rest(began)
        return gone

    async def remove_one(self, row: EndedRoot, policy: RetentionPolicy) -> list[str]:
        """One family, unless it is needed; the answer names it."""
        family = await self._removals.family(row.execution_id)
        if not family:
            return []
        if policy.archive is not None:
            await self._archive(policy, family)
            self.counts["archived"] += len(family)
        gone = await self._removals.remove(row.execution_id)
        self.counts["executions"] += len(gone)
        return gone

    async def clear(self) -> None:
        """Delete what removed executions have left: bodies, then rows of the log."""
        before = time.time_ns() // 1_000_000 - int(self._grace * 1000) + 1
        while left := await self._removals.left(before, limit=PAGE):
            for execution_id in left:
                began = time.monotonic()
                self.counts["bodies"] += await self._results.remove(execution_id)
                while not await self._removals.clear(execution_id, most=ROWS):
                    await self._rest(began)
                    began = time.monotonic()
                await self._rest(began)

    async def _rest(self, began: float) -> None:
        """After work since a time, let others have theirs."""
        await asyncio.sleep((time.monotonic() - began) * self._rests)

    async def _unseen(self) -> int:
        """START-6: ends from this time (ms) on were not yet looked at for triggers."""
        watch = await self._storage.triggers.find(WATCH)
        waits = watch is not None and watch.due_at is not None
        return watch.planned_at or 0 if watch is not None and waits else 1 << 62

    async def _labels_of(
        self, row: EndedRoot, policies: Sequence[RetentionPolicy]
    ) -> Mapping[str, str]:
        """Of the text that it ran; read only where a policy asks for labels."""
        if not any(policy.labels for policy in policies):
            return {}
        return await self._labels.of(row.digest)


async def sweep(log: EventLog, results: ResultStore, execution_id: str) -> int:
    """
    Remove the bodies of an ended execution that its log does not refer to: a crash between
    storing a body and committing the decision about it leaves one behind.
    """
    kept: set[str] = set()
    async for row in rows_of(log, execution_id):
        if b'"$ref"' not in row.events:
            continue
        events = recorded_events(execution_id, row.first, row.events)
        states = [await with_state(event, results.fetch) for event in events]
        for reference in references_in([events, states]):
            kept.add(reference.key)
            if in_chunks(reference):
                kept |= {chunk.key for chunk in chunks_of(await results.fetch(reference))}
    return await results.remove(execution_id, keep=frozenset(kept))
