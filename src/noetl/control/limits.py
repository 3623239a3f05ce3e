"""
What does a limit over all executions ask of one, and what does one give back? (LIMIT)

Counting happens elsewhere (`ports.limits`), for a decision sees one execution. Here is what is
claimed, and when it is released.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from noetl.control.execution import Execution, Token
from noetl.errors import TemplateFailed
from noetl.expression.meter import METER, Meter
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import encode
from noetl.pipeline.policy import template_error
from noetl.playbook.model import Limit
from noetl.playbook.plan import LimitPlan, Plan, Scope
from noetl.playbook.workload import materialize

LONGEST = 500
"""Characters of a key."""


def asked(limit: LimitPlan, scope: Scope) -> tuple[str, int]:
    """The key and the priority, as text and whole number; TemplateFailed where they are neither."""
    key = "" if limit.key is None else as_key(limit.key(scope))
    priority = limit.priority(scope)
    if type(priority) is int and abs(priority) < 2**31:  # as nearly always
        return key, priority
    if isinstance(priority, float) and priority.is_integer():
        priority = int(priority)
    if not isinstance(priority, int) or isinstance(priority, bool) or abs(priority) > 2**31 - 1:
        raise TemplateFailed(
            f"`priority` is {encode(priority).decode()[:80]}: write a whole number"
        )
    return key, priority


def as_key(value: Any) -> str:
    if value is None or value == "":
        raise TemplateFailed("`key` is empty: a limit counts by it")
    text = value if isinstance(value, str) else encode(value).decode()
    if len(text) > LONGEST:
        raise TemplateFailed(f"`key` has {len(text)} characters: a key has {LONGEST} at most")
    return text


def start_asked(
    plan: Plan, payload: dict[str, Any], execution_id: str, *, hurried: bool = False
) -> r.LimitAnswer | dict[str, Any] | None:
    """
    What a start asks of its playbook's limit; an error where that cannot be told.

    None where nothing is limited, and where the workload itself cannot be made: the decision says
    so. Whoever is `hurried` hears TakesLong of what an event loop has no time for (TPL-5).
    """
    if plan.limit is None:
        return None
    try:
        beside: Scope = {METER: Meter(shared=True, hurried=hurried)}
        workload = materialize(plan, payload, execution_id, beside)
    except TemplateFailed:
        return None
    try:
        scope = {**beside, "workload": workload, "execution_id": execution_id}
        key, priority = asked(plan.limit, scope)
    except TemplateFailed as fault:
        return template_error(fault, LIMIT)
    return r.LimitAnswer(limit=plan.path, key=key, priority=priority)


LIMIT = "`executor.spec.limit`"
ENDS = frozenset((e.StepDone, e.StepFailed, e.LoopDone))


def waiting(execution: Execution) -> Iterator[tuple[str, Token | e.StepParked]]:
    """
    Step runs that wait for their limit: the run that each token will lead to (EVT-0), and those
    that a restart took over.
    """
    for token in execution.tokens.values():
        if token.waits == "limit":
            yield f"{token.seq}.0", token
    for run in execution.runs.values():
        if run.parked is not None and run.parked.reason == "limit":
            yield run.step_run_id, run.parked


def waiting_for(execution: Execution, holder: str) -> Token | e.StepParked | None:
    return next((found for run, found in waiting(execution) if run == holder), None)


def granted_in(execution: Execution, events: Iterable[e.Event]) -> str:
    """Whose place led to these: what met at a join is dropped together, whichever came last."""
    for event in events:
        if isinstance(event, e.TokenParked | e.TokenDropped):
            token = execution.tokens.get(event.token_id)
            if token is not None and token.waits == "limit":
                return f"{token.seq}.0"
    return ""


def waits_for_limit(execution: Execution, final: str | None) -> bool:
    """Whether something that does not run now will, when a limit lets it."""
    if execution.stop:  # then the final step alone may still run (NEXT-6)
        waits = (found.step for _, found in waiting(execution))
        return execution.stop != "cancel" and final is not None and final in waits
    return execution.status == "queued" or any(True for _ in waiting(execution))


def released(plan: Plan, events: Iterable[e.Event]) -> tuple[str, ...]:
    """The claims that end with these events: those of step runs, or all with the execution."""
    kinds = list(map(type, events))  # asked of every decision: by their types in one go
    if e.WorkflowFinished in kinds:
        return ("",)
    if ENDS.isdisjoint(kinds):
        return ()
    return tuple(
        event.step_run_id
        for event in events
        if isinstance(event, e.StepDone | e.StepFailed | e.LoopDone)
        and (not isinstance(event, e.LoopDone) or event.parent_id is None)
        and plan.steps[event.step].limit is not None
    )


def holds_place(events: Iterable[e.Event]) -> bool:
    """Whether a first decision rests on a place that was given before it (LIMIT-3)."""
    return e.ExecutionAdmitted in map(type, events)


def hoping(plan: Plan, execution: Execution) -> frozenset[str]:
    """The runs that tokens at steps with a limit would lead to: each may have a claim."""
    tokens = execution.tokens.values()
    if not tokens or not plan.limited:
        return frozenset()
    steps = plan.steps
    return frozenset(f"{token.seq}.0" for token in tokens if steps[token.step].limit is not None)


def given_up(hoped: frozenset[str], plan: Plan, execution: Execution) -> tuple[str, ...]:
    """Of those that hoped before a decision: what neither waits nor runs after it (LIMIT-3)."""
    if not hoped:
        return ()
    return tuple(sorted(hoped - hoping(plan, execution) - execution.runs.keys()))


def words_of(limit: Limit) -> str:
    """The numbers of a limit, as the playbook writes them."""
    per = None if limit.count is None else f"{{count: {limit.count}, seconds: {limit.seconds:g}}}"
    said = {"at_once": limit.at_once, "total": limit.total, "per": per}
    return ", ".join(f"{name}: {value}" for name, value in said.items() if value is not None)
