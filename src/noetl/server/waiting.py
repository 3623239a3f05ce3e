"""What runs, what waits, and for what? Nothing waits for ever without saying so (promise 6)."""

import shlex
import time
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from noetl.control.approvals import approvals, key_of, names_among
from noetl.control.execution import Execution, Run, Token
from noetl.control.joins import needed
from noetl.control.limits import waiting_for, words_of
from noetl.control.waits import next_due
from noetl.control.waits import words_of as awaited_words
from noetl.control.waits_held import waits_in as waits_held_in
from noetl.expression.meant import closest
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.envelope import timestamp
from noetl.messages.places import place_of
from noetl.pipeline.frame import TaskWait
from noetl.playbook.plan import Pipeline, Plan
from noetl.ports.limits import LimitPlace
from noetl.ports.pools import OF_POOLS, PLACE, group_of
from noetl.ports.storage import Storage
from noetl.server.holders import HOLDERS, held_by, listed

RECENT = 60_000
"""Milliseconds after which a server or worker that was not seen is not there."""
LOOKED_AT = 500
"""Rows of the log that are read for the moment from which something waits."""

SHOWN = 50
"""Waits of one run that are named; of a loop thousands may wait."""

Names = Mapping[tuple[str, str], str]
"""Task run and label → what an answer calls the approval (`names_among`)."""

WaitKind = Literal[
    "task",
    "worker",
    "timer",
    "signal",
    "approval",
    "any",
    "loop",
    "refused",
    "join",
    "paused",
    "limit",
]


class WaitReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that has not ended: where it stands, and what must happen next."""

    step: str
    kind: WaitKind
    words: str
    place: str | None = None
    """The step with its iteration, where it stands in a loop: `charge:4`."""
    step_run_id: str | None = None
    token_id: str | None = None
    task: str | None = None
    attempt: int | None = None
    until: str | None = None
    """RFC 3339."""
    pool: str | None = None
    """The pool whose workers may take it, where it waits for one."""
    since: str | None = None
    """RFC 3339."""
    missing: tuple[str, ...] = ()
    """The sources that a join has not heard from."""
    task_run_id: str | None = None
    """Of a wait (WAIT-7), as the rest."""
    title: str | None = None
    """What a person is asked."""
    form: dict[str, Any] = {}
    """The fields that the answer has."""
    roles: tuple[str, ...] = ()
    """Who may answer: roles and names of tokens; none: whoever may answer at all."""
    answers: tuple[str, ...] = ()
    """The commands that would end it."""
    signals: tuple[str, ...] = ()
    """The signals that would end it, where their guards let them."""
    question: str | None = None
    """What an answer calls it: the step, its iteration, or with the label of `any`."""


class Workers(msgspec.Struct, frozen=True):
    """The workers of the pool of an execution, and since when its runs wait for one of them."""

    known: int | None = None
    """None where nobody counts them: an execution of `noetl run` has its own."""
    free: int = 0
    since: dict[str, int] = {}
    meant: str | None = None
    """The pool that has workers, where the name of one without is nearly the same."""

    @property
    def told(self) -> str:
        return "it has one worker" if self.known == 1 else f"it has {self.known} workers"


UNCOUNTED = Workers()


async def waits_in(
    storage: Storage, execution: Execution, plan: Plan, holder: str | None
) -> list[WaitReason]:
    """What an execution waits for; `holder`: whoever decides for it now, and lives."""
    if plan.limited and not execution.finished:
        places = await storage.limits.places(execution.execution_id)
        limits = [
            await wait_for_limit(storage, execution, plan, place)
            for place in places
            if place.place and not place.group.startswith(OF_POOLS)
        ]
    else:
        limits = []
    return limits + await _waits_in(storage, execution, plan, holder)


async def _waits_in(
    storage: Storage, execution: Execution, plan: Plan, holder: str | None
) -> list[WaitReason]:
    waiting = {run.step_run_id for run in execution.runs.values() if unclaimed(run)}
    if not waiting:
        return waits_of(execution, plan)
    since = await since_when(storage, execution.execution_id, waiting)
    if not await at_server(storage, execution.execution_id, holder):
        return waits_of(execution, plan, Workers(since=since))
    places = await places_in_pool(storage, execution.execution_id, plan.executor.pool)
    if places:
        waits = waits_of(execution, plan, Workers(since=since))
        return [placed(wait, plan, places) for wait in waits]
    rows = await storage.roster.workers(since_ms=int(time.time() * 1000) - RECENT)
    of_pool = [row for row in rows if row.pool == plan.executor.pool]
    free = sum(max(0, row.slots - row.busy) for row in of_pool)
    meant = None if of_pool else closest(plan.executor.pool, {row.pool: None for row in rows})
    return waits_of(execution, plan, Workers(len(of_pool), free, since, meant))


async def at_server(storage: Storage, execution_id: str, holder: str | None) -> bool:
    """Whether workers come to it; the process of `noetl run`, named by a number, is its own."""
    if holder is None or not holder.isdecimal():
        return holder is not None
    owner = await storage.owners.owner_of(execution_id)
    return owner in {row.name for row in await storage.roster.servers()}


async def places_in_pool(storage: Storage, execution_id: str, pool: str) -> dict[str, str]:
    """Step run → what is said of it while the limit of the pool is reached (LIMIT-1)."""
    most = {row.name: row.at_once for row in await storage.pools.all()}
    if pool not in most:
        return {}
    found: dict[str, str] = {}
    names = await storage.limits.holding(group_of(pool), None, HOLDERS + 1)
    held = f"; held by {listed(names)}" if names else ""
    for place in await storage.limits.places(execution_id):
        if place.place and place.group == group_of(pool):
            run = place.holder.removeprefix(PLACE).partition("/")[0]
            reached = f"the limit of pool '{pool}' (at_once: {most[pool]}) is reached{held}"
            found.setdefault(run, f"place {place.place:,} in the queue: {reached}")
    return found


def placed(wait: WaitReason, plan: Plan, places: dict[str, str]) -> WaitReason:
    """A wait for a worker that is one for the limit of its pool."""
    words = places.get(wait.step_run_id or "")
    if words is None or wait.kind not in ("worker", "loop"):
        return wait
    if wait.kind == "loop":
        words = f"{wait.words.partition('; ')[0]}; {words}"
    pool = plan.executor.pool
    return msgspec.structs.replace(wait, kind="limit", words=words, pool=pool)


def unclaimed(run: Run) -> int:
    """How many parts of a run no worker has."""
    return sum(part.worker is None for part in run.parts.values())


async def since_when(storage: Storage, execution_id: str, runs: set[str]) -> dict[str, int]:
    """When each run was last offered (ms). Their ids begin with the `seq` of their cause."""
    first = min(int(run.partition(".")[0]) for run in runs)
    rows = await storage.log.read(execution_id, after=first - 1, limit=LOOKED_AT)
    return {
        event.step_run_id: row.at
        for row in rows
        for event in decode_events(row.events)
        if isinstance(event, e.TokenEnqueued | e.LeaseExpired) and event.step_run_id in runs
    }


def waits_of(execution: Execution, plan: Plan, workers: Workers = UNCOUNTED) -> list[WaitReason]:
    """Every run in flight and every token that led to none, in order of their making."""
    names = names_among(approvals(execution)) if plan.waits else {}
    runs = [
        wait
        for run in execution.runs.values()
        if run.parked is None or run.parked.reason != "limit"
        for wait in waits_of_run(execution, run, plan, workers, names)
    ]
    tokens = [token for token in execution.tokens.values() if token.waits != "limit"]
    return runs + [wait_of_token(execution, token, plan) for token in tokens]


async def wait_for_limit(
    storage: Storage, execution: Execution, plan: Plan, place: LimitPlace
) -> WaitReason:
    """LIMIT-2: what a queued execution or a token of a limited step waits for."""
    found = waiting_for(execution, place.holder)
    limit = plan.steps[found.step].limit if found is not None else plan.limit
    of = f"step '{found.step}'" if found is not None else f"playbook '{plan.path}'"
    key = f" for '{place.key}'" if place.key else ""
    spec = None if limit is None else limit.spec
    numbers = f" ({words_of(spec)})" if spec is not None else ""
    held = await held_by(storage, place.group, place.key, spec)
    reached = f"the limit of {of}{numbers} is reached{key}{held}"
    return WaitReason(
        step=plan.entry if found is None else found.step,
        token_id=found.token_id if isinstance(found, Token) else None,
        step_run_id=found.step_run_id if isinstance(found, e.StepParked) else None,
        kind="limit",
        words=f"place {place.place:,} in the queue: {reached}",
        since=timestamp(place.since),
    )


def waits_of_run(
    execution: Execution, run: Run, plan: Plan, workers: Workers, names: Names
) -> list[WaitReason]:
    waits = [wait for wait in waits_held_in(run) if wait.done is None] if plan.waits else []
    if waits and (run.loop is not None or not run.parts):
        named = [one for wait in waits[:SHOWN] for one in named_waits(execution, wait, names)]
        return [*named, wait_of_loop(run, plan, workers)] if run.loop is not None else named
    if run.parked is not None:
        words = "it waits because the execution is paused"
        return [WaitReason(step=run.step, step_run_id=run.step_run_id, kind="paused", words=words)]
    if run.suspended:
        return [
            WaitReason(
                step=run.step,
                place=place_of(run.step, task_run_id),
                step_run_id=run.step_run_id,
                kind="timer",
                words=f"pauses ({wait.reason}){until_words(wait.due)}",
                until=None if wait.due is None else timestamp(wait.due),
            )
            for task_run_id, wait in run.suspended.items()
        ]
    if run.loop is not None:
        return [wait_of_loop(run, plan, workers)]
    return [wait_of_pipeline(run, plan, workers)]


def named_waits(execution: Execution, wait: TaskWait, names: Names) -> list[WaitReason]:
    """A wait, once for each question that it asks: those of `any` have titles of their own."""
    people = [arm for arm in wait.awaits if arm["by"] == "approval"]
    others = [arm for arm in wait.awaits if arm["by"] != "approval"]
    if len(people) < 2:
        return [named_wait(execution, wait, list(wait.awaits), names)]
    return [named_wait(execution, wait, [arm, *others], names) for arm in people]


def named_wait(
    execution: Execution, wait: TaskWait, arms: list[dict[str, Any]], names: Names
) -> WaitReason:
    """WAIT-7: for what, since when, until when, who may answer, and how."""
    due = next_due(wait)
    asked = next((arm for arm in arms if arm["by"] == "approval"), {})
    answers = tuple(found for arm in arms for found in commands_of(execution, wait, arm, names))
    words = f"waits for {' or '.join(map(awaited_words, arms))} since {timestamp(wait.since)}"
    if due is not None and len(arms) + (wait.due is not None) > 1:
        words = f"{words}, until {timestamp(due)}"
    roles = tuple(asked.get("roles", ()))
    if roles:
        words = f"{words}, from {', '.join(roles)}"
    if execution.status == "paused" and due is not None:
        words = f"{words}; its clock is stopped while the execution is paused"
    if answers:
        words = f"{words}; answer with: {' or: '.join(answers)}"
    return WaitReason(
        step=wait.step,
        place=place_of(wait.step, wait.task_run_id),
        step_run_id=wait.step_run_id,
        kind=wait.awaits[0]["by"] if len(wait.awaits) == 1 else "any",
        words=words,
        task=wait.task,
        task_run_id=wait.task_run_id,
        since=timestamp(wait.since),
        until=None if due is None else timestamp(due),
        title=asked.get("title"),
        form=asked.get("form", {}),
        roles=roles,
        answers=answers,
        signals=tuple(arm["name"] for arm in arms if arm["by"] == "signal"),
        question=names[key_of(wait, asked)] if asked else None,
    )


def commands_of(
    execution: Execution, wait: TaskWait, arm: dict[str, Any], names: Names
) -> tuple[str, ...]:
    execution_id = execution.execution_id
    match arm["by"]:
        case "signal":
            return (f"noetl signal {execution_id} {shlex.quote(arm['name'])}",)
        case "approval":
            name = shlex.quote(names[key_of(wait, arm)])
            fields = "".join(f" --set {one}=…" for one in must_have(arm.get("form", {})))
            return (
                f"noetl approve {execution_id} {name}{fields}",
                f"noetl reject {execution_id} {name}",
            )
    return ()


def must_have(form: Mapping[str, Any]) -> list[str]:
    """The fields that an approval cannot leave out."""
    return [
        shlex.quote(name)
        for name, field in form.items()
        if "default" not in field and field.get("required", True)
    ]


def until_words(due: int | None) -> str:
    return "" if due is None else f" until {timestamp(due)}"


def for_worker(run: Run, plan: Plan, workers: Workers) -> dict[str, Any]:
    """Which pool must bring a worker, since when, and what is known of it."""
    pool, since = plan.executor.pool, workers.since.get(run.step_run_id)
    words = f"waits for a worker of pool '{pool}'"
    if since is not None:
        words = f"{words} since {timestamp(since)}"
    match workers:
        case Workers(known=None):
            pass
        case Workers(known=0):
            start = f"start one: noetl worker start --pool {shlex.quote(pool)}"
            todo = f"did you mean '{workers.meant}'?" if workers.meant else start
            words = f"{words}; no worker of that pool is known; {todo}"
        case Workers(free=0):
            words = f"{words}; {workers.told}, without a free place"
        case _:
            places = "place" if workers.free == 1 else "places"
            words = f"{words}; {workers.told}, with {workers.free} free {places}"
    return {"words": words, "pool": pool, "since": None if since is None else timestamp(since)}


def wait_of_loop(run: Run, plan: Plan, workers: Workers) -> WaitReason:
    loop = run.loop
    assert loop is not None, "the run has a loop"
    failed = f", {loop.failed:,} failed" if loop.failed else ""
    words = f"loop: {loop.done:,} of {loop.total:,} iterations done{failed}"
    if loop.active:
        words = f"{words}, {len(loop.active):,} in flight"
    told: dict[str, Any] = {"words": words}
    if waiting := unclaimed(run):
        told = for_worker(run, plan, workers)
        parts = "it" if len(run.parts) == waiting else f"a part of it ({waiting:,})"
        told["words"] = f"{words}; {parts} {told['words']}"
    return WaitReason(step=run.step, step_run_id=run.step_run_id, kind="loop", **told)


def wait_of_pipeline(run: Run, plan: Plan, workers: Workers) -> WaitReason:
    on = [part.worker for part in run.parts.values() if part.worker is not None]
    if not on or run.frame is None:
        told = for_worker(run, plan, workers)
        return WaitReason(step=run.step, step_run_id=run.step_run_id, kind="worker", **told)
    label = label_at(plan.steps[run.step].pipeline, run.frame.pc)
    again = f", attempt {run.frame.attempt}" if run.frame.attempt > 1 else ""
    return WaitReason(
        step=run.step,
        step_run_id=run.step_run_id,
        kind="task",
        task=label,
        attempt=run.frame.attempt,
        words=f"at task '{label}'{again} on worker {on[0]}",
    )


def label_at(pipeline: Pipeline, pc: int) -> str:
    return pipeline.tasks[min(pc, len(pipeline.tasks) - 1)].label


def wait_of_token(execution: Execution, token: Token, plan: Plan) -> WaitReason:
    about: dict[str, Any] = {"step": token.step, "token_id": token.token_id}
    if token.waits == "join":
        return wait_at_join(execution, token, plan)
    if token.waits == "paused" or execution.status == "paused":
        return WaitReason(
            kind="paused", words="its token waits because the execution is paused", **about
        )
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
