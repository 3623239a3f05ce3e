"""
Who writes into the home, and when: one at a time, many decisions in one commit.

Whatever waits when a commit returns goes into the next one; no timer. What one turn of the event
loop asks for is handed over at its end, in one piece. A thread writes, so that the loop goes on
while the disk is busy. When a caller says that nothing else waits, and
that is so, the commit is made at once on the loop's own thread, which saves two changes of thread.

`_unsettled` belongs to the loop's thread: it counts what was queued and not yet answered. While it
is 0 the writing thread does not touch the connection, for its answer is the last thing it does.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from noetl.adapters.sqlite.batch import Overtaken, write_decisions, write_one, write_printed
from noetl.adapters.sqlite.database import patiently
from noetl.adapters.sqlite.faults import OF_THE_WORLD, OVER_SOON, unavailable
from noetl.adapters.sqlite.statements import SQL
from noetl.errors import LogUnavailable, NoetlError
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, PrintedLine

T = TypeVar("T")
Job = Callable[[apsw.Connection], Any]
Forget = str
"""An execution whose refusal ends here in the queue."""
Entry = tuple[Decision | Job | Forget | None, "asyncio.Future[Any] | Commit"]
Answers = dict[int, Any]

BEGIN, COMMIT = SQL["begin"], SQL["commit"]
MOST_PER_COMMIT = 4096
"""So that no transaction keeps other processes waiting for long."""
MOST_LINES_WAITING = 1000


class Writer:
    """The one hand that writes. All methods are called on the thread of the event loop."""

    def __init__(self, connection: apsw.Connection, folder: Path, first: Job) -> None:
        self.connection = connection
        self.folder = folder
        self._cursor = connection.cursor()
        self._first: Job | None = first
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[list[Entry]] = SimpleQueue()
        self._gathered: list[Entry] = []
        self._lines: deque[PrintedLine] = deque()
        self._refused: dict[str, type[NoetlError]] = {}
        self._unsettled = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def append(self, decision: Decision, *, alone: bool = False) -> Commit:
        """Write one decision; the answer comes after its commit."""
        if decision.expected == 0 and decision.row is None:
            raise ValueError(f"the first decision of {decision.execution_id} comes without its row")
        commit = Commit()
        if not (alone and self._unsettled == 0 and self._write_now(decision, commit)):
            self._put(decision, commit)
        return commit

    async def transact(self, job: Callable[[apsw.Connection], T]) -> T:
        """Do the job in a transaction, after all that was queued before it."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._put(job, future)
        return await future

    def forget(self, execution_id: str) -> None:
        """End the refusal of an execution's decisions, for those that are queued from now on."""
        if self._unsettled == 0:
            self._refused.pop(execution_id, None)
        else:
            self._put(execution_id, self._loop.create_future())

    def keep(self, line: PrintedLine) -> None:
        """Write a printed line with the next commit."""
        self._lines.append(line)
        if len(self._lines) >= MOST_LINES_WAITING and self._unsettled == 0:
            self._put(_nothing, self._loop.create_future())

    async def flush(self) -> None:
        """Write the printed lines that wait."""
        if self._lines and not self._closed:
            await self.transact(_nothing)

    async def close(self) -> None:
        """Write what is queued and let go of the file."""
        if self._closed:
            return
        # Lines that a full disk has no room for are no reason to keep the file open.
        with suppress(LogUnavailable):
            await self.flush()
        if self._thread is not None or self._gathered:
            future: asyncio.Future[None] = self._loop.create_future()
            self._put(None, future)
            self._closed = True
            await future
            assert self._thread is not None, "what was handed over has its thread"
            self._thread.join()
        self._closed = True
        self.connection.close()

    def _write_now(self, decision: Decision, commit: Commit) -> bool:
        """Commit on this thread, unless another process is writing: the loop must not wait."""
        if self._closed:
            return False
        if self._write_plainly(decision):
            commit.settle()
            return True
        batch: list[Entry] = [(decision, commit)]
        lines = self._take_lines()
        try:
            answers = self._write(batch, lines)
        except OVER_SOON:
            self._lines.extendleft(reversed(lines))
            return False
        _settle(batch, answers)
        return True

    def _write_plainly(self, decision: Decision) -> bool:
        """The usual lone decision, in half the time; False if it takes more than that."""
        if (
            decision.row is not None
            or decision.snapshot is not None
            or decision.notes
            or self._refused
            or self._lines
            or self._first is not None
        ):
            return False
        cursor = self._cursor
        try:
            cursor.execute(BEGIN)
            write_one(cursor, decision)
            cursor.execute(COMMIT)
        except Exception:  # whatever it is, `_write` meets it again and says what it means
            self._roll_back()
            return False
        return True

    def _put(
        self, what: Decision | Job | Forget | None, future: "asyncio.Future[Any] | Commit"
    ) -> None:
        if self._closed:
            closed = LogUnavailable(f"the home {self.folder} is closed")
            if isinstance(future, Commit):
                future.settle(closed)
            else:
                future.set_exception(closed)
            return
        self._unsettled += 1
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((what, future))

    def _hand_over(self) -> None:
        """Give the thread all that this turn of the event loop has asked for, in one piece."""
        gathered, self._gathered = self._gathered, []
        if not gathered:
            return
        self._queue.put(gathered)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="noetl-log", daemon=True)
            self._thread.start()

    def _answered(self, batch: list[Entry], answers: Answers) -> None:
        self._unsettled -= len(batch)
        _settle(batch, answers)

    # ── on the writing thread ────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        stopping = False
        while not stopping:
            batch = self._queue.get()
            while len(batch) < MOST_PER_COMMIT and not self._queue.empty():
                batch += self._queue.get_nowait()
            stopping = batch[-1][0] is None
            lines = self._take_lines()
            answers = patiently(lambda: self._write(batch, lines))  # noqa: B023
            try:
                self._loop.call_soon_threadsafe(self._answered, batch, answers)
            except RuntimeError:  # the loop is closed: nobody waits for the answers any more
                return

    # ── on the thread whose turn it is ───────────────────────────────────────────────────────

    def _take_lines(self) -> list[PrintedLine]:
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def _write(self, batch: list[Entry], lines: list[PrintedLine]) -> Answers:
        """Write a batch in one transaction. Raises only OVER_SOON; nothing is written then."""
        try:
            try:
                return self._transaction(batch, lines, look_first=False)
            except Overtaken:
                self._roll_back()
                return self._transaction(batch, lines, look_first=True)
        except OVER_SOON:
            self._roll_back()
            raise
        except Exception as error:
            self._roll_back()
            if len(batch) == 1 or isinstance(error, OF_THE_WORLD):
                return self._give_up(batch, error)
        # One of them is bad: each for itself, so that the others are not harmed by it.
        answers: Answers = {}
        for number, entry in enumerate(batch):
            alone = patiently(lambda: self._write([entry], []))  # noqa: B023
            if 0 in alone:
                answers[number] = alone[0]
        return answers

    def _transaction(
        self, batch: list[Entry], lines: list[PrintedLine], look_first: bool
    ) -> Answers:
        answers: Answers = {}
        refused = dict(self._refused)
        connection = self.connection
        connection.execute(BEGIN)
        if self._first is not None:
            self._first(connection)
        if lines:
            write_printed(connection, lines)
        for kind, group in groupby(enumerate(batch), _kind_of):
            if kind is Decision:
                decisions: Any = ((number, entry[0]) for number, entry in group)
                answers |= write_decisions(connection, decisions, refused, look_first)
                continue
            for number, (what, _) in group:
                if isinstance(what, str):
                    refused.pop(what, None)
                elif callable(what):
                    answers[number] = _answer_of(what, connection)
        connection.execute(COMMIT)
        self._first = None
        self._refused = refused
        return answers

    def _give_up(self, batch: list[Entry], error: Exception) -> Answers:
        answers: Answers = {}
        for number, (what, _) in enumerate(batch):
            if isinstance(what, Decision):
                self._refused[what.execution_id] = LogUnavailable
                answers[number] = unavailable(error, self.folder, what.execution_id)
            elif isinstance(what, str):
                self._refused.pop(what, None)
            elif what is not None:
                answers[number] = unavailable(error, self.folder)
        return answers

    def _roll_back(self) -> None:
        # SQLite has rolled back by itself after some errors.
        if not self.connection.get_autocommit():
            self.connection.execute(SQL["rollback"])


def _nothing(_: apsw.Connection) -> None:
    """The job of a commit that only carries printed lines."""


def _kind_of(numbered: tuple[int, Entry]) -> type:
    return Decision if type(numbered[1][0]) is Decision else object


def _answer_of(job: Job, connection: apsw.Connection) -> Any:
    """A job says no before it writes anything, so its refusal harms nobody."""
    try:
        return job(connection)
    except NoetlError as refusal:
        return refusal


def _settle(batch: list[Entry], answers: Answers) -> None:
    """Tell everybody, on the loop's thread."""
    for number, (_, waiting) in enumerate(batch):
        answer = answers.get(number) if answers else None
        refusal = answer if isinstance(answer, NoetlError) else None
        if isinstance(waiting, Commit):
            waiting.settle(refusal)
        elif waiting.done():
            continue
        elif refusal is not None:
            waiting.set_exception(refusal)
        else:
            waiting.set_result(answer)
