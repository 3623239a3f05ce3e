"""
When does a schedule fire? Times are milliseconds since 1970 (START-3).

A cron expression with a fixed hour and minute is read by the wall clock: a time that a change of
the clocks leaves out fires at the first one after the gap, and one that comes twice fires once. One
with a star in the hour or the minute follows the passing of time, so that "every five minutes"
stays every five minutes (decision 0059).
"""

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import dropwhile, groupby, takewhile
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim, CronSimError

CatchUp = Literal["none", "last", "all"]
Overlap = Literal["allow", "skip", "queue", "cancel_old"]

CHANGE = timedelta(hours=3)
"""No change of a clock is larger, but for a day that an island skips once in a century."""
FIELDS: Final = {
    "second": "0 to 59",
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31",
    "month": "1 to 12, or JAN to DEC",
    "day-of-week": "0 to 7, or SUN to SAT",
}
"""The fields of a cron expression as the library names them, and what each may be."""
SETTLED = 4_102_444_800_000
"""The year 2100: clocks change by one rule from then on, as far as anybody knows."""
YEARS = 50
"""Without a moment that exists: then none comes. The library gives up after as many."""
NEVER = "the cron expression '{}' never fires: it names no day that exists"
EARLIEST, LATEST = 86_400_000, 221_845_392_000_000
"""From the second day of 1970 to the year 9000: a calendar that ends is no schedule that does."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly one of `cron`, `every` (seconds) and `at`, and what becomes of missed times."""

    cron: str | None = None
    every: float | None = None
    at: str | None = None
    timezone: str = "UTC"
    catch_up: CatchUp = "none"
    limit: int = 100
    overlap: Overlap = "allow"
    jitter: float = 0.0


class BadSchedule(ValueError):
    """A schedule that cannot be read, or that never fires; the text says why."""


def check(schedule: Schedule) -> str | None:
    """What is wrong with a schedule; None where it fires some day."""
    try:
        zone(schedule.timezone)
        if schedule.at is not None:
            moment(schedule.at, schedule.timezone)
        elif schedule.cron is not None and next(times(schedule, after=SETTLED), None) is None:
            return NEVER.format(schedule.cron)
    except BadSchedule as bad:
        return str(bad)
    return None


def times(schedule: Schedule, *, after: int) -> Iterator[int]:
    """Every time later than `after`, in order."""
    return _times(schedule, after, back=False)


def times_back(schedule: Schedule, *, before: int) -> Iterator[int]:
    """Every time earlier than `before`, the latest first."""
    return _times(schedule, before, back=True)


def _times(schedule: Schedule, edge: int, *, back: bool) -> Iterator[int]:
    if schedule.at is not None:
        once = moment(schedule.at, schedule.timezone)
        return iter([once] if (once < edge if back else once > edge) else [])
    if schedule.every is not None:
        return _every(int(schedule.every * 1000), edge, back=back)
    return _cron(schedule.cron or "", zone(schedule.timezone), edge, back=back)


def _every(interval: int, edge: int, *, back: bool) -> Iterator[int]:
    """Multiples of the interval since 1970: all servers agree without being told a beginning."""
    number = (edge - 1) // interval if back else max(edge // interval + 1, 0)
    while number >= 0:
        yield number * interval
        number += -1 if back else 1


def _cron(text: str, clocks: ZoneInfo, edge: int, *, back: bool) -> Iterator[int]:
    if edge <= EARLIEST if back else edge >= LATEST:
        return iter(())
    start = at_time(min(max(edge, EARLIEST), LATEST)).astimezone(clocks)
    follow = _by_the_wall if _is_fixed(text) else _by_passing_time
    found = follow(text, clocks, start, back=back)
    behind = dropwhile(lambda time: time >= edge if back else time <= edge, found)
    return takewhile(lambda time: EARLIEST < time < LATEST, behind)


def _by_the_wall(text: str, clocks: ZoneInfo, start: datetime, *, back: bool) -> Iterator[int]:
    """Local times in their order, each as the moment at which it fires; none comes twice."""
    locals_ = _fields(text, _local(start, back=back), back=back)
    return _once(stamp(settled(local, clocks)) for local in locals_)


def _by_passing_time(text: str, clocks: ZoneInfo, start: datetime, *, back: bool) -> Iterator[int]:
    """
    Every moment at which the clocks show what the expression names.

    The library is given local times only: with a zone it goes on by whole hours, and where clocks
    change by half an hour it leaves times out.
    """
    begin = _local(start, back=back)

    def shown(fold: int) -> Iterator[int]:
        last, ahead = begin, _fields(text, begin, back=back)
        while (local := next(ahead, None)) is not None and abs(local.year - last.year) <= YEARS:
            found = local.replace(tzinfo=clocks, fold=fold)
            if _exists(found):
                last = local
                yield stamp(found)
            else:  # nothing else in the gap exists either, and there may be thousands
                ahead = _fields(text, _behind_gap(local, clocks, back=back), back=back)

    return _once(heapq.merge(shown(0), shown(1), reverse=back))


def _local(start: datetime, *, back: bool) -> datetime:
    """A local time that no later one, or going back no earlier one, is shown beyond."""
    offsets = [one.utcoffset() for one in (start, start - CHANGE if back else start + CHANGE)]
    known = [one for one in offsets if one is not None]
    return start.astimezone(UTC).replace(tzinfo=None) + (max(known) if back else min(known))


def _once(found: Iterator[int]) -> Iterator[int]:
    return (time for time, _ in groupby(found))


def _fields(text: str, start: datetime, *, back: bool) -> Iterator[datetime]:
    # A moment later in reverse: the library begins with the second before the one it is given.
    begin = start + timedelta(seconds=1) if back and start.microsecond else start
    try:
        return iter(CronSim(text, begin.replace(microsecond=0), reverse=back))
    except (CronSimError, AssertionError, ValueError) as wrong:
        months = text.split()[-2:-1]
        named = bool(months) and _is_cron(f"0 0 1 {months[0]} *")
        if named and _is_cron(" ".join([*text.split()[:-2], "*", *text.split()[-1:]])):
            raise BadSchedule(NEVER.format(text)) from None  # in any month but those it names
        said = _unread(text.split(), str(wrong))
        raise BadSchedule(f"the cron expression '{text}' cannot be read: {said}") from None


def _unread(fields: list[str], wrong: str) -> str:
    """Which field is wrong and what it may be; the library names it, and no more."""
    if len(fields) not in (5, 6):
        return f"it has {len(fields)} fields, expected 5, or 6 with the second first"
    field = wrong.removeprefix("Bad ")
    names = list(FIELDS)[-len(fields) :]
    if field not in names:
        return wrong or "a field of it makes no sense"
    return f"the {field} is '{fields[names.index(field)]}', expected {FIELDS[field]}"


def _is_cron(text: str) -> bool:
    try:
        CronSim(text, EPOCH)
    except (CronSimError, AssertionError, ValueError):
        return False
    return True


def settled(local: datetime, clocks: ZoneInfo) -> datetime:
    """The moment of a local time: the first of two, or the end of the gap that it lies in."""
    first = local.replace(tzinfo=clocks, fold=0)
    if _exists(first):
        return first
    # In a gap `fold=0` reads the time by the offset before it, and `fold=1` by the one after it.
    before, after = first.utcoffset(), local.replace(tzinfo=clocks, fold=1).utcoffset()
    assert before is not None
    assert after is not None
    return _end_of_gap(first.astimezone(UTC) - abs(after - before), first.astimezone(UTC), clocks)


def _behind_gap(local: datetime, clocks: ZoneInfo, *, back: bool) -> datetime:
    """From where to look on, for what comes after the gap that a local time lies in, or before."""
    end, second = settled(local, clocks).astimezone(UTC), timedelta(seconds=1)
    last = (end - second).astimezone(clocks).replace(tzinfo=None)
    return last + second if back else end.astimezone(clocks).replace(tzinfo=None) - second


def _exists(local: datetime) -> bool:
    """Whether clocks ever show it; in a gap they do not."""
    shown = local.astimezone(UTC).astimezone(local.tzinfo)
    return shown.replace(tzinfo=None) == local.replace(tzinfo=None)


def _end_of_gap(low: datetime, high: datetime, clocks: ZoneInfo) -> datetime:
    """The first moment with the new offset, to the second."""
    new = high.astimezone(clocks).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = (low + (high - low) / 2).replace(microsecond=0)
        if middle.astimezone(clocks).utcoffset() == new:
            high = middle
        else:
            low = middle
    return high


def _is_fixed(text: str) -> bool:
    fields = text.split()[-5:]
    return len(fields) == 5 and not fields[0].startswith("*") and not fields[1].startswith("*")


@cache
def zone(name: str) -> ZoneInfo:
    """The clocks of a place, by its IANA name."""
    try:
        return ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise BadSchedule(
            f"no time zone '{name}'; expected an IANA name such as Europe/Berlin"
        ) from None


def moment(text: str, timezone: str) -> int:
    """An RFC 3339 time; without an offset it is local time."""
    clocks = zone(timezone)
    try:
        found = datetime.fromisoformat(text)
        found = settled(found, clocks) if found.tzinfo is None else found.astimezone(UTC)
        return stamp(found)
    except (ValueError, OverflowError):  # the latter at the ends of what a date can hold
        raise BadSchedule(
            f"'{text}' is not a time; write it like 2026-03-01 or 2026-03-01T06:00:00Z"
        ) from None


def stamp(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def at_time(stamp: int) -> datetime:
    return EPOCH + timedelta(milliseconds=stamp)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
