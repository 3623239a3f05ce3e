"""
Does the log prove itself? Every decision is made again from its recorded input (EVT-5).

A row of the log is all that followed from one input, and the input can be read back from it:
the request, an order, or the worker's own events among those of the row. What a worker wanted to
write and was refused (LOOP-5) is not recorded; its `task.done` is taken as it stands in the log.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.evolve import evolve
from noetl.control.execution import Execution, Run
from noetl.control.likely import likely
from noetl.control.limits import LIMIT, granted_in
from noetl.control.timing import too_long
from noetl.errors import BodyLost, NoetlError
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events, encode, encode_events, recorded_events
from noetl.messages.names import REPORTED
from noetl.messages.reference import Reference
from noetl.playbook import stand_in
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.event_log import EventLog, LogRow, Playbooks
from noetl.ports.large import read_off_loop
from noetl.ports.result_store import ResultStore
from noetl.server.library import plan_from
from noetl.server.origins import opened
from noetl.server.replay import Load, first_event, frozen, replay, rows_of, thawed, with_state

LONGEST = 400
"""Characters of an event in a message."""


class Verified(msgspec.Struct, frozen=True):
    """What came of it: how many decisions were made again, and where the first one differs."""

    ok: bool
    rows: int
    message: str


class Differs(Exception):
    """The first difference; `str()` says where, what was expected and what was found."""


class Proof:
    """A log being proved: one state by decisions, one by folding what was recorded."""

    def __init__(self, plan: Plan, results: ResultStore, execution_id: str) -> None:
        self.plan = plan
        self.decided = Execution(execution_id=execution_id)
        self.folded = Execution(execution_id=execution_id)
        self.lost: dict[str, str] = {}
        """Bodies that are gone, and what is said of each."""
        self._bodies = Bodies(results)

    async def decide(self, recorded: list[e.Event], at: int) -> None:
        """Make one decision again, compare, and fold it; raises Differs."""
        first = self.decided.seq + 1
        given = await input_of(self.decided, self.plan, recorded, self.load)
        loaded: dict[str, Any] = {}
        long = False
        wanted: Iterable[Reference] = likely(self.plan, self.decided, given)
        while True:
            for reference in wanted:
                await self._load_into(loaded, reference)
            ask = partial(decide, at=at, bodies=loaded, lost=self.lost, hurried=not long)
            if long:
                events = await asyncio.to_thread(ask, self.plan, self.decided, given)
            else:
                events = ask(self.plan, self.decided, given)
            self.decided.bodies.clear()
            if not isinstance(events, Needs):
                break
            wanted, long = events.references, long or events.time
            self.decided = thawed(frozen(self.folded))  # it is spoiled: go on from the other
        compare(events, recorded, first)
        self.folded.now = at
        for event in recorded:
            evolve(self.folded, await with_state(event, self.load), self.plan)
        self.folded.bodies.clear()

    async def load(self, reference: Reference) -> Any:
        """The value; raises BodyLost."""
        try:
            return await self._bodies.look_into(reference)
        except BodyLost as lost:
            self.lost[reference.key] = str(lost)
            raise

    async def _load_into(self, loaded: dict[str, Any], reference: Reference) -> None:
        with suppress(BodyLost):
            loaded[reference.key] = await self.load(reference)


async def verify(
    log: EventLog, playbooks: Playbooks, results: ResultStore, execution_id: str
) -> Verified:
    """Make every decision of an execution again and compare; then compare the folds."""
    plan = await plan_of(log, playbooks, execution_id)
    proof, rows = Proof(plan, results, execution_id), 0
    try:
        async for row in rows_of(log, execution_id):
            recorded = recorded_events(execution_id, row.first, row.events)
            check_numbers(row, proof.decided.seq, len(recorded))
            for part in decisions_in(proof.decided, recorded):
                await proof.decide(part, row.at)
            rows += 1
        compare_folds(proof.decided, proof.folded, "the whole log")
        folded, _ = await replay(log, execution_id, plan, proof.load)
        # One that goes on meanwhile is of another moment by now: it is compared when it rests.
        if not await log.read(execution_id, after=proof.decided.seq, limit=1):
            compare_folds(proof.decided, folded, "the snapshot and its tail")
    except (BodyLost, Differs) as difference:
        if proof.lost:  # the decision may have been another one while the body was there
            return Verified(False, rows, f"unverifiable: {next(iter(proof.lost.values()))}")
        return Verified(False, rows, str(difference))
    return Verified(True, rows, f"{rows} decisions, {proof.decided.seq} events: every one follows")


async def plan_of(log: EventLog, playbooks: Playbooks, execution_id: str) -> Plan:
    requested = await first_event(log, execution_id)
    assert isinstance(requested, e.ExecutionRequested), "a log begins with its request"
    kept = await playbooks.text(requested.digest)
    if kept is None:
        raise NoetlError(f"the playbook of '{execution_id}' is not in this home any more")
    return await read_off_loop(len(kept[0]), plan_from, kept[0])


def decisions_in(state: Execution, recorded: list[e.Event]) -> list[list[e.Event]]:
    """
    A row holds a decision, and those on runs that needed no worker: each begins with a claim of a
    part that the row itself orders. Parts that were there before are claimed by reports of one turn
    (decision 0077).
    """
    starts = [n for n in claims_in(recorded) if not was_open(state, recorded[n])]
    bounds = [0, *starts, len(recorded)]
    return [recorded[low:high] for low, high in pairwise(bounds)]


def claims_in(recorded: list[e.Event]) -> list[int]:
    return [n for n, event in enumerate(recorded) if n and isinstance(event, e.TokenClaimed)]


def was_open(state: Execution, claimed: e.Event) -> bool:
    assert isinstance(claimed, e.TokenClaimed), "only claims are asked about"
    run = state.runs.get(claimed.step_run_id)
    return run is not None and claimed.part in run.parts


# ── the input of a row ───────────────────────────────────────────────────────────────────────


async def input_of(state: Execution, plan: Plan, recorded: list[e.Event], load: Load) -> r.Input:
    """What the server was asked when it wrote this row."""
    if not recorded:
        raise Differs(
            f"event {state.seq + 1}: a decision without events\n"
            "  expected: at least one event\n  found:    none"
        )
    match recorded[0]:
        case e.ExecutionRequested() as requested:
            request = await request_of(state, requested, load, refusal_in(recorded))
            kept = await kept_in(recorded, load) if has_kept(recorded) else None
            return msgspec.structs.replace(request, limit=limit_in(recorded), kept=kept)
        case e.ExecutionAdmitted():
            return r.LimitGranted()
        case e.StepScheduled() | e.StepParked() | e.TokenEnqueued() as granted:
            return r.LimitGranted(holder=granted.step_run_id)
        case e.TokenParked() | e.TokenDropped():
            return r.LimitGranted(holder=granted_in(state, recorded))
        case e.ExecutionCancelled(by="timeout"):
            return r.TimeIsUp(seconds=plan.limits.timeout or 0.0)
        case e.ExecutionCancelled() as cancelled:
            return r.CancelExecution(reason=cancelled.reason, sender=cancelled.sender)
        case e.ExecutionPaused() as paused:
            return r.PauseExecution(reason=paused.reason, sender=paused.sender)
        case e.ExecutionResumed() as resumed:
            return r.ResumeExecution(reason=resumed.reason, sender=resumed.sender)
        case e.SignalReceived() | e.WaitDone() as came:
            return await end_of_wait(came, recorded, load)
        case e.LeaseExpired() as lost:
            return loss_of(lost)
        case e.TokenClaimed() as claimed if len(recorded) == 1:
            return r.PartClaimed(
                step_run_id=claimed.step_run_id,
                part=claimed.part,
                epoch=claimed.epoch,
                worker=claimed.worker,
            )
        case e.TokenClaimed() if len(recorded) > 1 and isinstance(recorded[1], e.LeaseExpired):
            return loss_of(recorded[1])
        case e.StepEvent() | e.CtxPatched(step_run_id=str()) as first if late := out_of_time(
            state, plan, first, recorded
        ):
            return late
        case e.StepEvent() | e.CtxPatched(step_run_id=str()) as first:
            # A patch comes first where a worker reported nothing but the end of a loop (LOOP-5).
            return report_of(state, plan, first, recorded)
        case strange:
            raise Differs(
                f"event {state.seq + 1}: no input begins with {shown(strange)}\n"
                "  expected: a request, an order, or what a worker reports"
            )


def out_of_time(
    state: Execution, plan: Plan, first: e.StepEvent | e.CtxPatched, recorded: list[e.Event]
) -> r.StepTimeIsUp | None:
    """TASK-10: the row of a run that the server ended, or its worker with the same words."""
    run = state.runs.get(first.step_run_id or "")
    seconds = plan.steps[run.step].timeout if run is not None else None
    if run is None or seconds is None:
        return None
    ends = first if isinstance(first, e.StepFailed) else recorded[1:2] and recorded[1]
    if not isinstance(ends, e.StepFailed) or ends.error != too_long(run.step, seconds):
        return None
    if state.rules >= 3 and ends.source == "worker":
        return None
    return r.StepTimeIsUp(step_run_id=run.step_run_id, seconds=seconds)


def refusal_in(recorded: list[e.Event]) -> dict[str, Any] | None:
    """SRV-2: why nothing of a request runs; the catalog that said so may say something else now."""
    match recorded[:2]:
        case [e.ExecutionRequested(digest=stand_in.DIGEST), e.RequestEvaluated(error=error)]:
            return error
        case [_, e.RequestEvaluated(error=dict() as error)] if LIMIT in str(error.get("message")):
            return error
    return None


def limit_in(recorded: list[e.Event]) -> r.LimitAnswer | None:
    """LIMIT-2: what its limit said to a start."""
    for event in recorded[2:]:
        match event:
            case e.ExecutionQueued(limit=limit, key=key, priority=priority, place=place):
                return r.LimitAnswer(limit=limit, key=key, priority=priority, place=place)
            case e.ExecutionAdmitted(limit=limit, key=key):
                return r.LimitAnswer(limit=limit, key=key)
    return None


def has_kept(recorded: list[e.Event]) -> bool:
    return len(recorded) > 2 and isinstance(recorded[2], e.ExecutionRestored)


async def kept_in(recorded: list[e.Event], load: Load) -> r.KeptState:
    """RST-2: what a restart took over, as its first row says it."""
    requested, evaluated, restored, *rest = recorded
    match requested, evaluated, await with_state(restored, load):
        case e.ExecutionRequested(), e.RequestEvaluated(), e.ExecutionRestored() as found:
            runs = [await with_state(one, load) for one in rest[: found.runs_kept]]
            tokens = rest[found.runs_kept :][: found.tokens_kept]
            return r.KeptState(
                workload=await opened(evaluated.workload, requested.payload, load),
                ctx=found.ctx,
                leaves=found.leaves,
                kept=found.kept,
                runs=[
                    r.KeptRun(step=run.step, origin_run_id=run.origin_run_id, run=run.run)
                    for run in runs
                    if isinstance(run, e.StepRestored)
                ],
                tokens=[
                    {name: getattr(token, name) for name in TOKEN}
                    for token in tokens
                    if isinstance(token, e.TokenCreated)
                ],
            )
    raise Differs("event 3: a restart begins with what it took over")


TOKEN = ("step", "args", "source", "rounds", "round")


async def request_of(
    state: Execution,
    event: e.ExecutionRequested,
    load: Load,
    refused: dict[str, Any] | None,
) -> r.StartExecution:
    """EVT-4: what was too large for the log is fetched, to be moved out again."""

    async def whole(values: dict[str, Any]) -> dict[str, Any]:
        return {
            key: await load(value)
            if isinstance(value, Reference) and value.sealed is None
            else value
            for key, value in values.items()
        }

    return r.StartExecution(
        execution_id=state.execution_id,
        path=event.path,
        digest=event.digest,
        version=event.version,
        folder=event.folder,
        payload=await whole(event.payload),
        ctx=await whole(event.ctx),
        store=event.store,
        trace_id=event.trace_id,
        parent_execution_id=event.parent_execution_id,
        parent_id=event.parent_id,
        origin_execution_id=event.origin_execution_id,
        origin_seq=event.origin_seq,
        chosen=event.chosen,
        trigger=event.trigger,
        depth=event.depth,
        sender=event.sender,
        rules=event.rules,
        refused=refused,
    )


async def end_of_wait(
    came: e.SignalReceived | e.WaitDone, recorded: list[e.Event], load: Load
) -> r.Input:
    """WAIT: a signal, what a person said, or the clock."""
    if isinstance(came, e.SignalReceived):
        return r.SendSignal(
            signal=came.signal, data=came.content, sender=came.sender, signal_id=came.signal_id
        )
    if came.by == "approval":
        result = came.result
        return answer_in(came, await load(result) if isinstance(result, Reference) else result)
    ended = [event for event in recorded if isinstance(event, e.WaitDone)]
    return r.WaitsDue(waits=[(done.step_run_id, done.task_run_id) for done in ended])


def answer_in(done: e.WaitDone, result: dict[str, Any]) -> r.AnswerApproval:
    """WAIT-5: what a person said is the result, beside what the server added."""
    given = dict(result)
    given.pop("at", None)
    return r.AnswerApproval(
        task_run_id=done.task_run_id,
        label=done.label,
        approved=given.pop("approved"),
        sender=given.pop("by"),
        reason=given.pop("reason"),
        fields=given,
    )


def loss_of(lost: e.LeaseExpired) -> r.LeaseLost:
    return r.LeaseLost(
        step_run_id=lost.step_run_id,
        part=lost.part,
        epoch=lost.epoch,
        returned=lost.returned,
        counted=not lost.uncounted,
        worker=lost.worker,
    )


def report_of(
    state: Execution, plan: Plan, first: e.StepEvent | e.CtxPatched, recorded: list[e.Event]
) -> r.Report:
    run = state.runs.get(first.step_run_id or "")
    if run is None:
        raise Differs(
            f"event {state.seq + 1}: a report on a run that is not in flight\n"
            f"  expected: one of {', '.join(state.runs) or 'none'}\n  found:    {shown(first)}"
        )
    bounds = [0, *claims_in(recorded), len(recorded)]
    reports = [
        told_by(run, plan, hold_of(run, recorded[low]), recorded[low:high])
        for low, high in pairwise(bounds)
    ]
    return msgspec.structs.replace(reports[0], beside=reports[1:])


def told_by(run: Run, plan: Plan, hold: tuple[int, int, str], recorded: list[e.Event]) -> r.Report:
    part, epoch, worker = hold
    return r.Report(
        step_run_id=run.step_run_id,
        part=part,
        epoch=epoch,
        worker=worker,
        events=list(reported(run, plan, recorded)),
        after=None,
    )


def hold_of(run: Run, first: e.Event) -> tuple[int, int, str]:
    """Who reported: whom the row names as claiming, or one who had claimed before."""
    if isinstance(first, e.TokenClaimed):
        return first.part, first.epoch, first.worker
    for part in run.parts.values():
        if part.worker is not None:
            return part.part, part.epoch, part.worker
    return 0, 0, ""


def reported(run: Run, plan: Plan, recorded: list[e.Event]) -> Iterator[e.Event]:
    """The worker's own events, as it sent them."""
    loop = plan.steps[run.step].loop
    waits = False
    for event in recorded:
        if not isinstance(event, REPORTED) or event.step_run_id != run.step_run_id:
            continue
        if not isinstance(event, e.StepDone | e.StepFailed | e.LoopDone) or of_task(event):
            waits = isinstance(event, e.TaskSuspended)
            yield event
            continue
        if waits and getattr(event, "source", "") == "server":
            return  # of a run that is stopped while it waits the server tells the end (NEXT-8)
        decided = isinstance(event, e.LoopDone) or getattr(event, "loop", None) is not None
        if not decided:
            yield event
        elif isinstance(event, e.StepFailed) and event.error.get("kind") != "loop":
            # Cut short by whoever ran it; what the loop came to is the server's to say.
            yield msgspec.structs.replace(event, loop=None)
        elif loop is not None and loop.exec == "local":
            # LOOP-10: the worker only says that it is over; the server knows what it came to.
            yield e.LoopDone(
                step=event.step, step_run_id=event.step_run_id, total=run_total(run), done=0
            )
        return


def of_task(event: e.Event) -> bool:
    """LOOP-7: the loop of a task, which the worker ends by itself."""
    return getattr(event, "parent_id", None) is not None


def run_total(run: Run) -> int:
    return 0 if run.loop is None else run.loop.total


# ── comparing ────────────────────────────────────────────────────────────────────────────────


def check_numbers(row: LogRow, seq: int, events: int) -> None:
    """EVT-3: per execution a gapless `seq`."""
    if (row.first, row.last) != (seq + 1, seq + events):
        raise Differs(
            f"event {seq + 1}: the numbers of the log have a gap\n"
            f"  expected: {events} events from {seq + 1} to {seq + events}\n"
            f"  found:    a decision that says {row.first} to {row.last}"
        )


def compare(decided: list[e.Event], recorded: list[e.Event], first: int) -> None:
    """Raise Differs at the first event that is not what was decided now."""
    written = encode_events(decided)
    if written == encode_events(recorded):
        return
    decided = decode_events(written)  # as it is read back: what is a default may be left out
    for number in range(max(len(decided), len(recorded))):
        expected = decided[number] if number < len(decided) else None
        found = recorded[number] if number < len(recorded) else None
        if expected != found:
            raise Differs(
                f"event {first + number} does not follow from what was recorded before it\n"
                f"  expected: {shown(expected)}\n  found:    {shown(found)}"
            )


def shown(event: e.Event | None) -> str:
    return "no event" if event is None else cut(event)


def plain(value: Any) -> Any:
    """Equal for what is equal once written: lists and tuples, numbers and their text."""
    return msgspec.json.decode(encode(value))


def compare_folds(decided: Execution, folded: Execution, way: str) -> None:
    """The state by decisions, by the whole log, and by the snapshot and its tail is one."""
    expected = fields_of(decided)
    for name, value in fields_of(folded).items():
        if value != expected[name]:
            raise Differs(
                f"event {folded.seq}: the state by {way} differs in `{name}`\n"
                f"  expected: {cut(expected[name])}\n  found:    {cut(value)}"
            )


def fields_of(execution: Execution) -> dict[str, Any]:
    """All but the time of the last row, which snapshots of rules 1 do not have."""
    names = [name for name in execution.__struct_fields__ if name != "now"]
    fields: dict[str, Any] = plain({name: getattr(execution, name) for name in names})
    return fields


def cut(value: Any) -> str:
    text = encode(value).decode()
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
