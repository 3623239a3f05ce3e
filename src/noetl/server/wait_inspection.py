"""Is this a wait of the plan, and did what ended it come from outside? (WAIT-2, WAIT-5)"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

from noetl.control.execution import Part, Run
from noetl.control.waits_held import WAITS, index_at, waits_at
from noetl.expression.template import holds_template
from noetl.kinds.awaited import Approval, arm, form_of
from noetl.kinds.flow import LONGEST, WaitInputs
from noetl.masking import MASK
from noetl.messages import events as e
from noetl.pipeline.frame import TaskWait
from noetl.playbook.plan import Plan, TaskPlan

TASK_RUN: Final = re.compile(r"[0-9]+(\.[0-9]+(r[0-9]+)?){1,40}")
BY: Final = {"seconds": "timer", "until": "timer", "signal": "signal", "approval": "approval"}

VALUES: Final = ("seconds", "due", "name", "title")
OWN: Final = {
    "timer": {"seconds", "due"},
    "signal": {"name", "guarded"},
    "approval": {"title", "form", "roles"},
}
"""What an entry has beside `by` and `label`, by what it awaits."""
FIRST, LAST = (
    int(datetime(*day, tzinfo=UTC).timestamp() * 1000) for day in ((1, 1, 1), (9999, 12, 31))
)
"""The moments that `until` can name, but for some hours (ms)."""


class Awaited(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One entry of `awaits`, as a worker may send it."""

    by: Literal["timer", "signal", "approval"]
    label: str = ""
    seconds: float | None = None
    due: int | None = None
    name: str | None = None
    guarded: bool = False
    title: str | None = None
    form: dict[str, dict[str, Any]] = {}
    roles: list[str] = []


def misfit_of_waits(events: Sequence[e.Event], run: Run, part: Part, plan: Plan) -> str | None:
    """What no worker of ours would have said of a wait; None where all is well."""
    begun: set[str] = set()
    iterations = {event.index for event in events if isinstance(event, e.IterationStarted)}
    for event in events:
        if not isinstance(event, e.TaskEvent):
            continue
        why = None
        if isinstance(event, e.WaitStarted):
            why = elsewhere(event, run, part, iterations) or other_wait(event, plan)
            begun.add(event.task_run_id)
        elif isinstance(event, e.TaskSuspended) and event.reason == WAITS:
            if not waits_below(event.task_run_id, {*begun, *recorded_at(run, event.task_run_id)}):
                why = "lets go of a task that does not wait"
        elif isinstance(event, e.TaskDone):
            why = unanswered(event, run, plan)
        if why is not None:
            return f"'{event.__struct_config__.tag}' of task '{event.task}' {why}"
    return None


def recorded_at(run: Run, task_run_id: str) -> dict[str, TaskWait]:
    try:
        return waits_at(run, task_run_id)
    except (KeyError, ValueError, IndexError):  # no such iteration runs
        return {}


def waits_below(task_run_id: str, waits: Collection[str]) -> bool:
    """A loop inside a task waits where its iterations do (LOOP-7)."""
    below = f"{task_run_id}."
    return any(one == task_run_id or one.startswith(below) for one in waits)


def elsewhere(event: e.WaitStarted, run: Run, part: Part, begun: set[int]) -> str | None:
    """A task run has its place in its id (EVT-0)."""
    number = run.step_run_id.partition(".")[0]
    if not TASK_RUN.fullmatch(event.task_run_id) or not event.task_run_id.startswith(f"{number}."):
        return "is about no task run of this run"
    if run.loop is None or run.loop.exec != "distributed":
        return None
    index = index_at(event.task_run_id)
    if not part.first <= index < part.last or index not in run.loop.active.keys() | begun:
        return f"is about iteration {index}, which this part does not run"
    return None


def unanswered(event: e.TaskDone, run: Run, plan: Plan) -> str | None:
    """A wait ends well by what the server recorded, and by nothing that a worker says."""
    tasks = plan.steps[run.step].waits.get(event.task, ())
    if event.outcome.get("status") != "ok" or any(task.kind != "wait" for task in tasks):
        return None
    wait = recorded_at(run, event.task_run_id).get(event.task_run_id)
    if not tasks and wait is None:
        return None
    done = None if wait is None else wait.done
    if done is None or done.error is not None:
        return "has an answer that nobody gave"
    told = event.outcome.get("result")
    if done.by != "approval" or not isinstance(told, dict) or not isinstance(done.result, dict):
        return None
    same = all(told.get(key) == done.result.get(key) for key in ("approved", "by", "at"))
    return None if same or "approved" not in told else "has another answer than was given"


def other_wait(event: e.WaitStarted, plan: Plan) -> str | None:
    """Compared with the text as far as that holds no templates: those the worker renders."""
    if event.lent is not None:
        tasks = tuple(task for name, task in plan.workbook.items() if name == event.lent)
    else:
        tasks = plan.steps[event.step].waits.get(event.task, ())
    try:
        awaits = msgspec.convert(event.awaits, list[Awaited])
    except msgspec.ValidationError as wrong:
        return f"awaits what nothing can await: {wrong}"
    times = [event.timeout, *(one.seconds for one in awaits)]
    moments = [one.due for one in awaits if one.due is not None]
    if any(time is not None and not 0 <= time <= LONGEST for time in times):
        return "waits longer than anything may"
    if any(not FIRST <= moment <= LAST for moment in moments):
        return "waits for a moment that no calendar has"
    odd = next(filter(None, map(incomplete, event.awaits)), None)
    if odd is not None:
        return f"awaits what nothing can await: {odd}"
    faults = [differs(event, awaits, task) for task in tasks if task.kind == "wait"]
    if not faults:
        return "is of no task that waits"
    return None if None in faults else faults[0]


def incomplete(given: Mapping[str, Any]) -> str | None:
    """
    What `arm` never makes, whatever the templates came to. Decisions, and pages that list what
    others wait for, rely on every entry being whole.
    """
    by = given["by"]
    own = given.keys() - {"by", "label"}
    if not own <= OWN[by] or None in given.values():
        return f"{', '.join(sorted(own)) or 'nothing'} of a wait for {by}"
    match by:
        case "timer":
            return None if len(own) == 1 else "a time needs one of seconds and due"
        case "signal":
            return None if given.get("name") else "a signal needs a name"
    if not given.get("title"):
        return "an approval needs a title"
    form = {name: unmasked(field) for name, field in given.get("form", {}).items()}
    try:
        made = form_of(Approval(title="", form=form))
    except ValueError as wrong:
        return str(wrong)
    return None if made == form else "a form is not written as forms are"


def unmasked(field: Mapping[str, Any]) -> dict[str, Any]:
    """A field of a form; a type that is a secret to the worker is one that forms have."""
    return {**field, "type": "string"} if field.get("type") == MASK else dict(field)


def differs(event: e.WaitStarted, awaits: Sequence[Awaited], task: TaskPlan) -> str | None:
    written = task.awaits
    several = written.get("any")
    if several is not None and not isinstance(several, Mapping):
        return None
    arms: Mapping[str, Any] = {"": written} if several is None else several
    given = {one.label: one for one in awaits}
    if given.keys() != arms.keys() or len(given) != len(awaits):
        return f"awaits {', '.join(given) or 'one thing'}, not {', '.join(arms) or 'one thing'}"
    for label, one in arms.items():
        if not isinstance(one, Mapping):
            continue
        for name, expected in literal(label, one, task):
            fits = admits if name == "roles" else same
            if not fits(expected, getattr(given[label], name)):
                return f"has another `{name}` than the playbook"
    timeout = written.get("timeout")
    if timeout is not None and not holds_template(timeout) and event.timeout != float(timeout):
        return "has another `timeout` than the playbook"
    return None


def literal(label: str, written: Mapping[str, Any], task: TaskPlan) -> Iterator[tuple[str, Any]]:
    """What `wait.started` must say of one thing, by the name of the field."""
    kind = next((key for key in BY if written.get(key) is not None), None)
    if kind is None:
        return
    value = written[kind]
    yield "by", BY[kind]
    yield "guarded", kind == "signal" and label in task.guards
    if kind == "approval" and isinstance(value, Mapping):
        if not holds_template(value.get("title")):
            yield "title", value.get("title")
        yield "roles", value.get("roles") or []
        if not holds_template(value.get("form")):
            yield "form", form_of(Approval(title="", form=value.get("form") or {}))
    elif not holds_template(value):
        made = arm(label, msgspec.convert({kind: value}, WaitInputs, strict=False), task.guards)
        yield from ((name, made[name]) for name in VALUES if name in made)


def admits(expected: Any, given: list[str]) -> bool:
    """Roles as they are written; where a template is one, it came to something (WAIT-5)."""
    if not isinstance(expected, list | tuple):  # a template of all of them
        return bool(given)
    pairs = zip(expected, given, strict=False)
    return len(expected) == len(given) and all(
        holds_template(role) or same(role, one) for role, one in pairs
    )


def same(expected: Any, given: Any) -> bool:
    """A worker masks what is a secret to it (KEY-2); all around it is as it was written."""
    if isinstance(expected, str) and isinstance(given, str):
        return is_masked(expected, given)
    if isinstance(expected, dict) and isinstance(given, dict):
        expected, given = [*expected.items()], [*given.items()]
    if isinstance(expected, list | tuple) and isinstance(given, list | tuple):
        pairs = zip(expected, given, strict=False)
        return len(expected) == len(given) and all(same(*pair) for pair in pairs)
    return bool(expected == given or given == MASK)


def is_masked(expected: str, given: str) -> bool:
    """Whether this is the text, or the text with some of it masked."""
    first, *rest = given.split(MASK)
    if not rest or not expected.startswith(first):
        return expected == given
    place = len(first)
    for piece in rest[:-1]:
        place = expected.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return expected.endswith(rest[-1]) and place <= len(expected) - len(rest[-1])
