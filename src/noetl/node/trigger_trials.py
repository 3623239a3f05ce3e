"""What would a trigger do? Nothing here starts anything but a backfill that is meant (START-1)."""

from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from noetl.errors import NoetlError, ServerRefused
from noetl.messages.envelope import timestamp
from noetl.node.trigger_payloads import payload_of
from noetl.node.triggers import PASSING, TriggerStarts, key_of, misfits_of
from noetl.playbook.finding import Finding
from noetl.playbook.occurrences import BadSchedule, Schedule, moment, times
from noetl.playbook.triggers import Trigger, Webhook
from noetl.ports.catalog import CatalogEntry
from noetl.ports.triggers import TriggerRow
from noetl.server.triggering import now_ms

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

MOST = 1000
"""Planned times of one backfill."""


class Tried(NamedTuple):
    """What a trigger is tried with."""

    at: str | None = None
    data: Any = None
    headers: dict[str, str] | None = None


class Would(msgspec.Struct, frozen=True, kw_only=True):
    """What it would start."""

    key: str
    playbook_id: str | None = None
    payload: dict[str, Any] | None = None
    problem: str | None = None
    warnings: list[Finding] = []


async def try_out(plane: "ControlPlane", trigger: Trigger, given: Tried) -> Would:
    """The playbook and the payload, or the reason why there would be no start."""
    at = now_ms() if given.at is None else moment_in(given.at)
    made = Would(key=key_of(trigger.path, timestamp(at)))
    try:
        entry = await _entry(plane, trigger)
        made = msgspec.structs.replace(made, playbook_id=entry.playbook_id)
        payload = await payload_of(trigger, at=at, data=given.data, headers=given.headers)
        warnings = await misfits_of(plane, entry.digest, payload)
        return msgspec.structs.replace(made, payload=payload, warnings=warnings)
    except PASSING:
        raise
    except NoetlError as wrong:
        return msgspec.structs.replace(made, problem=str(wrong))


async def problem_of(plane: "ControlPlane", trigger: Trigger) -> str | None:
    """Why it can start nothing, as far as that can be told without a payload."""
    try:
        await _entry(plane, trigger)
    except PASSING:
        raise
    except NoetlError as wrong:
        return str(wrong)
    name = trigger.on.credential if isinstance(trigger.on, Webhook) else ""
    if not name or await plane.storage.credentials.find(name) is not None:
        return None
    add = f"noetl credential add {name} --kind generic --stdin"
    return f"there is no credential '{name}', so every call is refused; add it: {add}"


def passed(row: TriggerRow, trigger: Trigger) -> str | None:
    """Of a schedule whose only time was over before it was there."""
    if row.paused or row.planned_at is not None or row.last_at is not None:
        return None
    at = trigger.on.at if isinstance(trigger.on, Schedule) else None
    return None if at is None else f"its only time, {at}, has passed"


def timezone_of(trigger: Trigger) -> str | None:
    return trigger.on.timezone if isinstance(trigger.on, Schedule) else None


async def _entry(plane: "ControlPlane", trigger: Trigger) -> CatalogEntry:
    entry = await plane.playbooks.entry(None, trigger.playbook, trigger.version)
    await plane.library.plan_by(entry.digest)
    return entry


def upcoming(row: TriggerRow, trigger: Trigger, count: int) -> list[str]:
    """The next planned times of a schedule."""
    if not isinstance(trigger.on, Schedule):
        return []
    after = now_ms() if row.planned_at is None else row.planned_at - 1
    return [timestamp(time) for time in islice(times(trigger.on, after=after), count)]


def planned_in(trigger: Trigger, begin: str, end: str) -> list[int]:
    """The planned times of a range, both ends included; refused where they are too many."""
    if not isinstance(trigger.on, Schedule):
        raise ServerRefused(
            f"'{trigger.path}' is not a schedule: it has no planned times",
            code="invalid",
            status=422,
        )
    first, last = (moment_in(text, trigger.on.timezone) for text in (begin, end))
    if first > last:
        raise ServerRefused(
            f"the range is empty: it begins at {begin}, after its end at {end}; swap the two",
            code="invalid",
            status=422,
        )
    ahead = takewhile(lambda time: time <= last, times(trigger.on, after=first - 1))
    wanted = list(islice(ahead, MOST + 1))
    if len(wanted) > MOST:
        raise ServerRefused(
            f"the range has more than {MOST} planned times; take a shorter one",
            code="invalid",
            status=422,
        )
    return wanted


async def backfill(starts: TriggerStarts, trigger: Trigger, time: int) -> tuple[str | None, str]:
    """Start one planned time, once, whatever `overlap` says: the execution, or why not."""
    try:
        row = await starts.start(trigger, timestamp(time), at=time)
    except PASSING:
        raise
    except NoetlError as why:
        return None, str(why)
    return row.execution_id, ""


def moment_in(text: str, timezone: str = "UTC") -> int:
    try:
        return moment(text, timezone)
    except BadSchedule as bad:
        raise ServerRefused(str(bad), code="invalid", status=422) from None
