"""
What is due of a schedule, what was missed, and what becomes of it? (START-3)

House rules: nothing here reads a clock, starts anything or knows where rows are kept. Every answer
follows from a schedule, the first planned time that nobody has dealt with, and two moments: now,
and since when the server has been watching. A time that came while nobody watched was *missed*;
one that merely waits its turn was not.
"""

import hashlib
from collections.abc import Mapping
from functools import partial
from itertools import islice, takewhile
from typing import Final, Literal

import msgspec

from noetl.playbook.occurrences import Overlap, Schedule, times, times_back

LATE: Final = 60_000
"""Milliseconds before the watching began that still count as on time."""
AT_ONCE: Final = 100
"""Times of one schedule that are dealt with in one turn; then others have theirs."""
COUNTED: Final = 1000
"""Missed times that are counted; beyond it there are just more."""

Verdict = Literal["start", "skip", "wait", "cancel"]

VERDICTS: Final[Mapping[tuple[Overlap, bool], Verdict]] = {
    ("allow", False): "start",
    ("allow", True): "start",
    ("skip", False): "start",
    ("skip", True): "skip",
    ("queue", False): "start",
    ("queue", True): "wait",
    ("cancel_old", False): "start",
    ("cancel_old", True): "cancel",
}
"""What a time means, by `overlap` and by whether the start before it still runs."""


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """What to do now."""

    starts: tuple[int, ...]
    """Planned times to start, in order."""
    skipped: int
    """Missed times that are not started; COUNTED means that many or more."""
    planned: int | None
    """The next planned time; None where there is none any more."""


def due(
    schedule: Schedule, planned: int, *, path: str, now: int, since: int, held: bool = False
) -> Due:
    """
    All of a schedule that is due, `planned` being the first time that nobody has dealt with.

    `held`: that time waited for an execution to end (`overlap: queue`), so that it was not missed,
    nor were those after it.
    """
    if held:
        return _waited(schedule, planned, path, now)
    edge = max(planned, min(since, now) - LATE)
    missed = _missed(schedule, planned, edge)
    most = _most(schedule)
    caught = missed[-most:] if most else ()
    waiting = times(schedule, after=edge - 1)
    is_due = partial(_is_due, schedule, path, now)
    timely = tuple(islice(takewhile(is_due, waiting), AT_ONCE))
    return _due(schedule, caught + timely, len(missed) - len(caught), edge - 1)


def _waited(schedule: Schedule, planned: int, path: str, now: int) -> Due:
    """No more than `limit` times wait; of more the oldest are given up."""
    is_due = partial(_is_due, schedule, path, now)
    waiting = tuple(filter(is_due, _missed(schedule, planned, now + 1)))
    starts = waiting[-schedule.limit :]
    return _due(schedule, starts, len(waiting) - len(starts), planned - 1)


def _due(schedule: Schedule, starts: tuple[int, ...], skipped: int, handled: int) -> Due:
    """No more than AT_ONCE; the others are planned still, and so come with the next turn."""
    now = starts[:AT_ONCE]
    after = now[-1] if now else handled
    return Due(starts=now, skipped=skipped, planned=first_time(schedule, after=after))


def _is_due(schedule: Schedule, path: str, now: int, planned: int) -> bool:
    return due_at(schedule, path, planned) <= now


def _most(schedule: Schedule) -> int:
    return {"none": 0, "last": 1, "all": schedule.limit}[schedule.catch_up]


def _missed(schedule: Schedule, planned: int, edge: int) -> tuple[int, ...]:
    """Times from `planned` on that lie before `edge`, in order; the latest, where they are many."""
    back = takewhile(lambda time: time >= planned, times_back(schedule, before=edge))
    return tuple(islice(back, COUNTED + schedule.limit))[::-1]


def due_at(schedule: Schedule, path: str, planned: int) -> int:
    """
    The moment at which a planned time is started: later by its jitter, which is drawn from its own
    name, so that all servers agree on it.
    """
    if not schedule.jitter:
        return planned
    drawn = hashlib.sha256(f"{path}/{planned}".encode()).digest()[:8]
    share = int.from_bytes(drawn) / 2**64
    return planned + int(share * schedule.jitter * 1000)


def first_time(schedule: Schedule, *, after: int) -> int | None:
    """The next planned time."""
    return next(times(schedule, after=after), None)


def verdict(overlap: Overlap, *, running: bool) -> Verdict:
    """START-3: what a planned time means while the start before it runs."""
    return VERDICTS[overlap, running]
