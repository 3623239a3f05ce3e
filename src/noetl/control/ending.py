"""When is an execution at its end, and how does it end? (NEXT-5, NEXT-6, NEXT-8)"""

from typing import Any

from noetl.control.admission import drop, worth_another_try
from noetl.control.deciding import Deciding
from noetl.control.limits import waits_for_limit
from noetl.control.restoring import stop_parked
from noetl.control.routing import route
from noetl.control.scheduling import arrive
from noetl.control.waits import stop_waiting
from noetl.messages import events as e


def settle(deciding: Deciding) -> None:
    """Follow everything that the input has set in motion, until something must be waited for."""
    execution = deciding.execution
    tried = False
    if execution.failed and not execution.finished and execution.rules >= 5:
        fail_fast(deciding)  # the input itself was a failure: a token that is one too many
    while True:
        while deciding.boundaries or deciding.tokens:
            if deciding.boundaries:
                route(deciding, *deciding.boundaries.popleft())
            else:
                arrive(deciding, deciding.tokens.popleft())
            if execution.failed:
                fail_fast(deciding)
        if execution.tokens and not tried:  # once per decision (ADM-3)
            tried = True
            deciding.tokens.extend(worth_another_try(deciding))
            if deciding.tokens:
                continue
        if execution.runs or execution.finished or execution.status == "paused":
            return
        if waits_for_limit(execution, deciding.plan.final):
            return
        end_quietly(deciding)
        if not deciding.tokens:
            return


def fail_fast(deciding: Deciding) -> None:
    """NEXT-5: after a failure that no arc took, nothing new starts and what runs is cancelled."""
    execution = deciding.execution
    if deciding.plan.executor.fail_fast and not execution.stop:
        deciding.emit(e.ExecutionCancelled(by="fail_fast", reason="a step failed"))
        stop_parked(deciding)
        stop_waiting(deciding)


def end_quietly(deciding: Deciding) -> None:
    """Nothing runs any more: drop what waits, run the final step, or finish."""
    execution, plan = deciding.execution, deciding.plan
    for token in list(execution.tokens.values()):
        drop(deciding, token, execution.stop or f"nothing can end its wait ({token.waits})")
    if plan.final and not execution.final_done and execution.stop != "cancel":
        token_id = f"{execution.seq}.0"
        deciding.make(e.TokenCreated(token_id=token_id, step=plan.final, args=final_args(deciding)))
        deciding.tokens.append(execution.tokens[token_id])
        return
    finish(deciding)


def final_args(deciding: Deciding) -> dict[str, Any]:
    """NEXT-6: what the final step is told."""
    execution = deciding.execution
    return {
        "status": status_of(deciding),
        "steps": {
            step: {"runs": tally.runs, "failed": tally.failed, "status": tally.status}
            for step, tally in execution.tallies.items()
        },
        "failures": [
            {"step": failure.step, "error": failure.error} for failure in execution.failures
        ],
    }


def status_of(deciding: Deciding) -> Any:
    execution = deciding.execution
    if execution.stop == "cancel":
        return "cancelled"
    return "failed" if execution.failed else "completed"


def finish(deciding: Deciding) -> None:
    execution = deciding.execution
    status = status_of(deciding)
    first = execution.failures[0] if execution.failures and status == "failed" else None
    deciding.make(
        e.WorkflowFinished(
            status=status,
            error={"step": first.step, **first.error} if first else None,
            result=result_of(execution.leaves),
            failures=execution.failed,
            untaken=len(execution.signals),
        )
    )
    deciding.emit(e.PlaybookProcessed(status=status))


def result_of(leaves: dict[str, Any]) -> Any:
    """One leaf gives its result, several a mapping step → result."""
    if len(leaves) == 1:
        return next(iter(leaves.values()))
    return leaves or None
