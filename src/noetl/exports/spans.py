"""
Which spans follow from a log (EVT-6). Children are in the trace of whoever started them.

    execution ── step run ── task run ── attempt (where there is more than one)
                         └── iteration ── task run ── iteration of a nested loop ── …

A span is handed out with the event that ends it, so that only what is open is held. Its ids are
derived from the execution and the entity: exporting twice gives the same spans.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from noetl.exports.reading import Envelope
from noetl.messages.places import iteration_place
from noetl.messages.times import Interval, Times, called
from noetl.messages.trace import Entity, span_id

MOST_NOTES = 32
"""Notes (span events) that one span keeps; a lease may expire for ever."""
LONGEST_MESSAGE = 1000

EXECUTION: Entity = ("execution", "")


class Span(msgspec.Struct):
    """One piece of work, from its start to its end (ms)."""

    entity: Entity
    parent: Entity | None
    name: str
    start: int
    attributes: dict[str, Any]
    end: int = 0
    links: list[tuple[str, Entity]] = []
    """Execution and entity of what caused it."""
    notes: list[tuple[int, str]] = []
    notes_left_out: int = 0
    error: str | None = None
    """Set where it failed: the message, which may be empty."""
    above: str | None = None
    """The id of a parent span outside the execution: the task, or the caller, that started it."""

    def note(self, at: int, name: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append((at, name))
        else:
            self.notes_left_out += 1


class StepRun(msgspec.Struct):
    """A step run and what is open below it, by id."""

    span: Span
    below: dict[str, Span] = {}


def named(**told: Any) -> dict[str, Any]:
    """Attributes of ours, by their names."""
    return {f"noetl.{name}": value for name, value in told.items()}


def fail(span: Span, error: Any) -> None:
    """Take over what an error says; one that was moved out of the log says only that it was."""
    told = error if isinstance(error, dict) else {}
    span.error = str(told.get("message", ""))[:LONGEST_MESSAGE]
    if isinstance(told.get("kind"), str):
        span.attributes["error.type"] = span.attributes["noetl.error.kind"] = told["kind"]


class Trace:
    """The spans of one execution; feed it every event from the first."""

    def __init__(self, execution_id: str) -> None:
        self.execution_id = execution_id
        self._root: Span | None = None
        self._runs: dict[str, StepRun] = {}
        self._times = Times()
        self._causes: dict[str, str] = {}
        """The step run that made a token which waits."""

    @property
    def open(self) -> int:
        """How many spans have begun and not ended."""
        runs = self._runs.values()
        return (self._root is not None) + len(runs) + sum(len(run.below) for run in runs)

    def take(self, at: int, event: Envelope) -> list[Span]:
        """The spans that end with this event."""
        act = ACTS.get(event["name"])
        return [] if act is None else act(self, at, event) or []

    # ── the execution ────────────────────────────────────────────────────────────────────────

    def _requested(self, at: int, event: Envelope) -> None:
        fields = event["data"]
        attributes = named(execution_id=self.execution_id, path=fields["path"])
        if fields.get("version") is not None:
            attributes["noetl.version"] = fields["version"]
        parent, above = fields.get("parent_execution_id"), event["parent_id"]
        links: list[tuple[str, Entity]] = []
        if parent is not None and above is not None:
            task: Entity = ("task", above)
            above = span_id(parent, task)
            if event["trace_id"] == self.execution_id:  # logs of rules 2 and before carry no trace
                above, links = None, [(parent, task)]
        if fields.get("origin_execution_id") is not None:
            links.append((fields["origin_execution_id"], EXECUTION))
        self._root = Span(EXECUTION, None, fields["path"], at, attributes, links=links, above=above)

    def _finished(self, _at: int, event: Envelope) -> None:
        if self._root is not None and event["status"] == "error":
            fields = event["data"]
            fail(self._root, fields.get("error") or {"message": fields["status"]})

    def _processed(self, at: int, event: Envelope) -> list[Span]:
        ended = [span for run in list(self._runs) for span in self._close_run(run, at)]
        if self._root is not None:
            self._root.attributes["noetl.status"] = event["data"]["status"]
            ended.append(_ended(self._root, at))
            self._root = None
        return ended

    def _noted(self, at: int, event: Envelope) -> None:
        if self._root is not None:
            self._root.note(at, event["name"])

    # ── tokens and step runs ─────────────────────────────────────────────────────────────────

    def _token_made(self, _at: int, event: Envelope) -> None:
        cause = event["data"].get("parent_step_run_id")
        if cause is not None:
            self._causes[event["entity_id"]] = cause

    def _token_gone(self, _at: int, event: Envelope) -> None:
        self._causes.pop(event["entity_id"], None)

    def _scheduled(self, at: int, event: Envelope) -> None:
        causes = [self._causes.pop(token, None) for token in event["data"]["tokens"]]
        run = self._run(at, event)
        run.span.links = [
            (self.execution_id, ("step", cause)) for cause in causes if cause is not None
        ]

    def _step_noted(self, at: int, event: Envelope) -> None:
        self._run(at, event).span.note(at, event["name"])

    def _step_ended(self, at: int, event: Envelope) -> list[Span]:
        run = self._run(at, event)
        if event["status"] == "error":
            fail(run.span, event["data"].get("error"))
        return self._close_run(event["step_run_id"], at)

    def _run(self, at: int, event: Envelope) -> StepRun:
        name, step = event["step_run_id"], event["step"]
        if name not in self._runs:
            told = named(step=step, step_run_id=name)
            self._runs[name] = StepRun(Span(("step", name), EXECUTION, step, at, told))
        return self._runs[name]

    def _below(
        self, at: int, event: Envelope, kind: str, parent: Entity | None, name: str, **told: Any
    ) -> Span:
        """The open span of what a step run does; it begins with the first event about it."""
        run, entity = self._run(at, event), (kind, event["entity_id"])
        if entity[1] not in run.below:
            attributes = named(step=event["step"], **told)
            span = Span(entity, parent or run.span.entity, name, at, attributes)
            run.below[entity[1]] = span
        return run.below[entity[1]]

    def _close_run(self, step_run_id: str, at: int) -> list[Span]:
        """End a run; what is open below it was never told to have ended, and ends with it."""
        run = self._runs.pop(step_run_id)
        below = list(run.below.values())[::-1]
        for span in below:
            span.attributes["noetl.unfinished"] = True
        took = self._times.end(step_run_id)
        if took is not None and below:
            took = (took[0], at)
        return [*(_ended(span, at) for span in below), _ended(run.span, at, took)]

    # ── loops ────────────────────────────────────────────────────────────────────────────────

    def _loop_started(self, at: int, event: Envelope) -> None:
        fields = event["data"]
        span = self._looping(at, event)
        span.attributes["noetl.loop.total"] = fields["total"]
        span.attributes["noetl.loop.mode"] = fields["mode"]

    def _loop_done(self, at: int, event: Envelope) -> list[Span]:
        self._looping(at, event).attributes["noetl.loop.failed"] = event["data"].get("failed", 0)
        nested = event["parent_id"] is not None
        return [] if nested else self._close_run(event["step_run_id"], at)

    def _looping(self, at: int, event: Envelope) -> Span:
        """The step run, or for a nested loop its task run (LOOP-7)."""
        run = self._run(at, event)
        return run.below.get(event["parent_id"] or "", run.span)

    def _iteration_started(self, at: int, event: Envelope) -> None:
        self._iteration(at, event)

    def _iteration_ended(self, at: int, event: Envelope) -> list[Span]:
        span = self._iteration(at, event)
        if event["status"] == "error":
            fail(span, event["data"].get("error"))
        del self._run(at, event).below[event["entity_id"]]
        return [_ended(span, at, self._times.end(event["step_run_id"], event["entity_id"]))]

    def _iteration(self, at: int, event: Envelope) -> Span:
        index, above = event["data"]["index"], event["parent_id"]
        parent = None if above == event["step_run_id"] else ("task", above)
        name = iteration_place(event["step"], event["entity_id"])
        told = {"iteration_id": event["entity_id"], "index": index}
        return self._below(at, event, "iteration", parent, name, **told)

    # ── task runs ────────────────────────────────────────────────────────────────────────────

    def _task_started(self, at: int, event: Envelope) -> None:
        self._task(at, event).attributes["noetl.kind"] = event["data"]["kind"]

    def _task_noted(self, at: int, event: Envelope) -> None:
        self._task(at, event).note(at, event["name"])

    def _task_done(self, at: int, event: Envelope) -> list[Span]:
        fields = event["data"]
        do, attempt = fields.get("do", "continue"), fields.get("attempt", 1)
        span = self._task(at, event)
        self._times.task(event["step_run_id"], event["entity_id"], fields["outcome"])
        last = _attempt(span, at, fields, attempt)
        if attempt == 1:
            span.start = last.start
        ended = [last] if attempt > 1 or do == "retry" else []
        if do != "retry":
            del self._run(at, event).below[event["entity_id"]]
            span.attributes |= last.attributes
            span.error = last.error
            if fields.get("error") is not None:
                fail(span, fields["error"])
            ended.append(_ended(span, last.end))
        return ended

    def _task(self, at: int, event: Envelope) -> Span:
        name, task, above = event["entity_id"], event["data"]["task"], event["parent_id"]
        parent = None if above == event["step_run_id"] else ("iteration", above)
        return self._below(at, event, "task", parent, task, task=task, task_run_id=name)


def _attempt(task: Span, at: int, fields: dict[str, Any], attempt: int) -> Span:
    """One call of the tool, timed by the worker; its time is not that of the record."""
    outcome = fields["outcome"]
    meta = outcome.get("meta")
    start, end = called(outcome) or (at, at)
    attributes = task.attributes | named(attempt=attempt, do=fields.get("do", "continue"))
    entity = ("attempt", f"{task.entity[1]}/{attempt}")
    span = Span(entity, task.entity, task.name, start, attributes)
    if isinstance(meta, dict) and "worker" in meta:
        span.attributes["noetl.worker"] = meta["worker"]
    if outcome.get("status") == "error":
        fail(span, outcome.get("error"))
    return _ended(span, end)


def _ended(span: Span, at: int, took: Interval | None = None) -> Span:
    """End a span; `took` are the times of its tasks, which are truer than those of the record."""
    span.start, at = (span.start, at) if took is None else took
    span.end = max(at, span.start)
    return span


Act = Callable[[Trace, int, Envelope], list[Span] | None]

ACTS: dict[str, Act] = {
    "playbook.execution.requested": Trace._requested,
    "execution.queued": Trace._noted,
    "execution.admitted": Trace._noted,
    "execution.paused": Trace._noted,
    "execution.resumed": Trace._noted,
    "execution.cancelled": Trace._noted,
    "workflow.finished": Trace._finished,
    "playbook.processed": Trace._processed,
    "token.created": Trace._token_made,
    "token.dropped": Trace._token_gone,
    "token.absorbed": Trace._token_gone,
    "step.scheduled": Trace._scheduled,
    "step.restored": Trace._step_noted,
    "step.parked": Trace._step_noted,
    "step.started": Trace._step_noted,
    "lease.expired": Trace._step_noted,
    "step.done": Trace._step_ended,
    "step.failed": Trace._step_ended,
    "loop.started": Trace._loop_started,
    "loop.done": Trace._loop_done,
    "loop.iteration.started": Trace._iteration_started,
    "loop.iteration.done": Trace._iteration_ended,
    "loop.iteration.failed": Trace._iteration_ended,
    "task.started": Trace._task_started,
    "task.cached": Trace._task_noted,
    "task.suspended": Trace._task_noted,
    "wait.started": Trace._task_noted,
    "wait.done": Trace._task_noted,
    "task.done": Trace._task_done,
}
"""What each event means for the spans; the others change none."""
