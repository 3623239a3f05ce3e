"""Which arcs fire when a run has ended? (NEXT)"""

from typing import Any

from noetl.control.deciding import Deciding, EventName
from noetl.control.execution import Run
from noetl.control.in_one_go import Passage
from noetl.control.loops import summary
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import ArcPlan, Evaluate, RouterPlan, Scope

NAMES = {e.StepDone: "step.done", e.StepFailed: "step.failed", e.LoopDone: "loop.done"}
TOLD = {kind: EventName(name) for kind, name in NAMES.items()}


def route(deciding: Deciding, run: Run, boundary: e.Boundary, seq: int) -> None:
    """Ask the router of the ended step, and put a token on every arc that fires."""
    router = deciding.plan.steps[run.step].router
    if router is None:
        return
    step, run_id, on = run.step, run.step_run_id, NAMES[type(boundary)]
    if deciding.execution.stop:
        deciding.emit(e.NextEvaluated(step=step, step_run_id=run_id, on=on))
        return
    scope = deciding.scope(run.args, described(boundary)) if router.evaluates else {}
    try:
        fired = select(deciding, router, scope, failed=type(boundary) is e.StepFailed)
        inscribed = [
            _inscribed(deciding, arc, arc.args, scope) if arc.args else {} for arc in fired
        ]
    except ArcFailed as fault:
        deciding.make(e.NextEvaluated(step=step, step_run_id=run_id, on=on, error=fault.error))
        return
    arcs = [arc.number for arc in fired]
    evaluated = e.NextEvaluated(step=step, step_run_id=run_id, on=on, arcs=arcs)
    if len(fired) == 1 and passes_on(deciding, fired[0].step):
        deciding.emit_passage(passage(deciding, run, evaluated, fired[0], inscribed[0], seq))
        return
    deciding.emit(evaluated)
    for ordinal, arc in enumerate(fired):
        token_id = f"{seq}.{ordinal}"
        deciding.note(
            e.NextFired(
                step=step, step_run_id=run_id, arc=arc.number, to=arc.step, token_id=token_id
            )
        )
    for ordinal, arc in enumerate(fired):
        token_id = f"{seq}.{ordinal}"
        deciding.emit(
            e.TokenCreated(
                token_id=token_id,
                step=arc.step,
                args=inscribed[ordinal],
                parent_step_run_id=run_id,
                source=step,
                rounds=run.rounds,
            )
        )
        deciding.tokens.append(deciding.execution.tokens[token_id])


def passes_on(deciding: Deciding, to: str) -> bool:
    """Whether the token of the only arc that fires leads to a run at once, whatever else is."""
    execution, plan = deciding.execution, deciding.plan
    return (
        to in plan.unasked
        and execution.status == "running"
        and execution.step_runs < plan.limits.max_step_runs
        and not (execution.failed or deciding.boundaries or deciding.tokens)
    )


def passage(
    deciding: Deciding,
    run: Run,
    evaluated: e.NextEvaluated,
    arc: ArcPlan,
    args: dict[str, Any],
    seq: int,
) -> Passage:
    """What `route` and then `schedule` tell of such a token."""
    step, run_id, to = run.step, run.step_run_id, arc.step
    token_id = f"{seq}.0"
    leads_to = f"{deciding.execution.seq + CREATED}.0"  # named after the token's event (EVT-0)
    return (
        evaluated,
        e.NextFired(step=step, step_run_id=run_id, arc=arc.number, to=to, token_id=token_id),
        e.TokenCreated(
            token_id=token_id,
            step=to,
            args=args,
            parent_step_run_id=run_id,
            source=step,
            rounds=run.rounds,
        ),
        e.StepScheduled(step=to, step_run_id=leads_to, tokens=[token_id]),
        e.TokenEnqueued(step=to, step_run_id=leads_to, pool=deciding.plan.executor.pool),
    )


CREATED = 3
"""The place of `token.created` in a passage."""

FROM_ONE = 4
"""The rules by which people count arcs as they count rules of a policy: from 1."""


class ArcFailed(Exception):
    """A guard or `args` could not be evaluated; `error` names the arc (TPL-3)."""

    def __init__(self, fault: TemplateFailed, key: str, arc: ArcPlan, rules: int) -> None:
        number = arc.number + (rules >= FROM_ONE)
        error = template_error(fault, f"`{key}` of arc {number} to step '{arc.step}'")
        super().__init__(error["message"])
        self.error: dict[str, Any] = {**error, "arc": arc.number, "to": arc.step}


def select(deciding: Deciding, router: RouterPlan, scope: Scope, *, failed: bool) -> list[ArcPlan]:
    """NEXT-1, NEXT-3: the first match in document order, or every match."""
    fired = []
    for arc in router.after_failure if failed else router.after_success:
        if arc.guard is None or _matches(deciding, arc, arc.guard, scope):
            fired.append(arc)
            if router.exclusive:
                break
    return fired


def _matches(deciding: Deciding, arc: ArcPlan, guard: Evaluate, scope: Scope) -> bool:
    try:
        return bool(deciding.evaluate(guard, scope))
    except TemplateFailed as fault:
        raise ArcFailed(fault, "when", arc, deciding.execution.rules) from fault


def _inscribed(
    deciding: Deciding, arc: ArcPlan, template: Evaluate, scope: Scope
) -> dict[str, Any]:
    """NEXT-4: the new token's `args`, as the log can take them."""
    # Guards know older names of events too (EVT-2); what a token carries is plain text.
    told = {**scope["event"], "name": str(scope["event"]["name"])}
    try:
        args: dict[str, Any] = deciding.evaluate(template, {**scope, "event": told})
        token = e.TokenCreated(token_id="", step=arc.step, args=args)
        return deciding.fit(token, strict=True).args
    except TemplateFailed as fault:
        raise ArcFailed(fault, "args", arc, deciding.execution.rules) from fault


def described(boundary: e.Boundary) -> dict[str, Any]:
    """NEXT-2: `event` as guards and `args` see it."""
    event: dict[str, Any] = {"step": boundary.step, "error": None, "result": None, "loop": None}
    event["name"] = TOLD[type(boundary)]
    match boundary:
        case e.StepDone():
            event["result"] = boundary.result
        case e.StepFailed():
            event["error"] = boundary.error
            event["result"], event["loop"] = boundary.result, boundary.loop
        case e.LoopDone():
            event["result"], event["loop"] = boundary.results, summary(boundary)
    return event
