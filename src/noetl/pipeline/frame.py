"""Where a pipeline stands: what resuming it needs, and nothing else (TASK-9)."""

from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from noetl.messages.events import WaitDone


class TaskWait(msgspec.Struct, kw_only=True):
    """A task run that waits, or whose wait is over and that nobody has gone on with yet."""

    step: str
    step_run_id: str
    task: str
    task_run_id: str
    awaits: list[dict[str, Any]]
    seq: int
    """Of its `wait.started`: the oldest takes a signal first (WAIT-4)."""
    since: int
    due: int | None = None
    """When `timeout` is over (ms, as `since`)."""
    lent: str | None = None
    done: WaitDone | None = None


class Frame(msgspec.Struct, kw_only=True):
    """
    The position of one pipeline: a step run's, an iteration's, or a nested iteration's.

    It is the one mutable value of this package: the worker moves it as it works, and the server's
    copy is moved by the same function from what the worker reported.
    """

    pc: int = 0
    attempt: int = 1
    ordinal: int = 1
    """The number of the present task run in this pipeline; retries keep it (TASK-9)."""
    prev: Any = None
    iter: dict[str, Any] = {}
    """What `set_iter` wrote; the iterator's binding is added where the pipeline runs."""
    over: Literal["", "passed", "failed"] = ""
    """How the pipeline ended, where its end is recorded and not yet its run's."""
    error: dict[str, Any] | None = None
    inner: "Nested | None" = None
    """The loop of an `iterator` task that has begun and is not recorded as done."""


class Iteration(msgspec.Struct, kw_only=True):
    """An iteration that has started and not ended."""

    frame: Frame
    writes: list[tuple[str, Any]] = []
    """What it gave to reducers so far, in order (LOOP-5)."""
    ctx: dict[str, Any] = {}
    """Its own `set_ctx`, which a parallel iteration sees and others do not (SCOPE-4)."""
    away: Literal["", "waits", "back"] = ""
    """Of a distributed loop: it left its part to wait, and has none; or it has one of its own."""
    waits: dict[str, TaskWait] = {}
    """Of a distributed loop: those of its task runs (WAIT-2)."""


class Nested(msgspec.Struct, kw_only=True):
    """A loop inside a task, as far as it is recorded (LOOP-7)."""

    total: int
    items: Any
    started: int = 0
    active: dict[int, Iteration] = {}
    results: dict[int, Any] = {}
    errors: dict[int, dict[str, Any]] = {}
    writes: dict[str, tuple[int, Any]] = {}
    before: dict[str, Any] = {}
    """What `ctx` had, when the loop began, under keys that parallel iterations wrote (SCOPE-4)."""
    reduced: dict[int, list[tuple[str, Any]]] = {}

    def seen_in(self, ctx: dict[str, Any]) -> dict[str, Any]:
        """`ctx` as parallel iterations see it: as it was before any of them wrote (SCOPE-4)."""
        if not self.writes:
            return ctx
        others = {key: value for key, value in ctx.items() if key not in self.writes}
        return {**others, **self.before}


# The worker moves its frames, the server moves its own; the values in them are nobody's to change,
# as `ctx` and `args` are not. So a copy is as deep as what moves, and costs what that costs: with
# thousands of waits that end in a second it is what the others wait for.


def copied(frame: Frame) -> Frame:
    """A frame to move without the other one."""
    inner = None if frame.inner is None else _copied_loop(frame.inner)
    return replace(frame, iter=dict(frame.iter), inner=inner)


def copied_iteration(of: Iteration) -> Iteration:
    """An iteration to move without the other one; its waits are handed out apart."""
    return replace(of, frame=copied(of.frame), writes=list(of.writes), ctx=dict(of.ctx), waits={})


def _copied_loop(loop: Nested) -> Nested:
    return replace(
        loop,
        active={index: copied_iteration(one) for index, one in loop.active.items()},
        results=dict(loop.results),
        errors=dict(loop.errors),
        writes=dict(loop.writes),
        before=dict(loop.before),
        reduced={index: list(written) for index, written in loop.reduced.items()},
    )
