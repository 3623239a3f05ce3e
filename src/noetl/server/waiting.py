"""What runs, what waits, and for what? Nothing waits for ever without saying so (promise 6)."""

from typing import Any, Literal

import msgspec

from noetl.control.execution import Execution, Run, Token
from noetl.control.joins import needed
from noetl.messages.envelope import timestamp
from noetl.playbook.plan import Pipeline, Plan

WaitKind = Literal["task", "worker", "timer", "loop", "refused", "join", "paused"]


class WaitReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that has not ended: where it stands, and what must happen next."""

    step: str
    kind: WaitKind
    words: str
    step_run_id: str | None = None
    token_id: str | None = None
    task: str | None = None
    attempt: int | None = None
    until: str | None = None
    """RFC 3339."""
    missing: tuple[str, ...] = ()
    """The sources that a join has not heard from."""


def waits_of(execution: Execution, plan: Plan) -> list[WaitReason]:
    """Every run in flight and every token that led to none, in order of their making."""
    runs = [wait for run in execution.runs.values() for wait in waits_of_run(run, plan)]
    return runs + [wait_of_token(execution, token, plan) for token in execution.tokens.values()]


def waits_of_run(run: Run, plan: Plan) -> list[WaitReason]:
    if run.suspended:
        return [
            WaitReason(
                step=run.step,
                step_run_id=run.step_run_id,
                kind="timer",
                words=f"pauses ({wait.reason}){until_words(wait.due)}",
                until=None if wait.due is None else timestamp(wait.due),
            )
            for wait in run.suspended.values()
        ]
    return [wait_of_loop(run) if run.loop is not None else wait_of_pipeline(run, plan)]


def until_words(due: int | None) -> str:
    return "" if due is None else f" until {timestamp(due)}"


def wait_of_loop(run: Run) -> WaitReason:
    loop = run.loop
    assert loop is not None, "the run has a loop"
    failed = f", {loop.failed:,} failed" if loop.failed else ""
    words = f"loop: {loop.done:,} of {loop.total:,} iterations done{failed}"
    if loop.active:
        words = f"{words}, {len(loop.active):,} in flight"
    return WaitReason(step=run.step, step_run_id=run.step_run_id, kind="loop", words=words)


def wait_of_pipeline(run: Run, plan: Plan) -> WaitReason:
    workers = [part.worker for part in run.parts.values() if part.worker is not None]
    if not workers or run.frame is None:
        words = "waits for a worker to claim it"
        return WaitReason(step=run.step, step_run_id=run.step_run_id, kind="worker", words=words)
    label = label_at(plan.steps[run.step].pipeline, run.frame.pc)
    again = f", attempt {run.frame.attempt}" if run.frame.attempt > 1 else ""
    return WaitReason(
        step=run.step,
        step_run_id=run.step_run_id,
        kind="task",
        task=label,
        attempt=run.frame.attempt,
        words=f"at task '{label}'{again} on worker {workers[0]}",
    )


def label_at(pipeline: Pipeline, pc: int) -> str:
    return pipeline.tasks[min(pc, len(pipeline.tasks) - 1)].label


def wait_of_token(execution: Execution, token: Token, plan: Plan) -> WaitReason:
    about: dict[str, Any] = {"step": token.step, "token_id": token.token_id}
    if token.waits == "join":
        return wait_at_join(execution, token, plan)
    if token.waits == "paused" or execution.status == "paused":
        return WaitReason(kind="paused", words="its token waits: the execution is paused", **about)
    keys = plan.steps[token.step].admission
    read = "" if keys is None or not keys.keys else ", ".join(f"ctx.{k}" for k in sorted(keys.keys))
    words = f"its admission refused the token; it is asked again when {read or 'ctx'} changes"
    return WaitReason(kind="refused", words=words, **about)


def wait_at_join(execution: Execution, token: Token, plan: Plan) -> WaitReason:
    join = plan.steps[token.step].join
    assert join is not None, "only a join makes tokens meet"
    here = execution.meetings[token.step].waiting.get(token.round, {})
    missing = tuple(source for source in join.sources if source not in here)
    words = f"join: {len(here)} of {needed(join)} tokens are there, missing: {', '.join(missing)}"
    return WaitReason(
        step=token.step, token_id=token.token_id, kind="join", words=words, missing=missing
    )
