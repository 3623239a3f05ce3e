"""Executions to show: made of events, and of nothing else."""

from typing import Any

from noetl.control.execution import Execution, LoopRun, Run
from noetl.messages import events as e

RUN: dict[str, Any] = {"step": "work", "step_run_id": "4.0"}
FAILED = {"kind": "http", "message": "busy", "retryable": True}
OK = {"status": "ok", "result": 1, "error": None}
BUSY = {"status": "error", "result": None, "error": FAILED}


def active(execution_id: str = "x1", path: str = "demo/work") -> Execution:
    """As much of an execution as showing it needs."""
    return Execution(execution_id=execution_id, path=path)


def live_in_a_loop() -> Execution:
    """An execution that was interrupted after two of five iterations."""
    resumed = active()
    loop = LoopRun(total=5, items=[], mode="parallel", exec="distributed", done=2)
    resumed.runs["4.0"] = Run(**RUN, args={}, ctx={}, loop=loop)
    resumed.seq = 17
    return resumed


def requested(**fields: Any) -> e.Event:
    return e.ExecutionRequested(path="demo/work", digest="d", **fields)


def scheduled(**ids: Any) -> e.Event:
    return e.StepScheduled(**{**RUN, **ids}, tokens=[])


def task_started(attempt: int = 1, **ids: Any) -> e.Event:
    given = {"task_run_id": "4.1", "task": "get", "kind": "http", **RUN, **ids}
    return e.TaskStarted(**given, attempt=attempt)


def task_done(outcome: dict[str, Any] = OK, **fields: Any) -> e.Event:
    given = {"task_run_id": "4.1", "task": "get", **RUN, **fields}
    return e.TaskDone(**given, outcome=outcome)


def loop_started(total: int) -> e.Event:
    return e.LoopStarted(**RUN, total=total, items=[], mode="parallel", exec="distributed")


def iterations(first: int, last: int, *, fail: bool = False) -> list[e.Event]:
    ids = [{**RUN, "index": n, "iteration_id": f"4.{n + 1}"} for n in range(first, last)]
    if fail:
        return [e.IterationFailed(**one, error=FAILED) for one in ids]
    return [e.IterationDone(**one) for one in ids]
