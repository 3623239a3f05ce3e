"""
The servers as a worker of another process sees them: its reports go out, their answers come in.

Reports of all parts are sent together, a few calls at a time; each answer brings verdicts, orders
and new parts (`ports.link`). What was not answered is said again, so that nothing is lost while a
server, the database or the line is away; the numbers of reports make saying it twice harmless.
"""

import asyncio
from collections.abc import Callable, Iterable
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
from noetl.ports.desk import Taken
from noetl.ports.event_log import PrintedLine
from noetl.ports.link import (
    Answer,
    Call,
    CancelWanted,
    ChildWanted,
    EndWanted,
    Grant,
    Hold,
    Link,
    PlaybookWanted,
    Sent,
    Told,
    Verdict,
)
from noetl.worker.outbox import FIRST_PAUSE, LONGEST_PAUSE, Batch, Line, Pending
from noetl.worker.part import PartLost
from noetl.worker.questions import Questions
from noetl.worker.worker import Worker

MOST_WAITING = 2_000
"""Reports without a verdict before parts wait for them (back-pressure)."""

MOST_GAPS = 20
PATIENT = 20.0
"""Seconds that one question about a child's end waits."""

BEATS = 3
"""How often a lease is renewed in its time: two may fail."""


class Held(msgspec.Struct):
    """A part that this worker has."""

    server: str
    beat: float
    """Seconds between two renewals."""
    sent: int = 0
    """Events reported on it."""


class Session:
    """Desk for a worker whose servers are elsewhere; `shift` keeps it in work."""

    worker: Worker
    immediate = False

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
        self.lines: dict[str, Line] = {}
        self.holds: dict[Hold, Held] = {}
        self._plans: dict[str, Plan] = {}
        self.waiting = 0
        self._number = 0
        self._patient = 0
        """Legs that wait for a child: they take no place (TASK-8)."""
        self._chores: set[asyncio.Task[Any]] = set()
        self.changed = asyncio.Event()
        self.hungry = False
        """Whether there was a free place when the shift looked last."""
        self.draining = False
        self.refusal = ""
        """Why the servers want nothing of this worker (another version)."""

    # ── what parts ask (ports.desk.Desk) ──────────────────────────────────────────────────────

    def take(self, execution_id: str, report: Report) -> Taken:
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
        line = self.line(held.server)
        line.outbox.append(pending)
        self._send_soon(line)
        return Taken(report.events, pending.commit)

    def hand_back(self, command: Command) -> None:
        """TASK-8: the part waits long; any worker may take it up when it is due."""
        hold = hold_of(command)
        held = self._drop(hold)
        if held is not None:
            line = self.line(held.server)
            line.returns.append(hold)
            self._send_soon(line)

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
        self.take(command.execution_id, report)

    def keep(self, line: PrintedLine) -> None:
        """A line that a task printed goes with the next call (ports.event_log.Printed)."""
        server = self.questions.server_of(line.execution_id)
        if server is not None:
            self.line(server).lines.append(Told(**msgspec.structs.asdict(line)))

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
        begun: dict[str, Any] = await self.questions.ask(wanted, parent_execution_id)
        if not wait:
            return begun
        self._patient += 1
        self.news()
        try:
            return await self._end_of(execution_id)
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

    def line(self, server: str) -> Line:
        line = self.lines.get(server)
        if line is None:
            line = self.lines[server] = Line(server)
        return line

    @property
    def free(self) -> int:
        if self.draining:
            return 0
        offered = sum(line.offered for line in self.lines.values())
        return max(0, self.me.slots - len(self.holds) + self._patient - offered)

    def news(self) -> None:
        """Wake whoever minds the shift, if what he waits for may have happened."""
        if self.draining or self.refusal or (self.free > 0) != self.hungry:
            self.changed.set()

    def _send_soon(self, line: Line) -> None:
        if not line.sending:
            line.sending = True
            asyncio.get_running_loop().call_soon(self._send, line)

    def _send(self, line: Line) -> None:
        line.sending = False
        while line.has_news and not line.blocked:
            pending = line.take_reports()
            self.chore(self.exchange(line, self.batch(line, pending, len(pending) + 1)))

    def batch(
        self, line: Line, pending: list[Pending], wanted: int, *, beat: bool = False
    ) -> Batch:
        free = min(wanted, self.free)
        returns, line.returns = line.returns, []
        lines, line.lines = line.lines, []
        holds = [hold for hold, held in self.holds.items() if held.server == line.server]
        call = msgspec.structs.replace(
            self.me,
            free=free,
            reports=[one.sent for one in pending],
            holds=holds if beat else None,
            returns=returns,
            lines=lines,
        )
        line.under_way += 1
        line.offered += free
        line.idle.clear()
        return Batch(call, pending, lines)

    async def exchange(self, line: Line, batch: Batch) -> Answer | None:
        """One call and its answer; what was not heard is kept for the next try."""
        answer = None
        try:
            answer = await self.link.call(line.server, batch.call)
        except Exception as fault:  # whatever it is: what was not heard is said again
            if not isinstance(fault, ServerAway):
                self._says(f"a call to server {line.server} failed: {fault}")
            if isinstance(fault, ServerRefused):
                self.refusal = str(fault)
                self.changed.set()
            line.failed.extend(batch.pending)
            line.returns.extend(batch.call.returns)
            line.lines.extend(batch.lines)
        finally:
            line.under_way -= 1
            line.offered -= batch.call.free
        if answer is not None:
            self._hear(line, batch, answer)
        if line.under_way == 0:
            line.idle.set()
        if line.failed and line.under_way == 0 and not line.recovering:
            line.recovering = True
            self.chore(self._recover(line))
        else:
            self._send(line)
        return answer

    async def _recover(self, line: Line) -> None:
        """Wait a little, learn who owns what now, and say again what was not heard."""
        await asyncio.sleep(line.pause)
        line.pause = min(2 * line.pause, LONGEST_PAUSE)
        line.put_back()
        moved: dict[str, str] = {}
        for execution_id in {pending.sent.hold.execution_id for pending in line.outbox}:
            owner = await self.questions.owner(execution_id)
            if owner is not None and owner != line.server:
                moved[execution_id] = owner
        self._move(line, moved)
        line.recovering = False
        for other in {line.server, *moved.values()}:
            self._send(self.line(other))

    def _move(self, line: Line, moved: dict[str, str]) -> None:
        """Reports and leases follow their executions to other servers."""
        self.questions.where.update(moved)
        for hold, held in self.holds.items():
            held.server = moved.get(hold.execution_id, held.server)
        staying = [one for one in line.outbox if one.sent.hold.execution_id not in moved]
        leaving = [one for one in line.outbox if one.sent.hold.execution_id in moved]
        line.outbox.clear()
        line.outbox.extend(staying)
        for pending in leaving:
            self.line(moved[pending.sent.hold.execution_id]).outbox.append(pending)

    # ── hearing ──────────────────────────────────────────────────────────────────────────────

    def _hear(self, line: Line, batch: Batch, answer: Answer) -> None:
        if answer.refusal:
            self.refusal = answer.refusal
            line.failed.extend(batch.pending)
            self.news()
            return
        line.pause = FIRST_PAUSE
        for pending, verdict in zip(batch.pending, answer.verdicts, strict=True):
            self._judge(line, pending, verdict)
        for hold in answer.lost:
            self._let_go(hold)
        for stop in answer.stops:
            self.chore(self.worker.cancel(stop.execution_id, stop.step_run_id))
        for scratch in answer.tidy:
            self.chore(self.worker.forget(scratch))
        if answer.grants:
            self._begin(line.server, answer.grants)
        self.news()

    def _judge(self, line: Line, pending: Pending, verdict: Verdict) -> None:
        state = verdict.state
        if state == "gap":
            pending.gaps += 1
        if state in ("later", "moved") or (state == "gap" and pending.gaps < MOST_GAPS):
            line.failed.append(pending)
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

    def _drop(self, hold: Hold) -> Held | None:
        held = self.holds.pop(hold, None)
        if held is not None:
            self.news()
        return held

    # ── new parts ─────────────────────────────────────────────────────────────────────────────

    def _begin(self, server: str, grants: Iterable[Grant]) -> None:
        later: dict[str, list[tuple[Command, str | None]]] = {}
        for grant in grants:
            command: Command = decode(bytes(grant.command), Command)
            self.questions.where[command.execution_id] = server
            self.holds[hold_of(command)] = Held(server, grant.beat or grant.ttl / BEATS)
            plan = self._plans.get(grant.digest)
            if plan is None:
                later.setdefault(grant.digest, []).append((command, grant.folder))
            else:
                self.worker.begin(command, plan, grant.folder)
        for digest, parts in later.items():
            self.chore(self._begin_later(digest, parts))

    async def _begin_later(self, digest: str, parts: list[tuple[Command, str | None]]) -> None:
        """Legs of a playbook that this worker has not seen yet."""
        try:
            if digest not in self._plans:
                found = await self.questions.ask(PlaybookWanted(digest), parts[0][0].execution_id)
                self._plans[digest] = self._plan_of(found["text"])
        except NoetlError as wrong:
            error = {"kind": "not_found", "message": str(wrong), "retryable": False}
            for command, _ in parts:
                self._fail(command, error)
            return
        for command, folder in parts:
            if hold_of(command) in self.holds:
                self.worker.begin(command, self._plans[digest], folder)

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
