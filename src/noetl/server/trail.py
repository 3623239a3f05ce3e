"""What the log says about failures: one pass over an execution's events."""

from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from noetl.control.evolve import GOES_ON
from noetl.messages import events as e
from noetl.messages.codec import recorded_events
from noetl.ports.event_log import EventLog
from noetl.server.replay import rows_of

E = TypeVar("E", bound=e.Event)

MOST = 100
"""Failures of one run, and failed iterations of one loop, that are remembered."""


class Trail(msgspec.Struct):
    """What the log says about failures and refusals."""

    tasks: dict[str, list[e.TaskDone]] = {}
    """Step run → the task runs that failed in it."""
    steps: list[e.StepFailed] = []
    verdicts: dict[str, e.AdmitEvaluated] = {}
    """Token → the admission's last answer."""
    dropped: list[e.TokenDropped] = []
    cancelled: e.ExecutionCancelled | None = None
    ran: dict[str, str] = {}
    """Step that a token fired → the last of its runs."""
    ends: list[e.NextEvaluated] = []
    """Of steps that succeeded, and of whose arcs none matched."""
    passed: list[e.TaskDone] = []
    """Errors after which the pipeline went on."""
    loops: list[e.LoopDone] = []
    """Loops that ended well with failed iterations."""
    iterations: dict[str, list[e.IterationFailed]] = {}
    """Step run → its failed iterations, the first of them."""
    took: dict[str, list[e.NextFired]] = {}
    """Step run that failed → the arcs that took its failure."""
    runs: dict[str, str] = {}
    """Token of such an arc → the step run that it became."""
    ended: dict[str, str] = {}
    """Step run of such a token → how it ended."""


async def trail_of(log: EventLog, execution_id: str) -> Trail:
    trail = Trail()
    async for row in rows_of(log, execution_id):
        if is_uneventful(row.events):
            continue
        for event in recorded_events(execution_id, row.first, row.events):
            note(trail, event)
    return trail


class _Ended(msgspec.Struct, gc=False):
    status: Any = None


class _Glimpse(msgspec.Struct, gc=False):
    """So much of an event as says whether it can be part of a failure."""

    name: str
    do: Any = None
    outcome: _Ended | None = None


QUIET = frozenset(
    {
        *("loop.iteration.started", "loop.iteration.done", "task.started", "task.done"),
        *("token.claimed", "token.enqueued", "task.suspended", "ctx.patched"),
    }
)
"""Names that `note` passes over, unless a task failed: of a long loop most rows have no other."""
_glimpses = msgspec.json.Decoder(list[_Glimpse])


def is_uneventful(events: bytes) -> bool:
    """Whether nothing in a row concerns `note`; what cannot be told by a glimpse may."""
    try:
        found = _glimpses.decode(events)
    except (msgspec.DecodeError, ValueError):
        return False
    return all(
        one.name in QUIET
        and one.do != "fail"
        and (one.outcome is None or one.outcome.status != "error")
        for one in found
    )


def note(trail: Trail, event: e.Event) -> None:
    match event:
        case e.TaskDone(do="fail"):
            keep(trail.tasks.setdefault(event.step_run_id, []), event)
        case e.TaskDone(outcome={"status": "error"}) if event.do in GOES_ON:
            keep(trail.passed, event)
        case e.StepFailed():
            if keep(trail.steps, event):
                trail.took[event.step_run_id] = []
            note_end(trail, event.step_run_id, "failed")
        case e.StepDone():
            note_end(trail, event.step_run_id, "done")
        case e.IterationFailed(parent_id=None):
            keep(trail.iterations.setdefault(event.step_run_id, []), event)
        case e.LoopDone(parent_id=None):
            if event.failed:
                keep(trail.loops, event)
            note_end(trail, event.step_run_id, "done")
        case e.AdmitEvaluated(allow=False):
            trail.verdicts[event.token_id] = event
        case e.TokenDropped():
            keep(trail.dropped, event)
        case e.ExecutionCancelled():
            trail.cancelled = event
        case e.StepScheduled():
            trail.ran[event.step] = event.step_run_id
            for token in event.tokens:
                if token in trail.runs:
                    trail.runs[token] = event.step_run_id
                    trail.ended[event.step_run_id] = "running"
        case e.ExecutionRestored(kept={"tallies": dict() as before}):
            trail.ran |= dict.fromkeys(before, "")
        case e.StepRestored():
            trail.ran[event.step] = event.step_run_id
        case e.NextFired() if event.step_run_id in trail.took:
            trail.took[event.step_run_id].append(event)
            trail.runs[event.token_id] = ""
        case e.NextEvaluated(arcs=[], error=None) if event.on != "step.failed":
            if trail.cancelled is None:
                keep(trail.ends, event)


def again_of(trail: Trail, event: e.StepEvent, indexes: Iterable[int]) -> str:
    """What `noetl restart --from` takes; the run is named where it is not the last of its step."""
    last = trail.ran.get(event.step) == event.step_run_id
    run = "" if last else f"@{event.step_run_id.partition('.')[0]}"
    chosen = ",".join(map(str, indexes))
    return f"{event.step}{run}:{chosen}" if chosen else f"{event.step}{run}"


def keep(kept: list[E], event: E) -> bool:
    """Remember it, as long as they are few; whether it is."""
    if len(kept) >= MOST:
        return False
    kept.append(event)
    return True


def note_end(trail: Trail, step_run_id: str, status: str) -> None:
    if step_run_id in trail.ended:
        trail.ended[step_run_id] = status
