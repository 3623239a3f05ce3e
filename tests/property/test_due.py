"""START-3: planned times and what is due of them, whatever the schedule and the clock."""

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import example, given
from hypothesis import strategies as st

from noetl.control.due import AT_ONCE, COUNTED, LATE, due, due_at
from noetl.playbook import occurrences
from noetl.playbook.occurrences import Schedule, at_time, stamp, times, times_back

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
FIRST, LAST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2027, 12, 31, tzinfo=UTC)
MOMENTS = st.integers(stamp(FIRST), stamp(LAST))


def field(low: int, high: int) -> st.SearchStrategy[str]:
    one = st.integers(low, high).map(str)
    several = st.lists(one, min_size=2, max_size=3, unique=True).map(",".join)
    return st.one_of(st.just("*"), st.integers(2, 20).map(lambda n: f"*/{n}"), one, several)


CRONS = st.one_of(
    st.tuples(field(0, 59), field(0, 23), st.just("*"), st.just("*"), field(0, 6)),
    st.tuples(st.just("0"), field(0, 59), field(0, 23), field(1, 28), st.just("*"), st.just("*")),
).map(" ".join)

SCHEDULES = st.builds(
    Schedule,
    cron=CRONS,
    timezone=st.sampled_from(ZONES),
    catch_up=st.sampled_from(("none", "last", "all")),
    limit=st.integers(1, 5),
    jitter=st.sampled_from((0.0, 30.0)),
) | st.builds(Schedule, every=st.integers(1, 100_000), limit=st.integers(1, 5))

HALF_AN_HOUR = Schedule(cron="*/5 3 * * *", timezone="Australia/Lord_Howe")
"""Clocks that change by less than an hour."""


@pytest.mark.rule("START-3")
@given(SCHEDULES, MOMENTS)
@example(HALF_AN_HOUR, 1_790_787_600_000)
def test_times_are_the_same_in_both_directions(schedule: Schedule, start: int) -> None:
    ahead = list(islice(times(schedule, after=start), 30))
    assert ahead == sorted(set(ahead))
    assert ahead[0] > start
    back = list(islice(times_back(schedule, before=ahead[-1]), len(ahead) - 1))
    assert back[::-1] == ahead[:-1]


@pytest.mark.rule("START-3")
@pytest.mark.parametrize("cron", ["*/15 1-3 * * *", "*/20 * * * *", "7 */3 * * *", "* 2 * * *"])
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("month", "day"), [(3, 29), (4, 5), (10, 4), (10, 25), (11, 1), (3, 8)])
def test_passing_time_is_followed_through_a_change(
    cron: str, zone: str, month: int, day: int
) -> None:
    """Every minute is asked for what its clocks show."""
    begin = stamp(datetime(2026, month, day, tzinfo=ZoneInfo(zone))) - 60_000
    end = begin + 2 * 86_400_000
    minutes = range(begin + 60_000, end, 60_000)
    expected = [one for one in minutes if shows(cron, at_time(one).astimezone(ZoneInfo(zone)))]
    schedule = Schedule(cron=cron, timezone=zone)
    assert [*takewhile(lambda one: one < end, times(schedule, after=begin))] == expected


def shows(cron: str, local: datetime) -> bool:
    """A second reading of cron, in a minute and without a zone."""
    minute = local.replace(tzinfo=None, fold=0)
    return next(CronSim(cron, minute - timedelta(minutes=1))) == minute


@pytest.mark.rule("START-3")
@given(st.sampled_from(ZONES), st.integers(0, 1094))
def test_a_fixed_local_time_fires_once_a_day(zone: str, day: int) -> None:
    """Whatever the clocks do; in a gap at its end."""
    hour, minute = 1 + day % 3, day % 60
    schedule = Schedule(cron=f"{minute} {hour} * * *", timezone=zone)
    clocks = ZoneInfo(zone)
    midnight = (FIRST + timedelta(days=day)).date()
    begin = datetime(midnight.year, midnight.month, midnight.day, tzinfo=clocks)
    following = midnight + timedelta(days=1)
    end = datetime(following.year, following.month, following.day, tzinfo=clocks)
    found = [
        time for time in islice(times(schedule, after=stamp(begin) - 1), 2) if time < stamp(end)
    ]
    assert len(found) == 1
    local = at_time(found[0]).astimezone(clocks)
    wanted = local.replace(hour=hour, minute=minute, second=0, fold=0)
    exists = wanted.astimezone(UTC).astimezone(clocks).replace(fold=0) == wanted
    if exists:
        assert (local.hour, local.minute, local.fold) == (hour, minute, 0)
    else:
        before = at_time(found[0] - 1000).astimezone(clocks)
        assert before.utcoffset() != local.utcoffset(), "the first moment after the gap"


@pytest.mark.rule("START-3")
@given(SCHEDULES, MOMENTS, st.lists(st.integers(1, 400_000), min_size=1, max_size=8))
def test_a_server_that_watches_starts_every_time_once(
    schedule: Schedule, begin: int, pauses: list[int]
) -> None:
    planned = next(times(schedule, after=begin))
    now = planned
    started: list[int] = []
    for pause in pauses:
        found = due(schedule, planned, path="p", now=now, since=begin)
        assert not found.skipped
        assert len(found.starts) <= AT_ONCE
        assert all(due_at(schedule, "p", time) <= now for time in found.starts)
        started += found.starts
        assert found.planned is not None, "these never end"
        planned = found.planned
        now += pause
    expected = list(islice(times(schedule, after=begin), len(started)))
    assert started == expected
    assert planned == next(times(schedule, after=expected[-1] if expected else begin))


@pytest.mark.rule("START-3")
@given(SCHEDULES, MOMENTS, st.integers(1, 90 * 86_400_000))
def test_missed_times_are_caught_up_with_as_told(schedule: Schedule, begin: int, away: int) -> None:
    planned = next(times(schedule, after=begin))
    now = begin + away
    found = due(schedule, planned, path="p", now=now, since=now)
    caught = [time for time in found.starts if time < now - LATE]
    missed = list(islice(times_back(schedule, before=max(planned, now - LATE)), 10))
    missed = [time for time in missed if time >= planned]
    most = {"none": 0, "last": 1, "all": schedule.limit}[schedule.catch_up]
    assert caught == (sorted(missed[:most]) if most else [])
    assert found.planned is None or not found.starts or found.planned > found.starts[-1]
    assert bool(found.skipped) == (len(missed) > len(caught))


@pytest.mark.rule("START-3")
@given(SCHEDULES, MOMENTS, st.integers(1, 400 * 86_400_000))
def test_a_clock_that_goes_back_starts_nothing_again(
    schedule: Schedule, begin: int, back: int
) -> None:
    planned = next(times(schedule, after=begin))
    first = due(schedule, planned, path="p", now=planned + 60_000, since=begin)
    assert first.planned is not None
    later = planned - back
    again = due(schedule, first.planned, path="p", now=later, since=later)
    assert again.starts == ()
    assert again.planned == first.planned


@pytest.mark.rule("START-3")
@given(SCHEDULES, MOMENTS, st.integers(1, 86_400_000))
def test_what_waits_for_an_execution_is_kept_up_to_the_limit(
    schedule: Schedule, begin: int, waited: int
) -> None:
    planned = next(times(schedule, after=begin))
    now = planned + 60_000 + waited
    found = due(schedule, planned, path="p", now=now, since=now, held=True)
    ready = [time for time in islice(times(schedule, after=planned - 1), 2000) if time <= now]
    ready = [time for time in ready if due_at(schedule, "p", time) <= now]
    if len(ready) < 1000:
        assert list(found.starts) == ready[-schedule.limit :]


@pytest.mark.rule("START-3")
def test_a_long_absence_is_made_up_for_in_turns() -> None:
    """So that one schedule with thousands of missed times keeps no other waiting."""
    schedule = Schedule(every=60, catch_up="all", limit=1000)
    planned, now = 0, 10_000 * 60_000
    started: list[int] = []
    skipped = []
    for _ in range(11):
        found = due(schedule, planned, path="p", now=now, since=now)
        assert len(found.starts) <= AT_ONCE
        started += found.starts
        skipped.append(found.skipped)
        planned = found.planned or 0
    assert started == [n * 60_000 for n in range(10_000 - 1001, 10_001)]
    assert skipped == [COUNTED, *(0 for _ in skipped[1:])]


@pytest.mark.rule("START-3")
@pytest.mark.parametrize("cron", ["* 2 * 3 7L", "*/59 2 * 3 7L", "* * 2 * 3 7L"])
def test_times_that_no_clock_shows_are_not_gone_through(
    cron: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the night of the change there is no hour from two: they were looked for to the year 9999,
    while the server stood still."""
    schedule = Schedule(cron=cron, timezone="Europe/Berlin")
    looked = Mock(side_effect=occurrences._exists)
    monkeypatch.setattr(occurrences, "_exists", looked)
    begin = stamp(datetime(2026, 1, 1, tzinfo=UTC))
    assert next(times(schedule, after=begin), None) is None
    assert occurrences.check(schedule) == occurrences.NEVER.format(cron)
    last = next(times_back(schedule, before=begin))
    assert at_time(last).year == 1980, "the last year without a change in March"
    assert looked.call_count < 2000
