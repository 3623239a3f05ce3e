"""Plain lines: one per start, end, retry and failure, and few for a loop."""

import pytest
from tests.unit.cli.running import shown as s

from noetl.cli.running.plain import PlainShow
from noetl.messages import events as e


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def show(clock: Clock) -> PlainShow:
    return PlainShow(err=False, now=clock)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_the_life_of_a_step(
    show: PlainShow, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    active = s.active()
    show.take(active, [s.requested(), s.scheduled()])
    show.begin(active)
    show.take(active, [e.StepStarted(**s.RUN), s.task_started()])
    show.take(active, [s.task_done(s.BUSY, do="retry", delay=2.0), s.task_started(2)])
    clock.time = 1.5
    show.take(active, [s.task_done(), e.StepDone(**s.RUN)])
    show.end()
    assert lines(capsys) == [
        "demo/work: execution x1",
        "work: started",
        "work.get: attempt 1 failed: http: busy; again in 2 s",
        "work: done in 1.5 s",
    ]


def test_a_step_that_is_over_at_once_gets_one_line(
    show: PlainShow, capsys: pytest.CaptureFixture[str]
) -> None:
    show.take(s.active(), [e.StepStarted(**s.RUN), s.task_started(), e.StepDone(**s.RUN)])
    assert lines(capsys) == ["work: done"]


def test_times_are_those_of_the_worker(show: PlainShow, capsys: pytest.CaptureFixture[str]) -> None:
    timed = {"status": "ok", "meta": {"started_at": 1000, "duration_ms": 277}}
    show.take(s.active(), [e.StepStarted(**s.RUN), s.task_done(timed), e.StepDone(**s.RUN)])
    assert lines(capsys) == ["work: done in 277 ms"]


@pytest.mark.parametrize(("waited", "said"), [(0.0, "277 ms"), (2.0, "2.0 s")])
def test_a_failure_takes_as_long_as_its_calls_or_longer(
    show: PlainShow, clock: Clock, capsys: pytest.CaptureFixture[str], waited: float, said: str
) -> None:
    timed = {**s.BUSY, "meta": {"started_at": 1000, "duration_ms": 277}}
    show.take(s.active(), [e.StepStarted(**s.RUN)])
    clock.time = waited
    show.take(s.active(), [s.task_done(timed, do="fail"), e.StepFailed(**s.RUN, error=s.FAILED)])
    assert lines(capsys)[-1] == f"work: failed in {said}: http: busy"


@pytest.mark.parametrize("do", ["continue", "jump", "break"])
def test_what_goes_on_after_an_error_says_so(
    show: PlainShow, capsys: pytest.CaptureFixture[str], do: str
) -> None:
    show.take(s.active(), [s.task_done(s.BUSY, do=do)])
    assert lines(capsys) == ["work.get: went on after an error: http: busy"]


def test_a_failure_that_an_arc_takes_says_who_handles_it(
    show: PlainShow, capsys: pytest.CaptureFixture[str]
) -> None:
    fired = e.NextFired(**s.RUN, arc=0, to="alarm", token_id="9.0")
    show.take(s.active(), [fired, e.StepFailed(**s.RUN, error=s.FAILED), fired])
    assert lines(capsys) == ["work: failed: http: busy", "work: its failure is handled by 'alarm'"]


def test_a_failure_is_told(show: PlainShow, capsys: pytest.CaptureFixture[str]) -> None:
    show.take(s.active(), [e.StepFailed(**s.RUN, error=s.FAILED)])
    assert lines(capsys) == ["work: failed: http: busy"]


def test_a_loop_says_little_however_long_it_is(
    show: PlainShow, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    active = s.active()
    show.take(active, [s.loop_started(100_000)])
    for first in range(0, 90_000, 1000):
        clock.time += 0.1
        show.take(active, s.iterations(first, first + 1000))
    show.take(active, s.iterations(90_000, 100_000, fail=True))
    show.take(active, [e.LoopDone(**s.RUN, total=100_000, done=90_000, failed=10_000)])
    said = lines(capsys)
    assert said[0] == "work: loop of 100,000 iterations, parallel"
    assert said[1] == "work: 50,048 of 100,000 done"
    assert said[2] == "work:90000: failed: http: busy"
    assert said[-1] == "work: 90,000 of 100,000 done, 10,000 failed in 9.0 s"
    assert len(said) == 8


def test_a_resumed_loop_is_taken_up(show: PlainShow, capsys: pytest.CaptureFixture[str]) -> None:
    active = s.live_in_a_loop()
    show.begin(active)
    show.take(active, s.iterations(2, 5))
    show.take(active, [e.LoopDone(**s.RUN, total=5, done=5)])
    assert lines(capsys) == [
        "demo/work: execution x1 continues after event 17",
        "work: 5 of 5 done",
    ]


def test_iterations_of_a_loop_that_was_never_seen_are_passed_over(
    show: PlainShow, capsys: pytest.CaptureFixture[str]
) -> None:
    show.take(s.active(), [*s.iterations(0, 2), *s.iterations(2, 3, fail=True)])
    assert lines(capsys) == []


def test_retries_inside_a_loop_are_not_told_one_by_one(
    show: PlainShow, capsys: pytest.CaptureFixture[str]
) -> None:
    show.take(s.active(), [s.loop_started(2), s.task_done(s.BUSY, do="retry")])
    assert len(lines(capsys)) == 1


def test_nested_loops_have_no_lines_of_their_own(
    show: PlainShow, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = {**s.RUN, "parent_id": "4.1"}
    ids = {**inner, "index": 0, "iteration_id": "4.1.1"}
    show.take(
        s.active(),
        [
            e.LoopStarted(**inner, total=1, items=[1], mode="sequential"),
            e.IterationDone(**ids),
            e.IterationFailed(**ids, error=s.FAILED),
            e.LoopDone(**inner, total=1, done=1),
        ],
    )
    assert lines(capsys) == []


def test_a_child_is_told_apart(show: PlainShow, capsys: pytest.CaptureFixture[str]) -> None:
    show.take(s.active(), [s.requested()])
    child = s.requested(parent_execution_id="x1", parent_id="4.1")
    show.take(s.active("x2"), [child, e.StepDone(step="inner", step_run_id="4.0")])
    assert lines(capsys)[1:] == ["demo/work > inner: done"]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (e.ExecutionPaused(), "execution: paused; continue with: noetl resume x1"),
        (e.ExecutionResumed(), "execution: goes on"),
        (e.ExecutionCancelled(reason="why"), "execution: being cancelled (cancel): why"),
        (e.TokenDropped(token_id="1.0", step="b", reason="refused"), "b: token dropped (refused)"),
        (
            e.TokenDropped(token_id="1.0", step="b", reason="limit", error=s.FAILED),
            "b: token dropped (http: busy)",
        ),
        (
            e.TaskSuspended(**s.RUN, task_run_id="4.1", task="get", reason="retry"),
            "work.get: waits (retry)",
        ),
    ],
)
def test_orders_and_waits(
    show: PlainShow, capsys: pytest.CaptureFixture[str], event: e.Event, line: str
) -> None:
    show.take(s.active(), [event])
    assert lines(capsys) == [line]


def test_printed_lines_go_to_stderr(show: PlainShow, capsys: pytest.CaptureFixture[str]) -> None:
    show.hear("x1", "work", "hi\x1b[2J")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "work | hi\\x1b[2J\n")
