"""
Where a pipeline goes after a task: one function, for the worker that runs it and for the server
that follows its reports, so that a resumed run stands exactly where the lost one stood.
"""

from typing import Any, Final

import msgspec

from noetl.messages.events import TaskDone
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import Pipeline

PASSED: Final = "passed"
FAILED: Final = "failed"


def advance(frame: Frame, done: TaskDone, pipeline: Pipeline) -> str | None:
    """
    Move the frame by what `done` recorded.

    Returns PASSED or FAILED at the end of the pipeline, None while it goes on.
    """
    if done.set_iter:
        frame.iter = {**frame.iter, **done.set_iter}
    frame.inner = None
    do = done.do
    if do == "retry":
        frame.attempt += 1
        if done.set_prev is not msgspec.UNSET:
            frame.prev = done.set_prev
        return None
    frame.prev = value_after(done)
    if do == "fail":
        frame.over, frame.error = FAILED, failure_of(done)
        return FAILED
    if do == "jump":
        assert done.to is not None, "a jump names its target"
        frame.pc = pipeline.labels[done.to]
    else:
        frame.pc += 1
    if do == "break" or frame.pc >= len(pipeline.tasks):
        frame.over = PASSED
        return PASSED
    frame.attempt = 1
    frame.ordinal += 1
    return None


def value_after(done: TaskDone) -> Any:
    """SCOPE-3: `_prev` for the next task; null after an error that was continued."""
    if done.set_prev is not msgspec.UNSET:
        return done.set_prev
    outcome = done.outcome
    return outcome.get("result") if outcome["status"] == "ok" else None


def failure_of(done: TaskDone) -> dict[str, Any]:
    """Why the pipeline failed at this task."""
    error = done.error or done.outcome.get("error")
    assert error is not None, "a failed task run records an error"
    return error
