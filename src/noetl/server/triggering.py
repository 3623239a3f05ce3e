"""The row of a trigger: made with its registration, paused, resumed, removed (START-1)."""

import time
from typing import Final

from msgspec.structs import replace

from noetl.control.due import due_at, first_time
from noetl.errors import NoetlError, PlaybookRejected, TriggerNotFound
from noetl.playbook.load import load_trigger
from noetl.playbook.occurrences import LATEST, Schedule
from noetl.playbook.suggest import did_you_mean
from noetl.playbook.triggers import Trigger
from noetl.ports.large import read_off_loop
from noetl.ports.storage import Storage
from noetl.ports.triggers import WATCH, TriggerRow

DOCUMENTS: Final[dict[str, Trigger]] = {}
"""What was read, by the digest of its text."""
MOST_KNOWN: Final = 10_000
COMPARED: Final = 1000
"""Names that one that is not there is compared with."""
BEYOND: Final = "its next time lies beyond the calendar: register it with a shorter interval"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


async def enter(storage: Storage, trigger: Trigger, version: int) -> TriggerRow:
    """The row of this version; where it is there already, as after a crash, it stays as it is."""
    kept = await storage.triggers.find(trigger.path)
    if kept is not None and kept.version == version:
        return kept
    row = TriggerRow(
        path=trigger.path,
        kind=trigger.kind,
        version=version,
        paused=trigger.paused if kept is None else kept.paused,
    )
    if kept is not None:
        row = replace(row, last_at=kept.last_at, last_execution_id=kept.last_execution_id)
    return await _begin(storage, row, trigger)


async def _begin(storage: Storage, row: TriggerRow, trigger: Trigger) -> TriggerRow:
    """From now on; what lies before is not its to start."""
    now = now_ms()
    made = replace(row, since=now, waits_for=None, planned_at=None, due_at=None)
    if isinstance(trigger.on, Schedule):
        made = planned(made, trigger.on, first_time(trigger.on, after=now))
    await storage.triggers.put(made)
    if row.kind == "execution":
        await watch_ends(storage, now)
    return made


def planned(row: TriggerRow, schedule: Schedule, time: int | None) -> TriggerRow:
    """The row with its next planned time."""
    due = None if time is None else due_at(schedule, row.path, time)
    return replace(row, planned_at=time, due_at=due, waits_for=None)


async def watch_ends(storage: Storage, now: int) -> None:
    """Let a server look through ended executions, from now on if none did so far (START-6)."""
    kept = await storage.triggers.find(WATCH)
    if kept is None or kept.due_at is None:
        # Always due, and longer than anything else: alarms wait behind nothing.
        watch = TriggerRow(path=WATCH, kind="ends", version=0, planned_at=now, due_at=0)
        await storage.triggers.put(watch)


async def find_trigger(storage: Storage, path: str) -> tuple[TriggerRow, Trigger]:
    """The row and the document of a trigger; raises TriggerNotFound."""
    row = await find_row(storage, path)
    entry = await storage.catalog.find(path, row.version)
    trigger = None if entry is None else await _read(storage, entry.digest)
    if trigger is None:
        raise await _not_found(storage, path)
    return row, trigger


async def find_row(storage: Storage, path: str) -> TriggerRow:
    """The row alone, whatever this release says to the document; raises TriggerNotFound."""
    row = None if path == WATCH else await storage.triggers.find(path)
    if row is None:
        raise await _not_found(storage, path)
    return row


async def _not_found(storage: Storage, path: str) -> TriggerNotFound:
    known = [row.path for row in await storage.triggers.page(limit=COMPARED)]
    hint = did_you_mean(path, known, "`noetl trigger list` shows all")
    return TriggerNotFound(f"no trigger '{path}'; {hint}")


def why_refused(refused: NoetlError) -> str:
    """In words: what an older release took may be a fault by now."""
    if not isinstance(refused, PlaybookRejected):
        return str(refused)
    faults = [one for one in refused.findings if one.severity == "error"]
    return "its text is refused by now: " + "; ".join(
        f"{one.path}: {one.message}" for one in faults
    )


def shown(row: TriggerRow) -> TriggerRow:
    """As people see it: a time beyond every calendar never comes, and that is said (START-3)."""
    if max(row.planned_at or 0, row.due_at or 0) < LATEST:
        return row
    return replace(row, planned_at=None, skipped_at=row.since, skipped_why=BEYOND)


async def _read(storage: Storage, digest: str) -> Trigger | None:
    """A text is read once, and a large one in a thread: any viewer can ask for it (promise 7)."""
    found = DOCUMENTS.get(digest)
    if found is None:
        kept = await storage.playbooks.text(digest)
        if kept is None:
            return None
        found = await read_off_loop(len(kept[0]), _prepared, kept[0])
        if len(DOCUMENTS) >= MOST_KNOWN:
            DOCUMENTS.clear()
        DOCUMENTS[digest] = found
    return found


def _prepared(text: str) -> Trigger:
    trigger = load_trigger(text)
    _ = trigger.made_payload
    return trigger


async def pause(storage: Storage, path: str) -> TriggerRow:
    """It starts nothing until it is resumed."""
    row = await find_row(storage, path)
    if not row.paused:
        row = replace(row, paused=True)
        await storage.triggers.put(row)
    return row


async def resume(storage: Storage, path: str) -> TriggerRow:
    """It starts again, from now on: times that passed meanwhile are not caught up with."""
    row, trigger = await find_trigger(storage, path)
    return await _begin(storage, replace(row, paused=False), trigger) if row.paused else row


async def remove(storage: Storage, path: str) -> None:
    """It starts nothing any more; the catalog keeps its text."""
    await find_row(storage, path)
    await storage.triggers.remove(path)
