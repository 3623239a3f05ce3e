"""What follows from an outcome: the rules of a task, and the defaults where there are none."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from noetl.errors import TemplateFailed
from noetl.messages.outcome import make_error
from noetl.pipeline.backoff import pause, told_by
from noetl.playbook.model import Do
from noetl.playbook.plan import Scope, TaskPlan, ThenPlan

CONTINUE = ThenPlan(do="continue")
FAIL = ThenPlan(do="fail")
WITHOUT_POLICY: dict[str, ThenPlan] = {"ok": CONTINUE, "error": FAIL}  # TASK-2
WITHOUT_MATCH = CONTINUE  # decision 0004


Chance = Callable[[], float]
"""Draws from 0 to 1; it comes in through the door."""


def half() -> float:
    """No chance at all: the middle of every range."""
    return 0.5


class PolicyVerdict(msgspec.Struct, kw_only=True):
    """The directive and all that was evaluated with it, as `task.done` records it (TASK-9)."""

    do: Do
    rule: int | None = None
    to: str | None = None
    delay: float = 0.0
    set_iter: dict[str, Any] = {}
    set_ctx: dict[str, Any] = {}
    set_prev: Any = msgspec.UNSET
    error: dict[str, Any] | None = None


GO_ON = PolicyVerdict(do="continue")


def judge(task: TaskPlan, scope: Scope, *, attempt: int, chance: Chance = half) -> PolicyVerdict:
    """Which directive the outcome in `scope` leads to (TASK-2 to TASK-5)."""
    outcome = scope["outcome"]
    try:
        if task.choose is None:
            rule, then = None, WITHOUT_POLICY[outcome["status"]]
            if then is CONTINUE:
                return GO_ON
        else:
            rule = task.choose(scope)
            if rule < 0:
                rule, then = None, WITHOUT_MATCH
            else:
                then = task.thens[rule]
                if then.do == "retry" and attempt >= then.attempts and rule in task.exhausted:
                    # TASK-3: the rules below know that no attempt is left.
                    outcome = {**outcome, "exhausted": True}
                    scope = {**scope, "outcome": outcome}
                    below = task.exhausted[rule](scope)
                    rule = below if below >= 0 else rule
                    then = task.thens[rule]
        return order(task, then, rule, scope, outcome, attempt=attempt, chance=chance)
    except TemplateFailed as fault:
        return PolicyVerdict(
            do="fail", error=template_error(fault, f"a rule of task '{task.label}'")
        )


def order(
    task: TaskPlan,
    then: ThenPlan,
    rule: int | None,
    scope: Scope,
    outcome: Mapping[str, Any],
    *,
    attempt: int,
    chance: Chance,
) -> PolicyVerdict:
    """The matching rule's order, everything in it evaluated before it takes effect (TASK-5)."""
    verdict = PolicyVerdict(do=then.do, rule=rule)
    if then.set_iter is not None:
        verdict.set_iter = then.set_iter(scope)
    if then.set_ctx is not None:
        verdict.set_ctx = then.set_ctx(scope)
    if then.set_prev is not None:
        verdict.set_prev = then.set_prev(scope)
    if then.do == "jump":
        verdict.to = then.to
        verdict.delay = seconds(then, scope)
    elif then.do == "retry":
        if attempt >= then.attempts:
            verdict.do, verdict.error = "fail", exhausted(outcome, attempt)
        else:
            verdict.delay = pause(
                then.backoff,
                seconds(then, scope),
                attempt=attempt,
                max_delay=then.max_delay,
                jitter=then.jitter,
                chance=chance() if then.jitter else 0.5,
                told=told_by(outcome),
            )
    elif then.do == "fail":
        verdict.error = failure(task, then, rule, scope, attempt)
    return verdict


def failure(
    task: TaskPlan, then: ThenPlan, rule: int | None, scope: Scope, attempt: int
) -> dict[str, Any]:
    """TASK-4: the error of a pipeline that a rule ends, in the rule's own words if it has some."""
    outcome = scope["outcome"]
    error: dict[str, Any] | None = outcome["error"]
    if outcome.get("exhausted"):
        error = exhausted(outcome, attempt)
    if then.message is None:
        return error or ordered_failure(task, rule)
    said = make_error("policy", str(then.message(scope)))
    return said if error is None else {**said, "cause": error}


def seconds(then: ThenPlan, scope: Scope) -> float:
    """The delay of a rule; an expression must come to a number of seconds."""
    if not callable(then.delay):
        return then.delay
    return seconds_in("delay", then.delay(scope))


def seconds_in(key: str, value: Any) -> float:
    """What a template came to, as a number of seconds."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0.0 <= number < float("inf"):
        raise TemplateFailed(f"`{key}` must be a number of seconds >= 0, got {value!r}")
    return number


def exhausted(outcome: Mapping[str, Any], attempts: int) -> dict[str, Any]:
    """TASK-3: the error of a pipeline whose retries are used up."""
    cause = outcome["error"]
    last = cause["message"] if cause else "the outcome was ok, but a rule asked to retry"
    said = f"gave up after {attempts} attempt{'s' * (attempts != 1)}: {last}"
    return make_error("retry_exhausted", said, cause=cause)


def ordered_failure(task: TaskPlan, rule: int | None) -> dict[str, Any]:
    """OUT-4 `policy`: the tool succeeded and a rule said fail."""
    where = "" if rule is None else f"rule {rule + 1} of "
    return make_error("policy", f"{where}task '{task.label}' ordered `fail` after an ok outcome")


def template_error(fault: TemplateFailed, where: str) -> dict[str, Any]:
    """TPL-3: an error of kind `template` that says which template and why."""
    remedy = "define it or add `| default(…)`" if fault.undefined else ""
    if fault.meant:
        remedy = f"did you mean '{fault.meant}'?"
    error = make_error("template", f"{where}: {fault.message}{remedy and '; '}{remedy}")
    if fault.text:
        error["template"] = fault.text
    if fault.undefined:
        error["undefined"] = fault.undefined
    return error
