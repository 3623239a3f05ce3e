"""What a worker sends is not trusted: is this a report that a worker may make on this part?"""

from collections.abc import Callable
from typing import Any

import msgspec

from noetl.control.execution import Execution, Part, Run
from noetl.errors import NoetlError
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.depth import DEEPEST, is_deep
from noetl.messages.details import MOST_REPORTED, TooDetailed, refuse_detailed
from noetl.messages.fitting import refuse_large
from noetl.messages.names import REPORTED
from noetl.playbook.plan import Plan
from noetl.ports.link import Sent
from noetl.server.wait_inspection import misfit_of_waits

LARGEST = 2**53
SMALL = 65_536
"""Bytes of a report in which nothing takes long to read."""
MOST = 10_000
"""Events of one report, which is taken in one go: workers tell more in several."""
_pieces = msgspec.json.Decoder(list[msgspec.Raw])

AROUND = 8
"""Levels that a report has around its events, and marks of references in them."""

TIMED = ("attempt", "started_at", "duration_ms")
"""
Numbers in the `meta` of an outcome: exports and views count with them. The clock of a worker may be
set back during a call: a duration may be negative.
"""

ENDS = (e.StepDone, e.StepFailed, e.LoopDone)


class Unfit(NoetlError):
    """A report that no worker of ours would have sent; the message says what is wrong with it."""


def inspected(
    sent: Sent, execution: Execution, run: Run, part: Part, plan: Plan, *, known: int = 0
) -> list[e.Event]:
    """The events of a report behind the first `known`; raises Unfit, EventTooLarge."""
    text = bytes(sent.events)
    if is_deep(text, DEEPEST + AROUND):
        raise Unfit("the report holds a value that is nested too deeply")
    try:
        if len(text) > SMALL:
            refuse_detailed(text, MOST_REPORTED, None)
    except TooDetailed as wrong:
        raise Unfit(f"of the report, {wrong}") from None
    try:
        if text.count(b"{") > MOST and len(_pieces.decode(text)) > MOST:
            raise Unfit(f"the report has more than {MOST:,} events")
        events = decode_events(text)
    except (msgspec.DecodeError, TypeError, ValueError, KeyError, IndexError) as wrong:
        raise Unfit(f"the report cannot be read: {wrong}") from None
    if not events:
        raise Unfit("the report is empty")
    for event in events:
        if len(sent.events) > execution.largest:
            refuse_large(event, execution.largest)
        look_at(event, run, part)
    fresh = events[known:]
    if plan.waits or e.WaitStarted in map(type, fresh):
        why = misfit_of_waits(fresh, run, part, plan)
        if why is not None:
            raise Unfit(why)
    return fresh


class EventLook(msgspec.Struct, frozen=True):
    """What is looked at in an event of one kind; made once, for reports are all there is to do."""

    name: str
    numbers: tuple[str, ...]
    """Its fields that are numbers."""
    has_part: bool
    rest: "tuple[Callable[[Any, Run, Part], None], ...]"


def look_at(event: e.Event, run: Run, part: Part) -> None:
    look = LOOKS.get(type(event))
    if look is None:
        raise Unfit(f"'{event.__struct_config__.tag}' is not a worker's to report")
    assert isinstance(event, e.StepEvent), "as all in LOOKS"
    if event.step_run_id != run.step_run_id or event.step != run.step:
        raise Unfit(f"'{look.name}' is about another run than the report")
    for field in look.numbers:
        value = getattr(event, field)
        if value is not None and not -LARGEST <= value <= LARGEST:
            raise Unfit(f"`{field}` of '{look.name}' is out of range")
    if look.has_part and (number := getattr(event, "part", 0)) != part.part:
        said = f"'{look.name}' is about part {number}, the report about part {part.part}"
        raise Unfit(said)
    for check in look.rest:
        check(event, run, part)


def look_at_end(event: e.StepDone | e.StepFailed | e.LoopDone, _run: Run, _part: Part) -> None:
    if event.source != "worker":
        raise Unfit(f"only the server may send '{event.__struct_config__.tag}'")


def look_at_start(_event: e.StepStarted, _run: Run, part: Part) -> None:
    if part.part != 0:
        raise Unfit("a step is started by its first part")


def look_at_loop(event: e.LoopStarted, _run: Run, _part: Part) -> None:
    if event.parent_id is None:
        raise Unfit("a step's own loop is begun by the server (LOOP-2)")


def look_at_outcome(event: e.TaskDone, _run: Run, _part: Part) -> None:
    """OUT-1, as far as decisions and views rely on it."""
    status, error = event.outcome.get("status"), event.outcome.get("error")
    if status != "ok" and (status != "error" or not isinstance(error, dict)):
        raise Unfit(f"'{event.task}' has no outcome: expected `status` ok, or error with `error`")
    meta = event.outcome.get("meta") or {}
    for name in TIMED:
        if not isinstance(meta, dict) or not is_number(meta.get(name, 0)):
            raise Unfit(f"'{event.task}' does not say when it was called, and how long it took")
    if event.do == "jump" and event.to is None:
        raise Unfit(f"a jump of '{event.task}' names no target")


def is_number(value: object) -> bool:
    return type(value) is int and abs(value) <= LARGEST


def look_at_iteration(event: e.IterationEvent, run: Run, _part: Part) -> None:
    if event.parent_id is not None:
        return  # of a loop inside a task (LOOP-7)
    loop = run.loop
    if loop is None:
        raise Unfit(f"step '{run.step}' has no loop")
    if not 0 <= event.index < loop.total:
        raise Unfit(f"iteration {event.index} is none of {loop.total}")
    if event.iteration_id != f"{run.step_run_id.partition('.')[0]}.{event.index + 1}":
        raise Unfit(f"'{event.iteration_id[:100]}' is not the name of iteration {event.index}")


def look_at_place(event: e.Event, run: Run, part: Part) -> None:
    """
    A task run, and an iteration, has its place in its id (EVT-0): it is one of this run, and of a
    distributed loop one of this part. The other iterations are those of other workers.
    """
    own = run.step_run_id.partition(".")[0] + "."
    far = run.loop is not None and run.loop.exec == "distributed"
    for place in (event.task_run_id,) if isinstance(event, e.TaskEvent) else places_of(event):
        if not place.startswith(own) or place == own:
            raise Unfit(f"'{place[:100]}' is nothing of this run")
        if not far:
            continue
        iteration = place[len(own) :].partition(".")[0]
        if not iteration.isdecimal() or not part.first < int(iteration[:20]) <= part.last:
            raise Unfit(f"'{place[:100]}' is of an iteration that this part does not run")


def places_of(event: e.Event) -> list[str]:
    """The ids in an event of a loop that say where it happened."""
    parent = getattr(event, "parent_id", None)
    own = [event.iteration_id] if isinstance(event, e.IterationEvent) else []
    return own if parent is None else [*own, parent]


LOOKED: tuple[tuple[Any, Callable[[Any, Run, Part], None]], ...] = (
    (ENDS, look_at_end),
    (e.TaskDone, look_at_outcome),
    (e.StepStarted, look_at_start),
    (e.LoopStarted, look_at_loop),
    (e.IterationEvent, look_at_iteration),
)
"""What is asked of which events, beside what is asked of all."""


def look_for(kind: "type[e.StepEvent]") -> EventLook:
    fields = msgspec.structs.fields(kind)
    names = {one.name for one in fields}
    rest = [check for kinds, check in LOOKED if issubclass(kind, kinds)]
    if names & {"task_run_id", "iteration_id", "parent_id"}:
        rest.append(look_at_place)
    return EventLook(
        str(kind.__struct_config__.tag),
        tuple(one.name for one in fields if one.type in (int, int | None)),
        "part" in names,
        tuple(rest),
    )


LOOKS: dict[type[e.Event], EventLook] = {kind: look_for(kind) for kind in REPORTED}
"""By the kind of event; a kind that is missing is not a worker's to report."""
