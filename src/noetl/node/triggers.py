"""Starts what triggers ask for. Any number of servers do so at once; each start happens once."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from noetl.control.due import LATE, due, verdict
from noetl.errors import (
    LimitReached,
    LogUnavailable,
    NoetlError,
    OutcomeUnknown,
    PlaybookRejected,
    TriggerNotFound,
)
from noetl.expression.failure import shortened
from noetl.masking import KNOWN
from noetl.messages.envelope import timestamp
from noetl.node.playbooks import OF_TRIGGERS
from noetl.node.trigger_payloads import payload_of
from noetl.playbook.finding import Finding
from noetl.playbook.occurrences import Schedule
from noetl.playbook.triggers import OWN, Trigger
from noetl.ports.event_log import ExecutionRow
from noetl.ports.triggers import WATCH, Noted, TriggerRow
from noetl.server.triggering import MOST_KNOWN, find_trigger, now_ms, planned, why_refused

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

LOOK = 0.5
"""Seconds between two looks for what is due."""
TAKEN = 2
"""Lease times for which a row that is due is this server's: if it dies, another takes it then."""
BATCH = 50
"""Triggers that are taken, and whose rows are written, together."""
AT_ONCE = 3
"""Triggers that start together; then everybody else has as much of the event loop as they had."""
LONGEST_REST = 0.005
"""Seconds; where others keep the loop busy, they have had their turns already."""
RECHECK = 1_000
"""Milliseconds between two looks whether the execution that a start waits for has ended."""
LONGEST_REASON = 1000
PASSING = (LogUnavailable, OutcomeUnknown)
"""Faults after which a start is tried again; any other is the reason why there is none."""


class TriggerStarts:
    """What is due, and the one way in which any trigger starts anything."""

    def __init__(self, plane: "ControlPlane", *, now: Callable[[], int] = now_ms) -> None:
        self._plane = plane
        self._table = plane.storage.triggers
        self.now = now
        self._known: dict[tuple[str, int], Trigger] = {}
        self._refused: set[tuple[str, int]] = set()
        """Triggers that an older release took and this one does not: said once."""
        self._notes: dict[str, Noted] = {}
        self._told: set[tuple[str, str]] = set()
        """Triggers and playbooks of which it was said that the payload does not fit."""
        self.watching = self._looked = now()
        """Since when there was no longer gap between two looks: what came before was missed."""
        self.ends: Callable[[TriggerRow, int], Any] | None = None
        """Deals with the row that stands for all ended executions (START-6)."""

    # ── finding what is due ──────────────────────────────────────────────────────────────────

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.look()
            except PASSING as away:
                self._plane.says(f"triggers wait for the log: {away}")
            await asyncio.sleep(LOOK)

    async def look(self) -> int:
        """Deal with all that is due now, a batch at a time; how many triggers it was."""
        count = 0
        while not self._plane.closing.is_set():
            now = self._tick()
            until = now + int(TAKEN * 1000 * self._plane.settings.lease_ttl)
            rows = await self._table.take(now, until, BATCH)
            count += len(rows)
            await self._deal_with(rows, now)
            if len(rows) < BATCH:
                break
        await self._write_notes()
        return count

    async def _deal_with(self, rows: Sequence[TriggerRow], now: int) -> None:
        """
        A few at once, with a rest after them as long as the loop worked meanwhile, so that others
        are served as well. All rows share a commit at the end: what is lost before it comes again,
        and starts nothing twice (START-2).
        """
        turns: list[TriggerRow | BaseException | None] = []
        for place in range(0, len(rows), AT_ONCE):
            worked = time.thread_time()
            some = (self._turn(row, now) for row in rows[place : place + AT_ONCE])
            turns += await asyncio.gather(*some, return_exceptions=True)
            await asyncio.sleep(min(time.thread_time() - worked, LONGEST_REST))
        settling = (self._settle(row, turn) for row, turn in zip(rows, turns, strict=True))
        self._tell(rows, await asyncio.gather(*settling, return_exceptions=True))

    async def _settle(self, row: TriggerRow, turn: TriggerRow | BaseException | None) -> None:
        if isinstance(turn, BaseException):
            raise turn
        if turn is not None:
            await self._table.settle(row, turn)

    def _tell(self, rows: Sequence[TriggerRow], turns: Sequence[BaseException | None]) -> None:
        """Promise 7: a fault in one is said, and it comes again; the others are not held up."""
        for row, fault in zip(rows, turns, strict=True):
            if isinstance(fault, PASSING):
                raise fault
            if fault is not None:
                kind = type(fault).__name__
                self._plane.says(f"the trigger '{row.path}' is tried again later: {kind}: {fault}")

    def _tick(self) -> int:
        """The time; a clock that was set, or a long stop, begins the watching anew."""
        now = self.now()
        if not self._looked - LATE <= now <= self._looked + LATE:
            self.watching = now
        self._looked = now
        return now

    async def _turn(self, row: TriggerRow, now: int) -> TriggerRow | None:
        """The row as it is afterwards; None where somebody else writes it."""
        if row.path == WATCH:
            if self.ends is not None:
                await self.ends(row, now)
            return None
        try:
            trigger = await self.trigger(row)
        except (TriggerNotFound, PlaybookRejected) as gone:
            return _skipped(replace(row, due_at=None), now, why_refused(gone))
        if not isinstance(trigger.on, Schedule):
            return None
        return await self._fire(row, trigger, trigger.on, now)

    async def trigger(self, row: TriggerRow) -> Trigger:
        """The document of a row."""
        found = self._known.get((row.path, row.version))
        if found is None:
            _, found = await find_trigger(self._plane.storage, row.path)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[row.path, row.version] = found
        return found

    async def readable(self, row: TriggerRow) -> Trigger | None:
        """The same; None, with a note for people, where the text is gone or refused by now."""
        try:
            return await self.trigger(row)
        except (TriggerNotFound, PlaybookRejected) as gone:
            if (row.path, row.version) not in self._refused:
                self._refused.add((row.path, row.version))
                self.note(row.path, Noted(at=self.now(), why=why_refused(gone)))
            return None

    async def _fire(
        self, row: TriggerRow, trigger: Trigger, schedule: Schedule, now: int
    ) -> TriggerRow:
        """Everything that a schedule has due, as its row says afterwards (START-3)."""
        assert row.planned_at is not None, "it was due"
        held = row.waits_for is not None
        found = due(
            schedule, row.planned_at, path=row.path, now=now, since=self.watching, held=held
        )
        if found.skipped:
            row = _skipped(row, now, _missed(schedule, found.skipped, held=held))
        for time_ in found.starts:
            last = row.last_execution_id
            running = schedule.overlap != "allow" and await self._runs(last)
            match verdict(schedule.overlap, running=running):
                case "wait":
                    return _held(row, time_, now)
                case "skip":
                    why = f"{timestamp(time_)}: execution {last} still runs (overlap: skip)"
                    row = _skipped(row, now, why)
                    continue
                case "cancel":
                    assert last is not None, "it runs"
                    await self._cancel(last, trigger)
                case "start":
                    pass
            try:
                row = await self._started(row, trigger, time_, now)
            except LimitReached as full:
                if running:  # what was cancelled has its place until it ends (LIMIT-3)
                    return _held(row, time_, now)
                row = _skipped(row, now, f"{timestamp(time_)}: {full}")
        return planned(row, schedule, found.planned)

    async def _started(
        self, row: TriggerRow, trigger: Trigger, planned_at: int, now: int
    ) -> TriggerRow:
        try:
            begun = await self.start(trigger, timestamp(planned_at), at=planned_at)
        except (*PASSING, LimitReached):
            raise
        except NoetlError as why:
            return _skipped(row, now, f"{timestamp(planned_at)}: {why}")
        return replace(row, last_at=planned_at, last_execution_id=begun.execution_id)

    async def _runs(self, execution_id: str | None) -> bool:
        row = None
        if execution_id is not None:
            row = await self._plane.storage.executions.find(execution_id)
        return row is not None and row.finished_at is None

    async def _cancel(self, execution_id: str, trigger: Trigger) -> None:
        try:
            await self._plane.order(
                execution_id, "cancel", f"the next start of {trigger.path} came (overlap)"
            )
        except PASSING:
            raise
        except NoetlError:
            pass  # it has ended meanwhile

    # ── starting ─────────────────────────────────────────────────────────────────────────────

    async def start(
        self,
        trigger: Trigger,
        occurrence: str,
        *,
        at: int,
        data: Any = None,
        headers: dict[str, str] | None = None,
        depth: int = 0,
    ) -> ExecutionRow:
        """
        Start the playbook of a trigger, once for each occurrence, whoever else tries it (START-2).

        Raises NoetlError: a playbook that is missing, a payload that fails. Nothing is recorded of
        those but the trigger's own note, for a schedule would fill the list of executions.
        """
        payload = await payload_of(trigger, at=at, data=data, headers=headers)
        playbooks, library = self._plane.playbooks, self._plane.library
        entry = await playbooks.entry(None, trigger.playbook, trigger.version)
        await library.plan_by(entry.digest)
        row = await self._plane.execute(
            playbook_id=entry.playbook_id,
            payload=payload,
            key=key_of(trigger.path, occurrence),
            triggered=True,
            depth=depth,
        )
        await self._tell_misfits(trigger, entry.digest, payload)
        return row

    async def _tell_misfits(self, trigger: Trigger, digest: str, payload: dict[str, Any]) -> None:
        """VAL-7: once for each version of the playbook, for a schedule would fill the log."""
        if (trigger.path, digest) not in self._told:
            for one in await misfits_of(self._plane, digest, payload):
                self._told.add((trigger.path, digest))
                self._plane.says(told(f"trigger {trigger.path}: {one.message}; {one.hint}"))

    def note(self, path: str, noted: Noted) -> None:
        """What became of a call or message; written with the next look, for people only."""
        if noted.why is not None:
            noted = replace(noted, why=told(noted.why))
        kept = self._notes.get(path)
        if kept is None:
            self._notes[path] = noted
            return
        self._notes[path] = Noted(
            at=noted.at,
            execution_id=noted.execution_id or kept.execution_id,
            why=noted.why or kept.why,
        )

    async def _write_notes(self) -> None:
        notes, self._notes = self._notes, {}
        for path, noted in notes.items():
            await self._table.note(path, noted)


async def misfits_of(plane: "ControlPlane", digest: str, payload: dict[str, Any]) -> list[Finding]:
    """What of a payload does not fit; `trigger` is ours, whether the playbook reads it or not."""
    given = {key: value for key, value in payload.items() if key != OWN}
    return await plane.library.warnings(digest, given)


def key_of(path: str, occurrence: str) -> str:
    """START-2: no two triggers share one, since behind its path there is no slash any more."""
    assert "/" not in occurrence, "planned times, digests, executions and places have none"
    return f"{OF_TRIGGERS}{path}/{occurrence}"


def _held(row: TriggerRow, time_: int, now: int) -> TriggerRow:
    """A planned time that waits for the end of the start before it."""
    waits_for = row.last_execution_id
    return replace(row, planned_at=time_, due_at=now + RECHECK, waits_for=waits_for)


def _skipped(row: TriggerRow, at: int, why: str) -> TriggerRow:
    return replace(row, skipped_at=at, skipped_why=told(why))


def told(why: str) -> str:
    """A reason as the row of a trigger keeps it: no novel, and no secret (KEY-2)."""
    return shortened(KNOWN.masked(why), LONGEST_REASON)


def _missed(schedule: Schedule, count: int, *, held: bool) -> str:
    times = f"{count} planned time{'s' * (count != 1)}"
    if held:
        return f"{times} waited beyond the limit of {schedule.limit} (overlap: queue)"
    return f"{times} came while no server ran (catch_up: {schedule.catch_up})"
