"""
What does a restart take over? The old log without what it forgets, folded again (RST-1).

The fold is that of replay (`evolve`) on the plan that the old execution followed, so that what is
kept is what would have been, had the forgotten runs not begun yet. Then it is fitted to the plan
that the new execution follows (RST-4).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from noetl.control.evolve import evolve
from noetl.control.execution import Execution, KeptCounts, Run, Token
from noetl.control.forgetting import Forgetting, History, RunAgain
from noetl.control.reducers import LOOKS_INTO, MISSING, PILED, onto
from noetl.errors import NeedsBody, RestartRefused
from noetl.messages import events as e
from noetl.messages.codec import decode, encode
from noetl.messages.reference import Reference
from noetl.messages.references import references_in
from noetl.messages.requests import KeptRun, KeptState
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import Pipeline, Plan, StepPlan


class TakenOver(msgspec.Struct, frozen=True):
    """The kept state, and the bodies that must be stored before it is recorded (EVT-4)."""

    state: KeptState
    bodies: dict[str, bytes]


class Successor(msgspec.Struct, frozen=True):
    """Who takes over: its id, the plan that it follows, and where its bodies are kept."""

    execution_id: str
    plan: Plan
    store: str


def take_over(
    history: History, choice: RunAgain, successor: Successor, loaded: Mapping[str, Any]
) -> TakenOver:
    """
    The state that the new execution begins with.

    Raises RestartRefused where the plan does not have what the state speaks of; NeedsBody where a
    reducer looks into a value that is not in `loaded`.
    """
    plan = successor.plan
    execution = fold_again(history, choice, successor, loaded)
    for run in execution.runs.values():
        run.parts, run.next_part, run.since = {}, 0, None
        run.waits, run.parked = {}, None  # a wait that was cut short begins anew
        for iteration in run.loop.active.values() if run.loop is not None else ():
            iteration.away, iteration.waits = "", {}
    missing = [*missing_in(execution, plan), *fitted_runs(execution, history.plan, plan)]
    if missing:
        raise RestartRefused(
            f"the new text does not have what is kept: {'; '.join(missing)}; keep it in the text, "
            "or restart from a step before it: --from STEP"
        )
    if execution.failed and plan.executor.fail_fast:
        steps = ", ".join(dict.fromkeys(f"'{one.step}'" for one in execution.failures))
        raise RestartRefused(
            f"the failure of {steps} stays recorded and would stop everything at once "
            "(fail_fast): choose it too, with --failed or --from"
        )
    if choice.anew:
        execution.signals = []  # they were sent to another workload (RST-5)
    state = value_of(execution, choice.answered)
    meant = {reference.key for reference in references_in(state)}
    bodies = {key: body for key, body in execution.bodies.items() if key in meant}
    return TakenOver(state, bodies)


def fold_again(
    history: History, choice: RunAgain, successor: Successor, bodies: Mapping[str, Any]
) -> Execution:
    """The state by the events that stay; each keeps the `seq` by which others know it."""
    execution = Execution(execution_id=successor.execution_id)
    forgetting = Forgetting(history, choice)
    patches = Patches(history.plan, bodies)
    for seq, at, event in history.events:
        execution.seq, execution.now = seq - 1, at
        if forgetting.stays(event):
            evolve(execution, patches.kept(execution, event), history.plan)
            if execution.bodies and not any(run.loop for run in execution.runs.values()):
                execution.bodies.clear()  # of loops that have ended: their ends refer to the old
        elif isinstance(event, e.StepRestored):
            stand_before(execution, event, seq)
        elif isinstance(event, e.WaitDone) and event.kept is not None:
            del execution.signals[event.kept]  # it was taken, by whatever is forgotten
        else:
            patches.forget(event)
        execution.store = successor.store
    return execution


def stand_before(execution: Execution, event: e.StepRestored, seq: int) -> None:
    """A run that was taken over itself: its token is that of the log before, with its args."""
    run: Run = decode(encode(event.run), Run)
    token_id = f"{seq}.0"
    execution.tokens[token_id] = Token(
        token_id=token_id, step=run.step, args=run.args, seq=seq, rounds=run.rounds
    )
    execution.step_runs -= 1
    execution.tallies[run.step].runs -= 1


class Patches:
    """SCOPE-6: a key that the executor reduces is folded again once a write to it is forgotten."""

    def __init__(self, plan: Plan, bodies: Mapping[str, Any]) -> None:
        self._reduce = plan.executor.reduce
        self._bodies = bodies
        self._wrote: dict[str, dict[str, Any]] = {}
        """Task run → what it wrote, as it wrote it."""
        self._stale: set[str] = set()

    def forget(self, event: e.Event) -> None:
        if isinstance(event, e.CtxPatched) and event.task_run_id is not None:
            self._stale |= event.patch.keys() & self._reduce.keys()

    def kept(self, execution: Execution, event: e.Event) -> e.Event:
        if not self._reduce:
            return event
        if isinstance(event, e.TaskDone) and event.set_ctx:
            self._wrote[event.task_run_id] = event.set_ctx
        if not isinstance(event, e.CtxPatched) or event.task_run_id is None:
            return event
        wrote = self._wrote.pop(event.task_run_id, {})
        again = {
            key: self._folded(execution, key, wrote[key])
            for key in event.patch
            if key in self._stale and key in wrote
        }
        return msgspec.structs.replace(event, patch={**event.patch, **again}) if again else event

    def _folded(self, execution: Execution, key: str, value: Any) -> Any:
        how = self._reduce[key]
        before = execution.ctx.get(key, MISSING)
        if how in LOOKS_INTO or how in PILED:
            before = self._whole(before)
        return onto(how, before, self._whole(value) if how in LOOKS_INTO | {"extend"} else value)

    def _whole(self, value: Any) -> Any:
        if not isinstance(value, Reference):
            return value
        if value.key not in self._bodies:
            raise NeedsBody(value)
        return self._bodies[value.key]


def value_of(execution: Execution, answered: tuple[str, ...]) -> KeptState:
    """The state as a value that an event can carry."""
    for meeting in execution.meetings.values():
        meeting.waiting = {}  # those who wait come back with their rounds
    kept = KeptCounts(
        meetings=execution.meetings,
        tallies=execution.tallies,
        step_runs=execution.step_runs,
        failures=execution.failures,
        failed=execution.failed,
        errors_passed=execution.errors_passed,
        failures_handled=execution.failures_handled,
        signals=execution.signals,
        answered=list(answered),
    )
    return KeptState(
        workload=execution.workload,
        ctx=execution.ctx,
        leaves=execution.leaves,
        kept=decode(encode(kept)),
        runs=[
            KeptRun(step=run.step, origin_run_id=run.step_run_id, run=decode(encode(run)))
            for run in execution.runs.values()
        ],
        tokens=[fields_of(token) for token in in_order(execution.tokens.values())],
    )


def in_order(tokens: Iterable[Token]) -> list[Token]:
    return sorted(tokens, key=lambda token: token.seq)


def fields_of(token: Token) -> dict[str, Any]:
    """Of the `token.created` that brings it back; it has no parent in the new log."""
    return {
        "step": token.step,
        "args": token.args,
        "source": token.source,
        "rounds": token.rounds,
        "round": token.round,
    }


# ── another text (RST-4) ─────────────────────────────────────────────────────────────────────


def missing_in(execution: Execution, plan: Plan) -> list[str]:
    """The steps and joins that the kept state speaks of and the plan does not have."""
    spoken = [
        *execution.tallies,
        *execution.leaves,
        *(token.step for token in execution.tokens.values()),
        *(failure.step for failure in execution.failures if failure.step),
    ]
    found = [f"step '{name}'" for name in dict.fromkeys(spoken) if name not in plan.steps]
    for token in execution.tokens.values():
        step = plan.steps.get(token.step)
        if step is None or not token.round:
            continue
        if step.join is None or token.source not in step.join.sources:
            found.append(f"the join of step '{step.name}' with '{token.source}'")
    return found


def fitted_runs(execution: Execution, old: Plan, new: Plan) -> list[str]:
    """Move the runs that go on to where their tasks stand in the new text; what it lacks."""
    found: list[str] = []
    if old.digest == new.digest:
        return found
    for run in execution.runs.values():
        step = new.steps.get(run.step)
        if step is None:
            continue  # said already
        before = old.steps[run.step]
        found += loops_apart(run, before, step)
        frames = [run.frame] if run.loop is None else []
        if run.loop is not None:
            frames = [iteration.frame for iteration in run.loop.active.values()]
        for frame in frames:
            if frame is not None:
                found += moved(frame, before.pipeline, step.pipeline, run.step)
    return list(dict.fromkeys(found))


def loops_apart(run: Run, old: StepPlan, new: StepPlan) -> list[str]:
    if run.loop is None:
        return [] if new.loop is None else [f"step '{run.step}' without a loop"]
    if new.loop is None:
        return [f"the loop of step '{run.step}'"]
    assert old.loop is not None, "only a step with a loop has iterations"
    same = ("mode", "exec", "reduce")
    if any(getattr(old.loop, name) != getattr(new.loop, name) for name in same):
        return [f"the loop of step '{run.step}' with its mode, exec and reduce"]
    return []


def moved(frame: Frame, old: Pipeline, new: Pipeline, step: str) -> list[str]:
    """Let a frame stand at the task of the same label."""
    if frame.over:
        return []
    task = old.tasks[frame.pc]
    if task.label not in new.labels:
        return [f"task '{task.label}' of step '{step}'"]
    frame.pc = new.labels[task.label]
    if frame.inner is None:
        return []
    inner = new.tasks[frame.pc].inner
    if inner is None or task.inner is None:
        return [f"the loop of task '{task.label}' of step '{step}'"]
    below: list[str] = []
    for iteration in frame.inner.active.values():
        below += moved(iteration.frame, task.inner.pipeline, inner.pipeline, step)
    return below
