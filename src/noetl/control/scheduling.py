"""From a token to a step run: join, admission, limit, and what the step begins with."""

from typing import Any

from noetl.control.admission import admits, drop
from noetl.control.deciding import Deciding
from noetl.control.execution import Token
from noetl.control.joins import gather, too_late
from noetl.control.limits import asked
from noetl.control.loops import end, start_loop
from noetl.errors import TemplateFailed
from noetl.messages import events as e
from noetl.messages.outcome import make_error
from noetl.pipeline.policy import template_error
from noetl.playbook.plan import LimitPlan


def arrive(deciding: Deciding, token: Token) -> None:
    """Try to fire the step that the token stands at."""
    execution, step = deciding.execution, deciding.plan.steps[token.step]
    if token.token_id not in execution.tokens:  # it went into a join that fired before its turn
        return
    if execution.stop and token.step != deciding.plan.final:
        drop(deciding, token, execution.stop)
        return
    if execution.status == "paused":
        park(deciding, token, "paused")
        return
    if step.join is None or not token.round:
        if step.admission is None or admits(deciding, token, token.args):
            if step.limit is None:
                schedule(deciding, token, [token])
            else:
                wait_for_limit(deciding, token, step.limit, token.args)
        return
    if too_late(execution, token):
        deciding.emit(e.TokenAbsorbed(token_id=token.token_id, step=token.step, round=token.round))
        return
    met = gather(execution, step.join, token)
    if met is None:
        park(deciding, token, "join")
    elif admits(deciding, token, met.args):
        if step.limit is None:
            schedule(deciding, token, met.tokens, args=met.args, rounds=met.rounds)
        else:
            wait_for_limit(deciding, token, step.limit, met.args)


def fire(deciding: Deciding, token: Token) -> None:
    """LIMIT-2: a token that was admitted and now has its place; it is not asked again."""
    step = deciding.plan.steps[token.step]
    met = gather(deciding.execution, step.join, token) if step.join and token.round else None
    if met is None:
        schedule(deciding, token, [token])
    else:
        schedule(deciding, token, met.tokens, args=met.args, rounds=met.rounds)


def wait_for_limit(
    deciding: Deciding, token: Token, limit: LimitPlan, args: dict[str, Any]
) -> None:
    """LIMIT-2: every run of a limited step waits for its place, which the server asks for."""
    if token.waits == "limit":
        return
    try:
        key, priority = deciding.evaluate(lambda scope: asked(limit, scope), deciding.scope(args))
    except TemplateFailed as fault:
        error = template_error(fault, f"the limit of step '{token.step}'")
        deciding.emit(
            e.TokenDropped(token_id=token.token_id, step=token.step, reason="limit", error=error)
        )
        return
    deciding.emit(
        e.TokenParked(
            token_id=token.token_id, step=token.step, reason="limit", key=key, priority=priority
        )
    )


def park(deciding: Deciding, token: Token, reason: Any) -> None:
    if token.waits != reason:
        deciding.emit(e.TokenParked(token_id=token.token_id, step=token.step, reason=reason))


def schedule(
    deciding: Deciding,
    cause: Token,
    tokens: list[Token],
    *,
    args: dict[str, Any] | None = None,
    rounds: dict[str, int] | None = None,
) -> None:
    """Create the step run, named after the token that completed it (EVT-0)."""
    execution, plan = deciding.execution, deciding.plan
    if execution.step_runs >= plan.limits.max_step_runs and cause.step != plan.final:
        over_limit(deciding, tokens)
        return
    step = plan.steps[cause.step]
    run_id = f"{cause.seq}.0"
    scheduled = e.StepScheduled(
        step=cause.step,
        step_run_id=run_id,
        tokens=[token.token_id for token in tokens],
        args=args,
        rounds=rounds,
    )
    deciding.emit(scheduled if args is None else deciding.fit(scheduled))
    run = execution.runs[run_id]
    if step.loop is not None:
        start_loop(deciding, run, step.loop)
    elif not step.pipeline.tasks:  # TASK-6: it routes only and never visits a worker
        end(deciding, run, e.StepDone(step=run.step, step_run_id=run_id, source=deciding.own))
    else:
        deciding.emit(e.TokenEnqueued(step=run.step, step_run_id=run_id, pool=plan.executor.pool))


def over_limit(deciding: Deciding, tokens: list[Token]) -> None:
    """DOC-4 `max_step_runs`: the token is dropped and the execution fails, saying why."""
    limit = deciding.plan.limits.max_step_runs
    said = f"more than {limit} step runs (executor.spec.policy.limits.max_step_runs)"
    error: dict[str, Any] | None = make_error("limit", said)
    for token in tokens:
        deciding.emit(
            e.TokenDropped(token_id=token.token_id, step=token.step, reason="limit", error=error)
        )
        error = None
