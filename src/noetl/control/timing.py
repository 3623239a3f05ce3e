"""How long may a step run take, and what is left of it? (TASK-10)"""

from typing import Any

from noetl.control.execution import Execution, Run
from noetl.control.waits_held import waits_in
from noetl.messages.outcome import make_error
from noetl.playbook.plan import Plan


def step_deadline(plan: Plan, run: Run) -> int | None:
    """
    When the run's time is up (ms, by the server's clock): counted from its first claim, however
    often it has changed hands since. None without a timeout, or while nobody has had it.
    """
    seconds = plan.steps[run.step].timeout
    if seconds is None or run.since is None:
        return None
    return run.since + int(seconds * 1000)


def seconds_left(plan: Plan, run: Run, at: int) -> float | None:
    """What is left of the step's timeout at a time; None without one."""
    deadline = step_deadline(plan, run)
    if deadline is None:
        return plan.steps[run.step].timeout
    return max(0.0, (deadline - at) / 1000)


def move_clocks(execution: Execution, since: int, length: int) -> None:
    """
    WAIT-6: what counted down when the pause began has as much left as then; what began to count
    during it, as much as it began with. A moment that was named (`until`) stays where it is.
    """
    now = since + length
    execution.paused += length

    def by(began: int) -> int:
        return now - max(since, min(began, now))

    for run in execution.runs.values():
        for suspension in run.suspended.values():
            moved = by(suspension.since)
            suspension.moved += moved
            if suspension.due is not None:
                suspension.due += moved
        for wait in waits_in(run):
            moved = by(wait.since)
            wait.awaits = [
                {**arm, "due": arm["due"] + moved} if "seconds" in arm else arm
                for arm in wait.awaits
            ]
            wait.due = None if wait.due is None else wait.due + moved
        if run.since is not None:
            run.since += by(run.since)


def too_long(step: str, seconds: float) -> dict[str, Any]:
    """The error of a run whose time was up: the same whoever noticed it first."""
    message = f"step '{step}' took longer than its timeout of {seconds:g} s"
    return make_error("timeout", message, retryable=True)
