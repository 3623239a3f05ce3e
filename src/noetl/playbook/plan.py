"""
A checked playbook, indexed and compiled: the only form that the packages behind it read.

Everything a run needs to look up is looked up here once: steps by name, labels by number,
defaults resolved, templates compiled (TPL-4). A plan holds no state and is shared by all
executions of one digest.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from noetl.expression.reads import reads, touches
from noetl.expression.syntax import is_template
from noetl.expression.template import compile_guard, compile_rules, compile_value
from noetl.kinds.kind import Inputs, Kind
from noetl.kinds.table import KINDS
from noetl.messages.digest import digest_of_short
from noetl.playbook.caching import CachePlan, caches_in, plan_cache
from noetl.playbook.model import (
    Admission,
    Arc,
    Backoff,
    Do,
    Executor,
    Inner,
    Join,
    KeychainEntry,
    LeaseSpec,
    Limit,
    Limits,
    Loop,
    Mode,
    Playbook,
    Reducer,
    Router,
    Rule,
    Step,
    Task,
    TaskSpec,
    Then,
)
from noetl.playbook.step_traits import (
    asks_nothing,
    guards_of,
    is_idle,
    is_looked_behind,
    may_run_inline,
    may_wait,
    rendered_inputs,
)

Exec = Literal["local", "distributed"]
Scope = dict[str, Any]
Evaluate = Callable[[Scope], Any]
Choose = Callable[[Scope], int]
Paths = frozenset[tuple[str, ...]]
"""As `expression.reads` finds them."""


class ThenPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A rule's order, its templates compiled."""

    do: Do
    attempts: int = 1
    backoff: Backoff = "none"
    delay: float | Evaluate = 0.0
    max_delay: float | None = None
    jitter: float = 0.0
    to: str | None = None
    message: Evaluate | None = None
    set_iter: Evaluate | None = None
    set_ctx: Evaluate | None = None
    set_prev: Evaluate | None = None


class TaskPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One task: how its inputs are made, how its outcome is judged."""

    index: int
    label: str
    kind: str
    effect: bool
    block: str | None
    inputs: type[Inputs]
    render: Evaluate
    spec: TaskSpec
    timeout: Evaluate | None = None
    """Gives `spec.timeout`, where that is a template (TASK-7)."""
    choose: Choose | None = None
    """The number of the rule that matches, or -1; None when the task has no policy."""
    thens: tuple[ThenPlan, ...] = ()
    exhausted: dict[int, Choose] = {}
    """Number of a retry → the choice among the `when` rules below it (TASK-3)."""
    inner: "InnerPlan | None" = None
    child: str | None = None
    """The playbook that it runs (TOOL-1), where that is no template."""
    cache: CachePlan | None = None
    """How its outcome is kept (CACHE-1)."""
    guards: dict[str, Evaluate] = {}
    """Of `wait`: label → the `when` of a signal, which the server asks (WAIT-1)."""
    awaits: dict[str, Any] = {}
    """Of `wait`: its inputs as they were written, by which the server knows a lie (WAIT-2)."""


class Pipeline(msgspec.Struct, frozen=True):
    """Tasks in order; labels are the jump targets."""

    tasks: tuple[TaskPlan, ...]
    labels: dict[str, int]
    effect: bool
    """Whether any task may touch the world: without, the run may go ahead of the commit."""


class LoopPlan(msgspec.Struct, frozen=True, kw_only=True):
    """LOOP-1, its defaults resolved (LOOP-2)."""

    items: Evaluate
    iterator: str
    mode: Literal["sequential", "parallel"]
    exec: Exec
    in_flight: int
    on_failure: Literal["stop", "continue"]
    reduce: dict[str, Reducer]

    @property
    def window(self) -> int:
        """LOOP-9: how far beyond the lowest unfinished iteration one may start."""
        return max(1000, 10 * self.in_flight)


class InnerPlan(msgspec.Struct, frozen=True):
    """The nested loop of an `iterator` task (LOOP-7)."""

    loop: LoopPlan
    pipeline: Pipeline


class AdmissionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """ADM-1. `keys` are the ctx keys whose change makes a refused token worth another try."""

    mode: Mode
    choose: Choose
    guards: tuple[Evaluate, ...]
    allows: tuple[bool, ...]
    drop: bool
    keys: frozenset[str] | None
    """None: any key may matter."""


class ArcPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One outgoing arc."""

    number: int
    step: str
    guard: Callable[[Scope], bool] | None
    args: Evaluate | None
    touches: Paths
    """What its guard and `args` look into."""


class RouterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """NEXT-1, NEXT-3: which arcs are asked after a success and after a failure."""

    exclusive: bool
    after_success: tuple[ArcPlan, ...]
    after_failure: tuple[ArcPlan, ...]
    evaluates: bool
    """Whether some arc has a guard or `args`."""


class LimitPlan(msgspec.Struct, frozen=True, kw_only=True):
    """LIMIT-1. `key` and `priority` are evaluated when something is to begin."""

    spec: Limit
    key: Evaluate | None
    priority: Evaluate


class StepPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One step, ready to be scheduled."""

    name: str
    pipeline: Pipeline
    admission: AdmissionPlan | None = None
    join: Join | None = None
    limit: LimitPlan | None = None
    loop: LoopPlan | None = None
    router: RouterPlan | None = None
    timeout: float | None = None
    lease: LeaseSpec = LeaseSpec()
    touches: Paths = frozenset()
    """What its admission and `loop.in` look into when a token arrives."""
    waits: dict[str, tuple[TaskPlan, ...]] = {}
    """Label → its tasks of kind `wait`; only where some task may wait."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A whole playbook, ready to run."""

    name: str
    path: str
    version: str | None
    digest: str
    steps: dict[str, StepPlan]
    entry: str
    final: str | None
    executor: Executor
    limits: Limits
    limit: LimitPlan | None = None
    limited: bool = False
    """Whether it or one of its steps has a limit (LIMIT-1)."""
    workload: dict[str, Any]
    """As `compile_tree` leaves it: mappings stay mappings, everything else is a callable."""
    workbook: dict[str, TaskPlan]
    keychain: tuple[KeychainEntry, ...]
    waiting: dict[str, tuple[str, ...]] = {}
    """Join step → its sources."""
    cached: dict[str, CachePlan] = {}
    """Tasks whose outcomes are kept, by name (CACHE-1)."""
    waits: bool = False
    """Whether some task may wait (WAIT): then the server keeps clocks."""
    effect: bool = False
    """Whether some task may touch the world."""
    unasked: frozenset[str] = frozenset()
    """Steps whose token becomes a run for a worker without a question."""
    inline: frozenset[str] = frozenset()
    """Steps of nothing but `noop`: a run may need no worker (decision 0040)."""
    idle: frozenset[str] = frozenset()
    """Those of them that have no policies either: what comes of a run is known beforehand."""
    looked_behind: frozenset[str] = frozenset()
    """Steps after whose end a template looks into something: bodies may have to be loaded."""


class Workbook(msgspec.Struct, frozen=True):
    """The tasks that steps may call by name, as they are written and as they are planned."""

    tasks: Mapping[str, Task] = {}
    plans: Mapping[str, TaskPlan] = {}


NO_WORKBOOK = Workbook()


def make_plan(playbook: Playbook, text: str, kinds: Mapping[str, Kind] = KINDS) -> Plan:
    """The plan of a valid playbook; `text` is what its digest is taken of."""
    borrowed = {name: plan_task(0, task, kinds) for name, task in playbook.workbook.items()}
    workbook = Workbook(playbook.workbook, borrowed)
    steps = {step.name: plan_step(step, kinds, workbook) for step in playbook.steps}
    caches = caches_in(step.pipeline for step in steps.values())
    version = playbook.metadata.get("version")
    return Plan(
        name=playbook.name,
        path=playbook.path,
        version=None if version is None else str(version),
        digest=digest_of(text),
        steps=steps,
        entry=entry_of(playbook),
        final=playbook.executor.final_step,
        executor=playbook.executor,
        limits=playbook.executor.limits,
        limit=plan_limit(playbook.executor.limit),
        limited=bool(playbook.executor.limit or any(step.limit for step in playbook.steps)),
        workload=compile_tree(playbook.workload),
        workbook=borrowed,
        keychain=playbook.keychain,
        effect=any(step.pipeline.effect for step in steps.values()),
        unasked=frozenset(name for name, step in steps.items() if asks_nothing(step))
        - {playbook.executor.final_step},
        inline=frozenset(name for name, step in steps.items() if may_run_inline(step)),
        idle=frozenset(
            name
            for name, step in steps.items()
            if is_idle(step, playbook.executor.limits.max_task_runs)
        ),
        looked_behind=frozenset(name for name in steps if is_looked_behind(steps, name)),
        cached={cache.name: cache for cache in caches},
        waits=any(may_wait(step.tasks, workbook) for step in playbook.steps),
    )


def digest_of(text: str) -> str:
    """Names a playbook by its text, so that a run keeps what it began with."""
    return digest_of_short(text.encode())


def entry_of(playbook: Playbook) -> str:
    """DOC-5: the executor's, else `start`, else the first."""
    names = [step.name for step in playbook.steps]
    return playbook.executor.entry_step or ("start" if "start" in names else names[0])


def compile_tree(tree: Mapping[str, Any]) -> dict[str, Any]:
    """DOC-3: mappings stay open, so that a payload can reach below a key before rendering."""
    return {
        key: compile_tree(value) if isinstance(value, Mapping) else compile_value(value)
        for key, value in tree.items()
    }


def plan_step(step: Step, kinds: Mapping[str, Kind], workbook: Workbook) -> StepPlan:
    pipeline = plan_pipeline(step.tasks, kinds, workbook, step.name)
    return StepPlan(
        name=step.name,
        pipeline=pipeline,
        waits=waits_of(pipeline) if may_wait(step.tasks, workbook) else {},
        admission=plan_admission(step.admission) if step.admission else None,
        join=step.join,
        limit=plan_limit(step.limit),
        loop=plan_loop(step.loop, waits=may_wait(step.tasks, workbook)) if step.loop else None,
        router=plan_router(step.router) if step.router else None,
        timeout=step.timeout,
        lease=step.lease,
        touches=touches_of(step),
    )


def plan_limit(limit: Limit | None) -> LimitPlan | None:
    if limit is None:
        return None
    key = None if limit.key is None else compile_value(limit.key)
    return LimitPlan(spec=limit, key=key, priority=compile_value(limit.priority))


def touches_of(step: Step) -> Paths:
    guards = [rule.when for rule in step.admission.rules] if step.admission else []
    return reads(guards) | touches(step.loop.items if step.loop else None)


def plan_pipeline(
    tasks: tuple[Task, ...], kinds: Mapping[str, Kind], workbook: Workbook, within: str
) -> Pipeline:
    labels = {task.label: number for number, task in enumerate(tasks)}
    planned = tuple(plan_task(n, task, kinds, workbook, within) for n, task in enumerate(tasks))
    return Pipeline(planned, labels, any(task.effect for task in planned))


def plan_task(
    index: int,
    task: Task,
    kinds: Mapping[str, Kind],
    workbook: Workbook = NO_WORKBOOK,
    within: str = "",
) -> TaskPlan:
    kind = kinds[task.kind]
    rules = task.spec.rules
    name = f"{within}.{task.label}" if within else ""
    inner = plan_inner(task.inner, kinds, workbook, name) if task.inner else None
    planned = TaskPlan(
        index=index,
        label=task.label,
        kind=task.kind,
        effect=inner.pipeline.effect if inner else kind.effect,
        block=kind.block,
        inputs=kind.inputs,
        render=compile_value({**kind.left_out, **rendered_inputs(task)}),
        spec=task.spec,
        timeout=None if task.spec.timeout_by is None else compile_value(task.spec.timeout_by),
        choose=None if rules is None else compile_rules([rule.when for rule in rules]),
        thens=tuple(plan_then(rule.then) for rule in rules or ()),
        exhausted=below_retries(rules or ()),
        inner=inner,
        child=child_of(task),
        cache=plan_cache(task, within, workbook.tasks),
        guards={label: compile_guard(when) for label, when in guards_of(task)},
        awaits=rendered_inputs(task) if task.kind == "wait" else {},
    )
    lent = workbook.plans.get(str(task.inputs.get("name"))) if task.kind == "workbook" else None
    return planned if lent is None else ruled_by(planned, lent)


def child_of(task: Task) -> str | None:
    path = task.inputs.get("path") if task.kind == "playbook" else None
    return path if isinstance(path, str) and "{" not in path else None


def ruled_by(caller: TaskPlan, lent: TaskPlan) -> TaskPlan:
    """TOOL-2: without a policy of its own, the caller is ruled by that of the workbook's task."""
    if caller.choose is not None or lent.choose is None:
        return caller
    thens = tuple(
        msgspec.structs.replace(then, to=caller.label) if then.to is not None else then
        for then in lent.thens
    )
    ruled = {"choose": lent.choose, "thens": thens, "exhausted": lent.exhausted}
    return msgspec.structs.replace(caller, **ruled)


def below_retries(rules: Sequence[Rule]) -> dict[int, Choose]:
    """TASK-3: what is asked when no attempt is left. An `else` is not: it is for what goes well."""
    found: dict[int, Choose] = {}
    for number, rule in enumerate(rules):
        above: list[bool | str] = [False] * (number + 1)
        below = [False if one.when is None else one.when for one in rules[number + 1 :]]
        if rule.then.do == "retry" and any(guard is not False for guard in below):
            found[number] = compile_rules(above + below)
    return found


def plan_then(then: Then) -> ThenPlan:
    delay = then.delay
    return ThenPlan(
        do=then.do,
        attempts=then.attempts or 1,
        backoff=then.backoff,
        delay=compile_value(delay) if isinstance(delay, str) else delay,
        max_delay=then.max_delay,
        jitter=then.jitter,
        to=then.to,
        message=None if then.message is None else compile_value(then.message),
        set_iter=compile_value(then.set_iter) if then.set_iter else None,
        set_ctx=compile_value(then.set_ctx) if then.set_ctx else None,
        set_prev=None if then.set_prev is msgspec.UNSET else compile_value(then.set_prev),
    )


def plan_inner(
    inner: Inner, kinds: Mapping[str, Kind], workbook: Workbook, within: str
) -> InnerPlan:
    return InnerPlan(plan_loop(inner.loop), plan_pipeline(inner.tasks, kinds, workbook, within))


def waits_of(pipeline: Pipeline) -> dict[str, tuple[TaskPlan, ...]]:
    """The tasks that wait, by label; loops inside may use a label again."""
    found: dict[str, tuple[TaskPlan, ...]] = {}
    for task in pipeline.tasks:
        if task.kind == "wait":
            found[task.label] = (*found.get(task.label, ()), task)
        for label, tasks in (waits_of(task.inner.pipeline) if task.inner else {}).items():
            found[label] = (*found.get(label, ()), *tasks)
    return found


def plan_loop(loop: Loop, *, waits: bool = False) -> LoopPlan:
    """WAIT-2: iterations that wait hold up no other, so that no one worker can own all of them."""
    parallel = loop.mode == "parallel"
    usual: Exec = "distributed" if parallel else "local"
    return LoopPlan(
        items=compile_value(loop.items),
        iterator=loop.iterator,
        mode=loop.mode,
        exec="distributed" if parallel and waits else loop.exec or usual,
        in_flight=loop.max_in_flight if parallel else 1,
        on_failure=loop.on_failure,
        reduce=loop.reduce,
    )


def plan_admission(admission: Admission) -> AdmissionPlan:
    guards = [rule.when for rule in admission.rules]
    return AdmissionPlan(
        mode=admission.mode,
        choose=compile_rules(guards),
        guards=tuple(compile_guard(True if guard is None else guard) for guard in guards),
        allows=tuple(rule.allow for rule in admission.rules),
        drop=admission.on_deny == "drop",
        keys=ctx_keys(guards),
    )


def ctx_keys(guards: list[bool | str | None]) -> frozenset[str] | None:
    """ADM-3: the ctx keys that the rules read; None when they cannot be told apart."""
    keys: set[str] = set()
    for guard in guards:
        for path in reads(guard) if is_template(guard) else ():
            if path == ("ctx",):
                return None
            if path[0] == "ctx":
                keys.add(path[1])
            elif len(path) == 1 or path[0] not in ("args", "workload", "event"):
                keys.add(path[0])  # an unqualified name may come from ctx (TPL-2)
    return frozenset(keys)


def plan_router(router: Router) -> RouterPlan:
    arcs = tuple(plan_arc(number, arc) for number, arc in enumerate(router.arcs))
    guarded = tuple(arc for arc in arcs if arc.guard is not None)
    return RouterPlan(
        exclusive=router.mode == "exclusive",
        after_success=arcs,
        after_failure=arcs if router.on_failure == "all" else guarded,
        evaluates=bool(guarded) or any(arc.args is not None for arc in arcs),
    )


def plan_arc(number: int, arc: Arc) -> ArcPlan:
    return ArcPlan(
        number=number,
        step=arc.step,
        guard=None if arc.when is None else compile_guard(arc.when),
        args=compile_value(arc.args) if arc.args else None,
        touches=reads(arc.when) | touches(arc.args),
    )
