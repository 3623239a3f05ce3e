"""
The servers as a worker of another process sees them: its reports go out, their answers come in.

Each answer brings verdicts, orders and new parts (`ports.link`); how they travel is `worker.wire`.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from noetl.control.dispatch import Command
from noetl.errors import NoetlError, ServerRefused
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.codec import decode, decode_events, encode, encode_events
from noetl.messages.outcome import CacheHit, make_error
from noetl.messages.requests import Report
from noetl.playbook.plan import Plan
from noetl.ports.commit import Commit, committed
from noetl.ports.link import (
    Answer,
    Call,
    CancelWanted,
    ChildWanted,
    DelayWanted,
    Hold,
    KeptWanted,
    Link,
    PlaybookWanted,
    Sent,
    Stop,
    Verdict,
)
from noetl.ports.plans import Plans
from noetl.ports.session import ChildAsked, PartLost, Taken
from noetl.worker.outbox import Outbox, Pending
from noetl.worker.part import CANCELLED
from noetl.worker.questions import PATIENT
from noetl.worker.turn import one_by_one
from noetl.worker.wire import Wire
from noetl.worker.worker import Worker, error_of

MOST_WAITING = 2_000
"""Reports without a verdict before parts wait for them (back-pressure)."""

LONGEST_GAP = 60.0
"""Seconds that a report waits for the one before it, which may be on its way to another server."""

BEATS = 3
"""How often a lease is renewed in its time: two may fail."""

IDLE_BEAT = 1.0
"""Seconds after which it is looked again which lease is to be renewed first."""


class HeldPart(msgspec.Struct):
    """A part that this worker has."""

    server: str
    beat: float
    """Seconds between two renewals."""
    sent: int = 0
    """Events reported on it."""
    begun: bool = False
    stopped: bool = False
    """Whether it was told to stop: that is done once (NEXT-8)."""


class WireSession:
    """Session of a worker whose servers are elsewhere; `WorkLoop` keeps it in work."""

    worker: Worker

    def __init__(
        self,
        link: Link,
        *,
        me: Call,
        plan_of: Callable[[str], Plan],
        says: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.holds: dict[Hold, HeldPart] = {}
        self.wire = Wire(self, link, me, self.holds, says)
        self._plans = Plans(plan_of)
        self.waiting = 0
        self._number = 0
        self._patient = 0
        """Parts that wait for a child: they take no place (TASK-8)."""
        self.changed = asyncio.Event()
        self.hungry = False
        """Whether there was a free place when the work loop looked last."""
        self.draining = False
        self.hurried = asyncio.Event()
        """Set by a part whose lease is to be renewed sooner than it is looked."""

    # ── what parts ask (ports.session.Session) ───────────────────────────────────────────────

    report_turn = one_by_one  # a call carries the reports of all parts anyway

    def report(self, execution_id: str, report: Report) -> Taken:
        hold = Hold(execution_id, report.step_run_id, report.part, report.epoch)
        held = self.holds.get(hold)
        if held is None:
            return Taken([], committed())
        sent = Sent(
            hold=hold,
            after=report.after or 0,
            events=msgspec.Raw(encode_events(report.events)),
        )
        held.sent += len(report.events)
        self._number += 1
        self.waiting += 1
        pending = Pending(self._number, sent, Commit())
        outbox = self.wire.outbox(held.server)
        outbox.reports.append(pending)
        self.wire.send_soon(outbox)
        return Taken(None, pending.commit)

    def hand_back(self, command: Command) -> None:
        """TASK-8: the part waits long; any worker may take it up when it is due."""
        hold = hold_of(command)
        held = self._drop(hold)
        if held is not None:
            outbox = self.wire.outbox(held.server)
            outbox.returns.append(hold)
            self.wire.send_soon(outbox)

    def far_ahead(self) -> bool:
        return self.waiting > MOST_WAITING

    def broken(self, command: Command, fault: BaseException) -> None:
        self._fail(command, error_of(fault))

    def _fail(self, command: Command, error: dict[str, Any]) -> None:
        held = self.holds.get(hold_of(command))
        if held is None:
            return
        failed = e.StepFailed(step=command.step, step_run_id=command.step_run_id, error=error)
        report = Report(
            step_run_id=command.step_run_id,
            part=command.part,
            epoch=command.epoch,
            worker=self.wire.me.worker,
            events=[failed],
            after=held.sent,
        )
        self.report(command.execution_id, report)

    async def child(self, command: Command, asked: ChildAsked, *, wait: bool) -> dict[str, Any]:
        questions, execution_id = self.wire.questions, asked.execution_id
        hold = hold_of(command)
        if hold not in self.holds:
            raise PartLost(command.step_run_id)
        wanted = ChildWanted(msgspec.Raw(encode(asked)))
        self._patient += 1
        self.news()
        try:
            begun: dict[str, Any] = await questions.ask(wanted, hold)
            return await questions.end_of(execution_id, hold) if wait else begun
        except asyncio.CancelledError:
            if not self.worker.stopping:
                cancel = CancelWanted(execution_id=execution_id, reason="the parent was cancelled")
                with suppress(ServerRefused):  # who has the part now minds the child
                    await questions.ask(cancel, hold)
                    await questions.end_of(execution_id, hold)
            raise
        finally:
            self._patient -= 1

    async def kept(self, command: Command, task: str, key: str) -> CacheHit | None:
        hold = hold_of(command)
        if hold not in self.holds:
            raise PartLost(command.step_run_id)
        try:
            found = await self.wire.questions.ask(KeptWanted(task=task, key=key), hold)
        except ServerRefused:  # an older server, or the lease has ended: the task runs
            return None
        return None if found is None else CacheHit(key, **found)

    async def moved(self, command: Command, task_run_id: str) -> int:
        hold = hold_of(command)
        wanted = DelayWanted(task_run_id=task_run_id, wait=PATIENT)
        found = None
        while found is None:
            if hold not in self.holds:
                raise PartLost(command.step_run_id)
            try:
                found = await self.wire.questions.ask(wanted, hold)
            except ServerRefused:  # an older server, or the lease has ended
                return 0
        return int(found)

    # ── room ─────────────────────────────────────────────────────────────────────────────────

    @property
    def free(self) -> int:
        if self.draining:
            return 0
        wire = self.wire
        left = wire.me.slots - len(self.holds) + self._patient - wire.offered
        return left if left > 0 else 0

    def news(self) -> None:
        """Wake the work loop, if what it waits for may have happened."""
        if self.draining or self.wire.refusal or (self.free > 0) != self.hungry:
            self.changed.set()

    # ── hearing ──────────────────────────────────────────────────────────────────────────────

    async def hear_leases(self, answer: Answer) -> None:
        for hold in answer.lost:
            self.let_go(hold)
        for stop in answer.stops:
            self._stop(stop)
        if answer.moved:
            await self.wire.follow({hold.execution_id for hold in answer.moved})

    def _stop(self, stop: Stop) -> None:
        """NEXT-8. A part whose playbook is still on its way ends before it begins."""
        running: set[str] = set()
        for hold, held in self.holds.items():
            same = hold.execution_id == stop.execution_id
            if same and not held.stopped and stop.step_run_id in (None, hold.step_run_id):
                held.stopped = True
                if held.begun:
                    running.add(hold.step_run_id)
        for step_run_id in running:
            self.wire.chore(self.worker.cancel(stop.execution_id, step_run_id))

    def judge(self, outbox: Outbox, pending: Pending, verdict: Verdict) -> None:
        state = verdict.state
        if state == "gap" and not pending.gap_since:
            pending.gap_since = time.monotonic()
        open_gap = state == "gap" and time.monotonic() - pending.gap_since < LONGEST_GAP
        if state in ("later", "moved") or open_gap:
            outbox.failed.append(pending)
            return
        self.waiting -= 1
        hold = pending.sent.hold
        if state in ("recorded", "known"):
            if verdict.refused != b"[]":
                pending.commit.refused = decode_events(bytes(verdict.refused))
            pending.commit.settle()
            if verdict.over:
                self._drop(hold)
            return
        pending.commit.settle(PartLost(hold.step_run_id))
        self.let_go(hold)

    def let_go(self, hold: Hold) -> None:
        """The part is not ours any more: what still runs of it is stopped, and says nothing."""
        if self._drop(hold) is not None:
            self.wire.chore(
                self.worker.let_go(hold.execution_id, hold.step_run_id, hold.part, hold.epoch)
            )

    def _drop(self, hold: Hold) -> HeldPart | None:
        held = self.holds.pop(hold, None)
        if held is not None:
            self.news()
        return held

    # ── new parts ────────────────────────────────────────────────────────────────────────────

    def begin(self, server: str, answer: Answer) -> None:
        later: dict[str, list[tuple[Command, str | None]]] = {}
        ahead = int(time.time() * 1000) - answer.clock if answer.clock else 0
        for grant in answer.grants:
            command = in_our_time(decode(bytes(grant.command), Command), ahead)
            self.wire.questions.where[command.execution_id] = server
            beat = grant.beat or grant.ttl / BEATS
            self.holds[hold_of(command)] = HeldPart(server, beat)
            if beat < IDLE_BEAT:
                self.hurried.set()
            plan = self._plans.find(grant.digest)
            if plan is None:
                later.setdefault(grant.digest, []).append((command, grant.folder))
            else:
                self._begin_one(command, plan, grant.folder)
        for digest, parts in later.items():
            self.wire.chore(self._begin_later(digest, parts))

    def _begin_one(self, command: Command, plan: Plan, folder: str | None) -> None:
        held = self.holds.get(hold_of(command))
        if held is None:
            return
        if held.stopped:
            self._fail(command, CANCELLED)
        else:
            held.begun = True
            self.worker.begin(command, plan, folder)

    async def _begin_later(self, digest: str, parts: list[tuple[Command, str | None]]) -> None:
        """Parts of a playbook that this worker has not seen yet."""
        try:
            plan = await self._plan_under(digest, [hold_of(command) for command, _ in parts])
        except Exception as fault:  # whatever it is: what was granted ends with a reason
            for command, _ in parts:
                if _is_lost(fault):
                    self.let_go(hold_of(command))
                else:
                    self._fail(command, _unread(fault))
            return
        # NEXT-8: an order that came while the playbook was on its way is heard first.
        held = [self.holds.get(hold_of(command)) for command, _ in parts]
        for server in {one.server for one in held if one is not None}:
            await self.wire.renew(server)
        for command, folder in parts:
            self._begin_one(command, plan, folder)

    async def _plan_under(self, digest: str, holds: list[Hold]) -> Plan:
        """Asked for under one lease after the other: one that was lost costs no other its part."""

        async def text() -> str:
            wanted = PlaybookWanted(digest)
            return str((await self.wire.questions.ask(wanted, holds.pop()))["text"])

        while True:
            try:
                return await self._plans.by(digest, text)
            except ServerRefused as refused:  # perhaps what others asked for under their lease
                if not (holds and _is_lost(refused)):
                    raise


def _is_lost(fault: Exception) -> bool:
    """The server knows another holder, or the part has ended: that is nobody's failure."""
    return isinstance(fault, ServerRefused) and fault.code == "refused"


def _unread(fault: Exception) -> dict[str, Any]:
    if isinstance(fault, NoetlError):
        return make_error("not_found", KNOWN.masked(str(fault)))
    return error_of(fault)


def hold_of(command: Command) -> Hold:
    return Hold(command.execution_id, command.step_run_id, command.part, command.epoch)


def in_our_time(command: Command, ahead: int) -> Command:
    """Pauses end by this worker's clock, which may be an hour ahead of the server's (T9)."""
    if not ahead or not (command.due or command.waits):
        return command
    due = {key: time + ahead for key, time in command.due.items()}
    for wait in command.waits.values():
        wait.since += ahead
    return msgspec.structs.replace(command, due=due)
