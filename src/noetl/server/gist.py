"""What is there to do after a row of the log?"""

from noetl.control.execution import Execution
from noetl.messages import events as e


def gist(events: list[e.Event], execution: Execution) -> tuple[list[e.TokenEnqueued], bool]:
    """The parts that a row leaves to be run, and whether lists show something new after it."""
    runs = execution.runs
    parts: list[e.TokenEnqueued] = []
    shown = False
    for event in events:
        kind = type(event)
        if kind is e.TokenEnqueued:
            if event.step_run_id in runs:  # type: ignore[attr-defined]
                parts.append(event)  # type: ignore[arg-type]
        elif kind in SHOWN:
            shown = True
    return parts, shown


SHOWN = {
    e.ExecutionRequested,
    e.ExecutionPaused,
    e.ExecutionResumed,
    e.ExecutionCancelled,
    e.WorkflowFinished,
}
"""Events after which a list of executions reads differently."""
