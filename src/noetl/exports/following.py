"""
A continuous export: what was recorded since the last look, each event once (EVT-6, decision 0064).

The log has no order over all executions, and needs none: the position is the `seq` of each one that
is open. What runs is asked for by its status, whatever a clock says. What began and ended between
two looks is found in the list of all, which is read from the newest back to the horizon.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from noetl.errors import ExecutionNotFound
from noetl.exports.columns import row_of
from noetl.exports.export import FORMS, ExportBody
from noetl.exports.otlp import spans_of
from noetl.exports.position import OpenAt, Position, PositionFile
from noetl.exports.reading import WHOLE, Cut, Envelope, Pages, envelopes, millis
from noetl.messages.codec import encode_shown
from noetl.messages.envelope import timestamp
from noetl.messages.times import Times

LIVE = ("running", "paused", "queued")
LAST = "playbook.processed"
"""The name of the last event of any log."""
SETTLES = 600_000
"""Milliseconds after its start within which an execution comes into the list, by any clock."""
WHOLE_LOOK = 60.0
"""Seconds between two looks back to the horizon; in between, as far as there is something new."""
SPANS = 60.0
"""Seconds between two looks at the spans of one that runs: each reads its log from the start."""
PAGE = 200

Take = Callable[[ExportBody, int], Awaitable[None]]
"""Hands over a body and its number; it is safe at the target when this returns."""


class Lists(Protocol):
    """Pages of executions, as a control plane and a server answer them."""

    def __call__(
        self, *, status: str | None = None, cursor: str | None = None, limit: int = PAGE
    ) -> Awaitable[Any]: ...


class Follower:
    """Looks through a log again and again, and remembers how far it came."""

    def __init__(
        self,
        lists: Lists,
        events: Pages,
        kept: PositionFile,
        position: Position,
        take: Take,
        *,
        most: int,
        most_bytes: int,
        settles: int = SETTLES,
    ) -> None:
        self._lists = lists
        self._events = events
        self._kept = kept
        self._take = take
        self._most = most
        self._most_bytes = most_bytes
        self._settles = settles
        self.position = position
        self.exported = 0
        """Events that were handed over since the process began."""
        self.lost: list[str] = []
        """Executions that were removed before they were handed over up to their end."""
        self._times: dict[str, Times] = {}
        self._spans_at: dict[str, float] = {}
        self._whole_at = -WHOLE_LOOK
        self._newest = 0
        self._passed = ""
        """Where the horizon may move to with the next hand-over."""
        self._pieces: list[bytes] = []
        self._size = self._events_waiting = 0
        self._reached: dict[str, tuple[OpenAt, bool]] = {}
        """What the pieces that wait come up to, and whether that is the end."""

    async def look(self) -> int:
        """Hand over all that is new; the answer is how many events."""
        before = self.exported
        try:
            await self._look(time.time_ns() // 1_000_000)
        except BaseException:  # what was not taken is read again, from its place
            self._pieces, self._size, self._events_waiting, self._reached = [], 0, 0, {}
            self._passed = ""
            self._times.clear()
            self._spans_at.clear()
            raise
        return self.exported - before

    async def _look(self, now: int) -> None:
        whole = time.monotonic() - self._whole_at >= WHOLE_LOOK
        rows = {row.execution_id: (row.started_at, row.seq) async for row in self._live()}
        live = frozenset(rows)
        async for row in self._new(live, whole=whole):
            rows[row.execution_id] = (row.started_at, row.seq)
        # Not by this machine's clock alone, which may be ahead of the servers'.
        settled = timestamp(max(0, min(now, self._newest) - self._settles))
        for name, (started_at, seq) in sorted(rows.items(), key=lambda one: one[1]):
            if whole:  # the oldest first: whatever started before this one is done, or open
                self._passed = min(started_at, settled)
            place = self.position.open.get(name, OpenAt(0, started_at))
            if seq == 0 or seq > place.seq:
                await self._read(name, place, runs=name in live)
        for name, place in list(self.position.open.items()):
            if name not in rows:
                await self._read(name, place, runs=False)
        await self._hand_over()
        if whole:
            self._whole_at, self._passed = time.monotonic(), settled
            self._save()

    # ── what there is ────────────────────────────────────────────────────────────────────────

    async def _live(self) -> AsyncIterator[Any]:
        for status in LIVE:
            async for page in self._pages(status):
                for row in page:
                    yield row

    async def _new(self, live: frozenset[str], *, whole: bool) -> AsyncIterator[Any]:
        """Executions that nobody knew of; a list that grows meanwhile is no harm."""
        position = self.position
        async for page in self._pages(None):
            self._newest = max([self._newest, *(millis(row.started_at) for row in page)])
            fresh = [
                row
                for row in page
                if row.started_at >= position.horizon
                and row.execution_id not in live
                and row.execution_id not in position.done
                and row.execution_id not in position.open
            ]
            for row in fresh:
                yield row
            if all(row.started_at < position.horizon for row in page) or not (fresh or whole):
                return

    async def _pages(self, status: str | None) -> AsyncIterator[list[Any]]:
        cursor: str | None = None
        while True:
            page = await self._lists(status=status, cursor=cursor, limit=PAGE)
            yield page.executions
            cursor = page.next
            if cursor is None:
                return

    # ── one execution ────────────────────────────────────────────────────────────────────────

    async def _read(self, execution_id: str, place: OpenAt, *, runs: bool) -> None:
        """What one has behind its place; the place moves when it was handed over."""
        now = time.monotonic()
        spans = self.position.form == "otlp"
        if spans and runs and now - self._spans_at.get(execution_id, -SPANS) < SPANS:
            return
        try:
            if spans:
                self._spans_at[execution_id] = now
                await self._read_spans(execution_id, place)
            else:
                await self._read_events(execution_id, place)
        except ExecutionNotFound:
            if self.position.open.pop(execution_id, None) is not None:
                self.lost.append(execution_id)

    async def _read_events(self, execution_id: str, place: OpenAt) -> None:
        times = await self._times_of(execution_id, place)
        async for _, event in envelopes(self._events, execution_id, Cut(after=place.seq)):
            plain = self.position.form == "jsonl"
            await self._add(encode_shown(event) if plain else row_of(event, times.take(event)))
            self._reach(event, place)

    async def _read_spans(self, execution_id: str, place: OpenAt) -> None:
        """A span may start before the place: the log is read from the start."""
        last: list[Envelope] = []

        async def seen() -> AsyncIterator[tuple[int, Envelope]]:
            async for at, event in envelopes(self._events, execution_id, WHOLE):
                last[:] = [event]
                yield at, event

        async for span in spans_of(execution_id, seen(), Cut(after=place.seq)):
            await self._add(span)
        if last:
            self._reach(last[0], place)

    async def _times_of(self, execution_id: str, place: OpenAt) -> Times:
        """When its runs began: after a new start of the exporter that is read again."""
        if execution_id not in self._times:
            times = self._times[execution_id] = Times()
            if place.seq and self.position.form != "jsonl":
                async for _, event in envelopes(self._events, execution_id, WHOLE):
                    if event["seq"] > place.seq:
                        break
                    times.take(event)
        return self._times[execution_id]

    # ── handing over ─────────────────────────────────────────────────────────────────────────

    async def _add(self, piece: bytes) -> None:
        full = len(self._pieces) >= self._most or self._size + len(piece) > self._most_bytes
        if self._pieces and full:
            await self._hand_over()
        self._pieces.append(piece)
        self._size += len(piece)

    def _reach(self, event: Envelope, place: OpenAt) -> None:
        known = self._reached.get(event["execution_id"])
        after = self.position.open.get(event["execution_id"], place) if known is None else known[0]
        self._events_waiting += event["seq"] - after.seq
        reached = OpenAt(event["seq"], place.started_at)
        self._reached[event["execution_id"]] = (reached, event["name"] == LAST)

    async def _hand_over(self) -> None:
        """The target first, then the place: whoever dies in between hands the same over again."""
        if not self._reached and not self._pieces:
            return
        position = self.position
        if self._pieces:
            joined = FORMS[position.form].joined(self._pieces)
            await self._take(ExportBody(joined, len(self._pieces)), position.segment + 1)
            position.segment += 1
        for name, (reached, ended) in self._reached.items():
            position.open[name] = reached
            if ended:
                del position.open[name]
                self._times.pop(name, None)
                self._spans_at.pop(name, None)
                position.done[name] = reached.started_at
        self._save()
        self.exported += self._events_waiting
        self._pieces, self._size, self._events_waiting = [], 0, 0
        self._reached = {}

    def _save(self) -> None:
        """The position, without what is behind the horizon and need not be known by name."""
        position = self.position
        position.horizon = max(position.horizon, self._passed)
        done = position.done.items()
        position.done = {name: at for name, at in done if at >= position.horizon}
        self._kept.save(position)
