"""
What a worker and its servers say to each other, and how: together, in order, until it is heard.

Reports of all parts are sent together, a few calls at a time. What was not answered is said again,
so that nothing is lost while a server, the database or the line is away; the numbers of reports
make saying it twice harmless. Leases are renewed beside that, at whichever server decides for the
execution now.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec

from noetl import __version__
from noetl.errors import ServerAway, ServerRefused
from noetl.ports.event_log import PrintedLine
from noetl.ports.link import SPEAKS, Answer, Call, Hold, Link
from noetl.worker.outbox import FIRST_PAUSE, LONGEST_PAUSE, WINDOW, Bundle, Outbox, Pending
from noetl.worker.questions import Questions

if TYPE_CHECKING:
    from noetl.worker.session import WireSession


ASKED_AT_ONCE = 16
"""Executions whose owner is asked for at the same time."""


MOST_LINES = 10_000
"""Printed lines that wait for a server; then the oldest are dropped, and counted."""


SOON = 0.3
"""Seconds that a printed line waits for a call at the most, while its server is there."""


class Wire:
    """The calls of one worker to all its servers; what the answers mean is its session's to say."""

    def __init__(
        self,
        session: "WireSession",
        link: Link,
        me: Call,
        holds: Collection[Hold],
        says: Callable[[str], None],
    ) -> None:
        self._session = session
        self.link = link
        self.me = me
        self._says = says
        self.questions = Questions(link, me, holds)
        self.outboxes: dict[str, Outbox] = {}
        self.offered = 0
        """Free slots that calls under way have promised."""
        self._lines: deque[PrintedLine] = deque()
        """What tasks printed, for whoever decides for its execution when it is sent."""
        self.lines_dropped = 0
        self._chores: set[asyncio.Task[Any]] = set()
        self.refusal = ""
        """Why the servers want nothing of this worker (another version)."""

    def outbox(self, server: str) -> Outbox:
        found = self.outboxes.get(server)
        if found is None:
            found = self.outboxes[server] = Outbox(server)
        return found

    def send_soon(self, outbox: Outbox) -> None:
        if not outbox.sending:
            outbox.sending = True
            asyncio.get_running_loop().call_soon(self._send, outbox)

    def keep(self, line: PrintedLine) -> None:
        """A line that a task printed goes with the next call, or soon (ports.event_log.Printed)."""
        if not self._lines:
            asyncio.get_running_loop().call_later(SOON, self._send_lines)
        self._lines.append(line)
        while len(self._lines) > MOST_LINES:
            self._lines.popleft()
            self.lines_dropped += 1
            if self.lines_dropped % MOST_LINES == 1:
                self._says(f"no server takes printed lines: {self.lines_dropped} dropped so far")

    def _send_lines(self) -> None:
        """A task that takes long is heard while it runs, though nothing is reported."""
        for server in self.owed_lines():
            outbox = self.outboxes.get(server or "")
            if outbox is not None and not outbox.blocked:
                self.chore(self.exchange(outbox, self.bundle(outbox, [], 0)))
        if self._lines:
            asyncio.get_running_loop().call_later(SOON, self._send_lines)

    def owed_lines(self) -> set[str | None]:
        """The servers that printed lines wait for."""
        return {self.questions.server_of(line.execution_id) for line in self._lines}

    def _lines_for(self, server: str) -> list[PrintedLine]:
        """A server that has died takes none with it: they go to whoever decides by then."""
        mine: list[PrintedLine] = []
        others: deque[PrintedLine] = deque()
        for line in self._lines:
            owner = self.questions.server_of(line.execution_id)
            (mine if owner in (server, None) else others).append(line)
        self._lines = others
        return mine

    async def read(self, *_: Any, **__: Any) -> list[PrintedLine]:
        """Printed lines are kept by the servers."""
        return []

    def _send(self, outbox: Outbox) -> None:
        outbox.sending = False
        while outbox.has_news and not outbox.blocked:
            pending = outbox.take_reports()
            self.chore(self.exchange(outbox, self.bundle(outbox, pending, len(pending) + 1)))

    def bundle(
        self, outbox: Outbox, pending: list[Pending], wanted: int, *, beat: bool = False
    ) -> Bundle:
        room = self._session.free
        free = min(wanted, room)
        returns, outbox.returns = outbox.returns, []
        call = msgspec.structs.replace(
            self.me,
            free=free,
            room=room,
            clock=int(time.time() * 1000),
            reports=[one.sent for one in pending],
            holds=self._held_from(outbox.server) if beat else None,
            returns=returns,
            lines=self._lines_for(outbox.server),
        )
        outbox.under_way += 1
        self.offered += free
        outbox.idle.clear()
        return Bundle(call, pending)

    def _held_from(self, server: str) -> list[Hold]:
        return [hold for hold, held in self._session.holds.items() if held.server == server]

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
                self._session.news()
            outbox.failed.extend(bundle.pending)
            outbox.returns.extend(bundle.call.returns)
            self._lines.extendleft(reversed(bundle.call.lines))
        finally:
            outbox.under_way -= 1
            self.offered -= bundle.call.free
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

    def _hear(self, outbox: Outbox, bundle: Bundle, answer: Answer) -> None:
        refusal = answer.refusal or misheard(answer)
        if refusal:
            self.refusal = refusal
            outbox.failed.extend(bundle.pending)
            self._session.news()
            return
        if all(verdict.state not in ("gap", "later") for verdict in answer.verdicts):
            outbox.pause = FIRST_PAUSE
        for pending, verdict in zip(bundle.pending, answer.verdicts, strict=True):
            self._session.judge(outbox, pending, verdict)
        for scratch in answer.tidy:
            self.chore(self._session.worker.forget(scratch))
        if answer.grants:
            self._session.begin(outbox.server, answer)
        if answer.lost or answer.stops or answer.moved:
            self.chore(self._session.hear_leases(answer))
        self._session.news()

    async def _recover(self, outbox: Outbox) -> None:
        """Wait a little, learn who decides for what now, and say again what was not heard."""
        await asyncio.sleep(outbox.pause)
        await outbox.idle.wait()
        outbox.pause = min(2 * outbox.pause, LONGEST_PAUSE)
        outbox.put_back()
        await self.follow({pending.sent.hold.execution_id for pending in outbox.reports})
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
        call = msgspec.structs.replace(self.me, holds=holds, room=self._session.free, clock=clock)
        try:
            answer = await self.link.call(server, call)
        except Exception:  # the next one comes soon
            await self.follow({hold.execution_id for hold in holds})
            return
        finally:
            outbox.beats -= 1
        await self._session.hear_leases(answer)

    async def follow(self, execution_ids: set[str]) -> None:
        """Reports and leases go where their executions are decided for."""
        asking = asyncio.Semaphore(ASKED_AT_ONCE)

        async def ask(execution_id: str) -> None:
            async with asking:
                standing = await self.questions.standing(execution_id)
            if standing.finished:
                for hold in [
                    one for one in self._session.holds if one.execution_id == execution_id
                ]:
                    self._session.let_go(hold)
            if standing.server is not None:
                self._move(execution_id, standing.server)

        await asyncio.gather(*map(ask, execution_ids))

    def _move(self, execution_id: str, server: str) -> None:
        moved = False
        for hold, held in self._session.holds.items():
            if hold.execution_id == execution_id and held.server != server:
                held.server, moved = server, True
        for outbox in list(self.outboxes.values()):
            if outbox.server != server:
                self.outbox(server).reports.extend(outbox.take_out({execution_id}))
        if moved:
            self.chore(self.renew(server))
        self.send_soon(self.outbox(server))

    def chore(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: "asyncio.Task[Any]") -> None:
        self._chores.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._says(f"a fault of NoETL itself: {task.exception()!r}")


def misheard(answer: Answer) -> str:
    """Why an answer cannot be understood, or nothing."""
    if answer.speaks == SPEAKS:
        return ""
    return (
        f"server {answer.server} speaks protocol {answer.speaks}, this worker (version "
        f"{__version__}) speaks {SPEAKS}: install one version everywhere, servers first"
    )
