"""The state that a log comes to, as `noetl replay` prints it and the API answers it (EVT-5)."""

from typing import Any

from noetl.control.execution import Execution, Run

State = dict[str, Any]


def state_of(execution: Execution) -> State:
    """The state as the contract of the command names it."""
    runs = execution.runs.values()
    return {
        "execution_id": execution.execution_id,
        "seq": execution.seq,
        "status": execution.status,
        "ctx": execution.ctx,
        "tokens": list(execution.tokens.values()),
        "runs": [run_of(run) for run in runs],
        "loops": [loop_of(run) for run in runs if run.loop is not None],
    }


def run_of(run: Run) -> State:
    return {
        "step_run_id": run.step_run_id,
        "step": run.step,
        "args": run.args,
        "started": run.started,
        "frame": run.frame,
        "parts": list(run.parts.values()),
        "suspended": list(run.suspended.values()),
    }


def loop_of(run: Run) -> State:
    loop = run.loop
    assert loop is not None, "the run has a loop"
    return {
        "step_run_id": run.step_run_id,
        "step": run.step,
        "mode": loop.mode,
        "exec": loop.exec,
        "total": loop.total,
        "offered": loop.offered,
        "low": loop.low,
        "done": loop.done,
        "failed": loop.failed,
        "active": sorted(loop.active),
    }
