"""The live tree: what is drawn for what has happened, never higher than the terminal."""

from typing import Any

import pytest
from tests.unit.cli.running import shown as s

from noetl.cli.running.progress import ExecutionProgress, Progress
from noetl.cli.running.tree import TreeShow, picture
from noetl.messages import events as e


class Drawn:
    """A progress with a clock that the test moves."""

    def __init__(self) -> None:
        self.time = 0.0
        self.progress = Progress(lambda: self.time)

    def take(self, *events: e.Event, execution_id: str = "x1") -> None:
        self.progress.take(execution_id, "demo/work", events)

    @property
    def root(self) -> ExecutionProgress:
        assert self.progress.root is not None
        return self.progress.root

    def lines(self, height: int = 40) -> list[str]:
        return [str(line) for line in picture(self.root, self.time, height)]


@pytest.fixture
def drawn() -> Drawn:
    return Drawn()


def test_steps_tasks_and_attempts(drawn: Drawn) -> None:
    drawn.take(s.requested(), s.scheduled(step="start", step_run_id="2.0"))
    drawn.take(e.StepDone(step="start", step_run_id="2.0"), s.scheduled(), s.task_started())
    drawn.time = 2.0
    drawn.take(s.task_done(s.BUSY, do="retry", delay=3.0))
    assert drawn.lines() == [
        "demo/work  execution x1",
        "├─ ✔ start  0 ms",
        "└─ ⠋ work  2.0 s  1 retry",
        "     get (http)  again in 3 s: http: busy",
    ]
    drawn.take(s.task_started(2))
    assert drawn.lines()[-1] == "     get (http)  attempt 2"
    drawn.take(s.task_done(), e.StepDone(**s.RUN))
    assert drawn.lines()[-1] == "└─ ✔ work  2.0 s  1 retry"


def test_who_holds_it_back_is_told_above_the_tree(capsys: pytest.CaptureFixture[str]) -> None:
    show = TreeShow(err=False)
    show.tell("x1", "start", "place 1 in the queue; held by x0")
    assert capsys.readouterr().out == "start: place 1 in the queue; held by x0\n"


def test_a_loop_says_which_iteration_waits_for_whom(drawn: Drawn) -> None:
    """Its tasks are not drawn: without a word nobody would know that they are asked."""
    ids = {**s.RUN, "task": "ask", "task_run_id": "4.3.1"}
    drawn.take(s.scheduled(), s.loop_started(9))
    drawn.take(e.WaitStarted(**ids, awaits=[{"by": "approval", "title": "Pay?"}]))
    assert drawn.lines()[-1].endswith(" work:2 waits for an answer to 'Pay?'")
    drawn.take(e.WaitDone(**ids, by="approval"))
    assert "waits for" not in drawn.lines()[-1]


def test_a_failed_step_says_why(drawn: Drawn) -> None:
    drawn.take(s.scheduled(), e.StepFailed(**s.RUN, error=s.FAILED))
    drawn.take(e.WorkflowFinished(status="failed"))
    assert drawn.lines() == [
        "demo/work  execution x1  failed",
        "└─ ✘ work  0 ms  http: busy",
    ]


@pytest.mark.parametrize(
    ("done", "failed", "bar", "words"),
    [(0, 0, 0, "0/1,000,000"), (500_000, 0, 12, "500,000/1,000,000"), (1, 999_999, 24, "failed")],
)
def test_a_loop_is_a_bar(drawn: Drawn, done: int, failed: int, bar: int, words: str) -> None:
    drawn.take(s.scheduled(), s.loop_started(1_000_000))
    step = drawn.root.steps["work"]
    step.done, step.failed_iterations = done, failed
    [_, line] = picture(drawn.root, 0.0, 40)
    green = [span for span in line.spans if span.style == "green"]
    assert sum(span.end - span.start for span in green) == bar
    assert words in str(line)


def test_iterations_are_counted(drawn: Drawn) -> None:
    drawn.take(
        s.scheduled(), s.loop_started(5), *s.iterations(0, 3), *s.iterations(3, 4, fail=True)
    )
    drawn.take(s.task_started(task_run_id="4.5.1"))
    lines = drawn.lines()
    assert "3/5 1 failed" in lines[1]
    assert len(lines) == 2, "the tasks of iterations have no lines"


def test_a_child_hangs_below_its_step_until_that_ends(drawn: Drawn) -> None:
    drawn.take(s.requested(), s.scheduled())
    drawn.take(
        s.requested(parent_execution_id="x1", parent_id="4.1"),
        s.scheduled(step="inner"),
        execution_id="x2",
    )
    assert drawn.lines()[2:] == ["   demo/work", "   └─ ⠋ inner  0 ms"]
    drawn.take(e.WorkflowFinished(status="completed"), execution_id="x2")
    drawn.take(e.StepDone(**s.RUN))
    assert len(drawn.lines()) == 2


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (e.TokenParked(token_id="9.0", step="both", reason="join"), "◌ both  token waits (join)"),
        (e.TokenDropped(token_id="9.0", step="both", reason="quiet"), "○ both  token dropped"),
    ],
)
def test_waiting_tokens(drawn: Drawn, event: e.Event, line: str) -> None:
    token = e.TokenParked(token_id="9.0", step="both", reason="join")
    drawn.take(s.requested(), token, event)
    assert line in drawn.lines()[-1]


@pytest.mark.parametrize(
    ("event", "state"),
    [
        (e.ExecutionPaused(), "paused"),
        (e.ExecutionCancelled(), "stopping (cancel)"),
        (e.WorkflowFinished(status="completed"), "completed"),
    ],
)
def test_the_head_says_how_it_stands(drawn: Drawn, event: e.Event, state: str) -> None:
    drawn.take(s.requested(), event)
    assert drawn.lines()[0] == f"demo/work  execution x1  {state}"
    drawn.take(e.ExecutionResumed())
    assert drawn.lines()[0] == "demo/work  execution x1"


def test_the_picture_is_never_higher_than_the_terminal(drawn: Drawn) -> None:
    for number in range(100):
        ids: dict[str, Any] = {"step": f"s{number}", "step_run_id": f"{number}.0"}
        drawn.take(s.scheduled(**ids))
        if number < 97:
            drawn.take(e.StepDone(**ids))
    lines = drawn.lines(height=12)
    assert len(lines) <= 12
    assert lines[1] == "  … 91 more"
    assert [line.split()[2] for line in lines[-3:]] == ["s97", "s98", "s99"]


def test_more_runs_than_rows_are_cut(drawn: Drawn) -> None:
    for number in range(50):
        drawn.take(s.scheduled(step=f"s{number}", step_run_id=f"{number}.0"))
    assert len(drawn.lines(height=12)) <= 12


def test_a_resumed_loop_is_taken_up_once(drawn: Drawn) -> None:
    for _ in range(2):
        drawn.progress.take_up(s.live_in_a_loop())
    drawn.take(*s.iterations(2, 4))
    assert drawn.root.steps["work"].runs == 1
    assert "4/5" in drawn.lines()[1]


def test_a_resumed_execution_is_drawn_though_its_beginning_was_not_seen(drawn: Drawn) -> None:
    drawn.take(s.task_started(), s.task_done(), e.StepDone(**s.RUN))
    assert drawn.lines()[1].startswith("└─ ✔ work")
