"""
The servers as a worker of another process sees them: its reports go out, their answers come in.

Reports of all parts are sent together, a few calls at a time; each answer brings verdicts, orders
and new parts (`ports.link`). What was not answered is said again, so that nothing is lost while a
server, the database or the line is away; the numbers of reports make saying it twice harmless.
Leases are renewed beside that, at whichever server decides for the execution now.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.control.dispatch import Command
from noetl.errors import NoetlError, ServerAway, ServerRefused
from noetl.masking import KNOWN
from noetl.messages import events as e
from noetl.messages.codec import decode, decode_events, encode, encode_events
from noetl.messages.requests import Report
from noetl.playbook.plan import Plan
from noetl.ports.commit import Commit, committed
from noetl.ports.event_log import PrintedLine
from noetl.ports.link import (
    Answer,
    Call,
    CancelWanted,
    ChildWanted,
    EndWanted,
    Hold,
    Link,
    PlaybookWanted,
    Sent,
    Stop,
    Told,
    Verdict,
)
from noetl.ports.session import PartLost, Taken
from noetl.worker.outbox import FIRST_PAUSE, LONGEST_PAUSE, WINDOW, Bundle, Outbox, Pending
from noetl.worker.part import CANCELLED
from noetl.worker.questions import Questions
from noetl.worker.worker import Worker

MOST_WAITING = 2_000
"""Reports without a verdict before parts wait for them (back-pressure)."""

MOST_GAPS = 20
PATIENT = 20.0
"""Seconds that one question about a child's end waits."""

BEATS = 3
"""How often a lease is renewed in its time: two may fail."""

LARGE = 65_536
"""Characters of a playbook above which its plan is made beside the event loop."""


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
        self.link = link
        self.me = me
        self._plan_of = plan_of
        self._says = says
        self.questions = Questions(link)
        self.outboxes: dict[str, Outbox] = {}
        self.holds: dict[Hold, HeldPart] = {}
        self._plans: dict[str, Plan] = {}
        self.waiting = 0
        self._number = 0
        self._patient = 0
        """Parts that wait for a child: they take no place (TASK-8)."""
        self._chores: set[asyncio.Task[Any]] = set()
        self.changed = asyncio.Event()
        self.hungry = False
        """Whether there was a free place when the work loop looked last."""
        self.draining = False
        self.refusal = ""
        """Why the servers want nothing of this worker (another version)."""

    # ── what parts ask (ports.session.Session) ───────────────────────────────────────────────

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
        outbox = self.outbox(held.server)
        outbox.reports.append(pending)
        self._send_soon(outbox)
        return Taken(None, pending.commit)

    def hand_back(self, command: Command) -> None:
        """TASK-8: the part waits long; any worker may take it up when it is due."""
        hold = hold_of(command)
        held = self._drop(hold)
        if held is not None:
            outbox = self.outbox(held.server)
            outbox.returns.append(hold)
            self._send_soon(outbox)

    def far_ahead(self) -> bool:
        return self.waiting > MOST_WAITING

    def broken(self, command: Command, fault: BaseException) -> None:
        """A part fell to a fault of ours: its run fails honestly, the others go on (promise 7)."""
        said = KNOWN.masked(f"{type(fault).__name__}: {fault}")
        self._fail(command, {"kind": "internal", "message": said, "retryable": False})

    def _fail(self, command: Command, error: dict[str, Any]) -> None:
        held = self.holds.get(hold_of(command))
        if held is None:
            return
        failed = e.StepFailed(step=command.step, step_run_id=command.step_run_id, error=error)
        report = Report(
            step_run_id=command.step_run_id,
            part=command.part,
            epoch=command.epoch,
            worker=self.me.worker,
            events=[failed],
            after=held.sent,
        )
        self.report(command.execution_id, report)

    def keep(self, line: PrintedLine) -> None:
        """A line that a task printed goes with the next call (ports.event_log.Printed)."""
        server = self.questions.server_of(line.execution_id)
        if server is not None:
            self.outbox(server).lines.append(Told(**msgspec.structs.asdict(line)))

    async def read(self, *_: Any, **__: Any) -> list[PrintedLine]:
        """Printed lines are kept by the servers."""
        return []

    async def child(
        self,
        *,
        execution_id: str,
        parent_execution_id: str,
        parent_id: str,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        wanted = ChildWanted(
            execution_id=execution_id,
            parent_execution_id=parent_execution_id,
            parent_id=parent_id,
            path=path,
            version=version,
            payload=msgspec.Raw(encode(payload)),
        )
        self._patient += 1
        self.news()
        try:
            begun: dict[str, Any] = await self.questions.ask(wanted, parent_execution_id)
            return await self._end_of(execution_id) if wait else begun
        except asyncio.CancelledError:
            if not self.worker.stopping:
                reason = "the parent was cancelled"
                await self.questions.ask(
                    CancelWanted(execution_id=execution_id, reason=reason), execution_id
                )
                await self._end_of(execution_id)
            raise
        finally:
            self._patient -= 1

    async def _end_of(self, execution_id: str) -> dict[str, Any]:
        while True:
            wanted = EndWanted(execution_id=execution_id, wait=PATIENT)
            found: dict[str, Any] = await self.questions.ask(wanted, execution_id)
            if "ctx" in found:
                return found

    # ── sending ──────────────────────────────────────────────────────────────────────────────

    def outbox(self, server: str) -> Outbox:
        found = self.outboxes.get(server)
        if found is None:
            found = self.outboxes[server] = Outbox(server)
        return found

    @property
    def free(self) -> int:
        if self.draining:
            return 0
        offered = sum(outbox.offered for outbox in self.outboxes.values())
        return max(0, self.me.slots - len(self.holds) + self._patient - offered)

    def news(self) -> None:
        """Wake the work loop, if what it waits for may have happened."""
        if self.draining or self.refusal or (self.free > 0) != self.hungry:
            self.changed.set()

    def _send_soon(self, outbox: Outbox) -> None:
        if not outbox.sending:
            outbox.sending = True
            asyncio.get_running_loop().call_soon(self._send, outbox)

    def _send(self, outbox: Outbox) -> None:
        outbox.sending = False
        while outbox.has_news and not outbox.blocked:
            pending = outbox.take_reports()
            self.chore(self.exchange(outbox, self.bundle(outbox, pending, len(pending) + 1)))

    def bundle(
        self, outbox: Outbox, pending: list[Pending], wanted: int, *, beat: bool = False
    ) -> Bundle:
        free = min(wanted, self.free)
        returns, outbox.returns = outbox.returns, []
        lines, outbox.lines = outbox.lines, []
        call = msgspec.structs.replace(
            self.me,
            free=free,
            room=self.free,
            clock=int(time.time() * 1000),
            reports=[one.sent for one in pending],
            holds=self._held_from(outbox.server) if beat else None,
            returns=returns,
            lines=lines,
        )
        outbox.under_way += 1
        outbox.offered += free
        outbox.idle.clear()
        return Bundle(call, pending, lines)

    def _held_from(self, server: str) -> list[Hold]:
        return [hold for hold, held in self.holds.items() if held.server == server]

    async def exchange(self, outbox: Outbox, bundle: Bundle) -> Answer | None:
        """One call and its answer; what was not heard is kept for the next try."""
        answer = None
        try:
            answer = await self.link.call(outbox.server, bundle.call)
        except Exception as fault:  # whatever it is: what was not heard is said again
            if not isinstance(fault, ServerAway):
                self._says(f"a call to server {outbox.server} failed: {fault}")
            if isinstance(fault, ServerRefused):
                self.refusal = str(fault)
                self.changed.set()
            outbox.failed.extend(bundle.pending)
            outbox.returns.extend(bundle.call.returns)
            outbox.lines.extend(bundle.lines)
        finally:
            outbox.under_way -= 1
            outbox.offered -= bundle.call.free
        if answer is not None:
            self._hear(outbox, bundle, answer)
        if outbox.under_way == 0:
            outbox.idle.set()
        if (answer is None or outbox.failed) and not outbox.recovering:
            outbox.recovering = True
            self.chore(self._recover(outbox))
        elif not outbox.recovering:
            self._send(outbox)
        return answer

    async def _recover(self, outbox: Outbox) -> None:
        """Wait a little, learn who decides for what now, and say again what was not heard."""
        await asyncio.sleep(outbox.pause)
        await outbox.idle.wait()
        outbox.pause = min(2 * outbox.pause, LONGEST_PAUSE)
        outbox.put_back()
        await self._follow({pending.sent.hold.execution_id for pending in outbox.reports})
        outbox.recovering = False
        for other in list(self.outboxes.values()):
            self._send(other)

    async def renew(self, server: str) -> None:
        """
        Say which parts are held, and follow those whose executions have another owner now.

        Nothing else waits for it, and it waits for nothing: a line that recovers, a worker that
        drains and one that has nothing to report keep their leases alike.
        """
        outbox, holds = self.outbox(server), self._held_from(server)
        if not holds or outbox.beats >= WINDOW:
            return
        outbox.beats += 1
        clock = int(time.time() * 1000)
        call = msgspec.structs.replace(self.me, holds=holds, room=self.free, clock=clock)
        try:
            answer = await self.link.call(server, call)
        except Exception:  # the next one comes soon
            await self._follow({hold.execution_id for hold in holds})
            return
        finally:
            outbox.beats -= 1
        await self._hear_leases(answer)

    async def _follow(self, execution_ids: set[str]) -> None:
        """Reports and leases go where their executions are decided for."""
        for execution_id in execution_ids:
            standing = await self.questions.standing(execution_id)
            if standing.finished:
                for hold in [one for one in self.holds if one.execution_id == execution_id]:
                    self._let_go(hold)
            if standing.server is not None:
                self._move(execution_id, standing.server)

    def _move(self, execution_id: str, server: str) -> None:
        moved = False
        for hold, held in self.holds.items():
            if hold.execution_id == execution_id and held.server != server:
                held.server, moved = server, True
        for outbox in list(self.outboxes.values()):
            if outbox.server != server:
                self.outbox(server).reports.extend(outbox.take_out({execution_id}))
        if moved:
            self.chore(self.renew(server))
        self._send_soon(self.outbox(server))

    # ── hearing ──────────────────────────────────────────────────────────────────────────────

    def _hear(self, outbox: Outbox, bundle: Bundle, answer: Answer) -> None:
        if answer.refusal:
            self.refusal = answer.refusal
            outbox.failed.extend(bundle.pending)
            self.news()
            return
        outbox.pause = FIRST_PAUSE
        for pending, verdict in zip(bundle.pending, answer.verdicts, strict=True):
            self._judge(outbox, pending, verdict)
        for scratch in answer.tidy:
            self.chore(self.worker.forget(scratch))
        if answer.grants:
            self._begin(outbox.server, answer)
        self.chore(self._hear_leases(answer))
        self.news()

    async def _hear_leases(self, answer: Answer) -> None:
        for hold in answer.lost:
            self._let_go(hold)
        for stop in answer.stops:
            self._stop(stop)
        if answer.moved:
            await self._follow({hold.execution_id for hold in answer.moved})

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
            self.chore(self.worker.cancel(stop.execution_id, step_run_id))

    def _judge(self, outbox: Outbox, pending: Pending, verdict: Verdict) -> None:
        state = verdict.state
        if state == "gap":
            pending.gaps += 1
        if state in ("later", "moved") or (state == "gap" and pending.gaps < MOST_GAPS):
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
        self._let_go(hold)

    def _let_go(self, hold: Hold) -> None:
        """The part is not ours any more: what still runs of it is stopped, and says nothing."""
        if self._drop(hold) is not None:
            self.chore(
                self.worker.let_go(hold.execution_id, hold.step_run_id, hold.part, hold.epoch)
            )

    def _drop(self, hold: Hold) -> HeldPart | None:
        held = self.holds.pop(hold, None)
        if held is not None:
            self.news()
        return held

    # ── new parts ────────────────────────────────────────────────────────────────────────────

    def _begin(self, server: str, answer: Answer) -> None:
        later: dict[str, list[tuple[Command, str | None]]] = {}
        ahead = int(time.time() * 1000) - answer.clock if answer.clock else 0
        for grant in answer.grants:
            command = in_our_time(decode(bytes(grant.command), Command), ahead)
            self.questions.where[command.execution_id] = server
            self.holds[hold_of(command)] = HeldPart(server, grant.beat or grant.ttl / BEATS)
            plan = self._plans.get(grant.digest)
            if plan is None:
                later.setdefault(grant.digest, []).append((command, grant.folder))
            else:
                self._begin_one(command, plan, grant.folder)
        for digest, parts in later.items():
            self.chore(self._begin_later(digest, parts))

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
            if digest not in self._plans:
                found = await self.questions.ask(PlaybookWanted(digest), parts[0][0].execution_id)
                self._plans[digest] = await self._planned(found["text"])
        except NoetlError as wrong:
            error = {"kind": "not_found", "message": str(wrong), "retryable": False}
            for command, _ in parts:
                self._fail(command, error)
            return
        for command, folder in parts:
            self._begin_one(command, self._plans[digest], folder)

    async def _planned(self, text: str) -> Plan:
        if len(text) < LARGE:
            return self._plan_of(text)
        return await asyncio.to_thread(self._plan_of, text)

    def chore(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._chores.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._says(f"a fault of NoETL itself: {task.exception()!r}")


def hold_of(command: Command) -> Hold:
    return Hold(command.execution_id, command.step_run_id, command.part, command.epoch)


def in_our_time(command: Command, ahead: int) -> Command:
    """Pauses end by this worker's clock, which may be an hour ahead of the server's (T9)."""
    if not command.due or not ahead:
        return command
    due = {key: time + ahead for key, time in command.due.items()}
    return msgspec.structs.replace(command, due=due)
