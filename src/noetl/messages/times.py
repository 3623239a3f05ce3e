"""
When did tasks, iterations and step runs begin and end?

The worker that called a tool has timed it (OUT-1). The row of the log that carried the report
says only when it was recorded: a loop of 300 ms tasks may arrive in one row.
"""

from typing import Any

Interval = tuple[int, int]
"""Begin and end, in milliseconds since 1970."""


def called(outcome: dict[str, Any]) -> Interval | None:
    """From the call of the tool to its answer; None where the outcome does not say."""
    meta = outcome.get("meta")
    if not isinstance(meta, dict):
        return None
    start, took = meta.get("started_at"), meta.get("duration_ms", 0)
    return (start, start + took) if type(start) is type(took) is int else None


def around(known: Interval | None, more: Interval) -> Interval:
    """The shortest interval that holds both."""
    return more if known is None else (min(known[0], more[0]), max(known[1], more[1]))


class Times:
    """Of one execution; feed it its events in order. It holds what has not ended."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, Interval]] = {}
        """Step run → itself and its iterations → from the first task to the last."""

    def take(self, event: dict[str, Any]) -> Interval | None:
        """When that which an event ends began and ended, where a task says so (envelopes)."""
        match event["name"]:
            case "task.done":
                run, task = event["step_run_id"], event["task_run_id"]
                return self.task(run, task, event["data"]["outcome"])
            case "loop.iteration.done" | "loop.iteration.failed":
                return self.end(event["step_run_id"], event["entity_id"])
            case "step.done" | "step.failed":
                return self.end(event["step_run_id"])
            case "loop.done" if event["parent_id"] is None:
                return self.end(event["step_run_id"])
        return None

    def task(self, step_run_id: str, task_run_id: str, outcome: dict[str, Any]) -> Interval | None:
        """EVT-0: `4.1` is a task of run `4.0`, `4.1.2` one of iteration `4.1`."""
        took = called(outcome)
        if took is not None:
            run = self._runs.setdefault(step_run_id, {})
            for one in (step_run_id, task_run_id.rpartition(".")[0]):
                run[one] = around(run.get(one), took)
        return took

    def end(self, step_run_id: str, iteration_id: str | None = None) -> Interval | None:
        if iteration_id is None:
            return self._runs.pop(step_run_id, {}).get(step_run_id)
        return self._runs.get(step_run_id, {}).pop(iteration_id, None)
