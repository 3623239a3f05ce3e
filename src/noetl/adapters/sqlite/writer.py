"""
Who writes into the home: a thread, so that the loop goes on while the disk is busy.

When a caller says that nothing else waits, and that is so, the commit is made at once on the
loop's own thread, which saves two changes of thread. While `_unsettled` is 0 the writing thread
does not touch the connection, for its answer is the last thing it does.

Every commit to the file, of any connection, changes its version as this one sees it under the write
lock. While it is the one that the last commit here has left, executions stand where that left them,
and belong to whom they did: nothing need be read to be sure (decision 0053).
"""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import apsw

from noetl.adapters.batching import (
    MOST_PER_COMMIT,
    BatchWriter,
    DecisionBatch,
    Entry,
    Job,
    batches,
)
from noetl.adapters.sqlite.batch import Overtaken, append_one, check_one, write_batch, write_printed
from noetl.adapters.sqlite.faults import OF_THE_WORLD, OVER_SOON, unavailable
from noetl.adapters.sqlite.locks import Locks
from noetl.adapters.sqlite.statements import SQL
from noetl.errors import LogUnavailable, NoetlError
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, PrintedLine

T = TypeVar("T")
BEGIN, COMMIT = SQL["begin"], SQL["commit"]
MOST_STANDING = 10_000
"""Executions of which it is remembered where they stand."""


class SqliteWriter(BatchWriter):
    """The one hand that writes. All methods are called on the thread of the event loop."""

    def __init__(
        self, connection: apsw.Connection, folder: Path, me: str, first: Job, locks: Locks
    ) -> None:
        super().__init__(str(folder))
        self._me = me
        self._locks = locks
        self.connection = connection
        self.folder = folder
        self._cursor = connection.cursor()
        self._first: Job | None = first
        self._standing: dict[str, int] = {}
        """The `seq` of executions that this process may move, true at this version of the file."""
        self._version = -1
        self._queue: SimpleQueue[list[Entry] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def transact(self, job: Callable[[apsw.Connection], T]) -> T:
        """Do the job in a transaction, after all that was queued before it."""
        answer: T = await self._ask(job)
        return answer

    async def close(self) -> None:
        """Write what is queued and let go of the file."""
        if self._closed:
            return
        await self._finish()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        self.connection.close()

    def _write_now(self, decision: Decision, commit: Commit) -> bool:
        """Commit on this thread, unless another process is writing: the loop must not wait."""
        if self._closed:
            return False
        if self._write_plainly(decision):
            commit.settle()
            return True
        lines = self._take_lines()
        try:
            written = self._write([(decision, commit)], lines)
        except OVER_SOON:
            self._lines.extendleft(reversed(lines))
            return False
        for batch in written:
            batch.settle()
        return True

    def _write_plainly(self, decision: Decision) -> bool:
        """The usual lone decision, in half the time; False if it takes more than that."""
        if (
            decision.row is not None
            or decision.snapshot is not None
            or decision.notes
            or decision.releases
            or self._refused
            or self._lines
            or self._first is not None
        ):
            return False
        cursor, name = self._cursor, decision.execution_id
        try:
            cursor.execute(BEGIN)
            standing = self._still_standing()
            if standing.get(name) != decision.expected:
                check_one(self.connection, decision, self._me)
            append_one(cursor, decision)
            cursor.execute(COMMIT)
        except Exception:  # whatever it is, `_write` meets it again and says what it means
            self._roll_back()
            return False
        standing[name] = decision.last
        self._version = self.connection.data_version()
        return True

    def _hand_over(self, gathered: list[Entry]) -> None:
        self._queue.put(gathered)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="noetl-log", daemon=True)
            self._thread.start()

    def _answered(self, written: list[DecisionBatch], count: int) -> None:
        self._unsettled -= count
        for batch in written:
            batch.settle()

    # ── on the writing thread ────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        while (entries := self._queue.get()) is not None:
            while len(entries) < MOST_PER_COMMIT and not self._queue.empty():
                entries += self._queue.get_nowait() or []
            lines = self._take_lines()
            written = self._written(entries, lines)
            try:
                self._loop.call_soon_threadsafe(self._answered, written, len(entries))
            except RuntimeError:  # the loop is closed: nobody waits for the answers any more
                return

    # ── on the thread whose turn it is ───────────────────────────────────────────────────────

    def _written(self, entries: list[Entry], lines: list[PrintedLine]) -> list[DecisionBatch]:
        """Write it as soon as no other process is in the way, or give it up."""
        try:
            return self._locks.patiently(lambda: self._write(entries, lines))
        except LogUnavailable as locked:
            return self._give_up(entries, locked)

    def _write(self, entries: list[Entry], lines: list[PrintedLine]) -> list[DecisionBatch]:
        """Write it in one transaction. Raises only OVER_SOON; nothing is written then."""
        try:
            try:
                return self._transaction(entries, lines, look_first=False)
            except Overtaken:
                self._roll_back()
                return self._transaction(entries, lines, look_first=True)
        except OVER_SOON:
            self._roll_back()
            raise
        except Exception as error:
            self._roll_back()
            if lines and not isinstance(error, OF_THE_WORLD):
                # What a task printed never shares the fate of decisions (promise 7).
                written = self._write(entries, [])
                self._write_lines(lines)
                return written
            if len(entries) == 1 or isinstance(error, OF_THE_WORLD):
                return self._give_up(entries, error)
        # One of them is bad: each for itself, so that the others are not harmed by it.
        written = []
        for entry in entries:
            written += self._written([entry], [])
        return written

    def _write_lines(self, lines: list[PrintedLine]) -> None:
        """Printed lines by themselves: one that cannot be kept is dropped, and no other."""
        try:
            self.connection.execute(BEGIN)
            write_printed(self.connection, lines)
            self.connection.execute(COMMIT)
        except OVER_SOON:
            self._roll_back()
            self._lines.extendleft(reversed(lines))
        except Exception:
            self._roll_back()
            half = len(lines) // 2
            for some in (lines[:half], lines[half:]) if half else ():
                self._write_lines(some)

    def _transaction(
        self, entries: list[Entry], lines: list[PrintedLine], look_first: bool
    ) -> list[DecisionBatch]:
        refused = dict(self._refused)
        connection = self.connection
        connection.execute(BEGIN)
        standing = self._still_standing()
        if self._first is not None:
            self._first(connection)
        if lines:
            write_printed(connection, lines)
        written: list[DecisionBatch] = []
        for batch in batches(entries, refused):
            write_batch(connection, batch, self._me, standing, look_first=look_first)
            batch.answers = [_answer_of(job, connection) for job, _ in batch.jobs]
            if batch.jobs:
                standing.clear()  # whatever they did
            written.append(batch)
        connection.execute(COMMIT)
        self._version = connection.data_version()
        self._first = None
        self._refused = refused
        return written

    def _give_up(self, entries: list[Entry], error: Exception) -> list[DecisionBatch]:
        given_up: list[DecisionBatch] = []
        for batch in batches(entries, self._refused):
            batch.give_up(partial(self._fault, error))
            given_up.append(batch)
        return given_up

    def _fault(self, error: Exception, name: str | None) -> LogUnavailable:
        return error if isinstance(error, LogUnavailable) else unavailable(error, self.folder, name)

    def _still_standing(self) -> dict[str, int]:
        """What is known of executions, asked under the write lock."""
        standing = self._standing
        if self.connection.data_version() != self._version or len(standing) > MOST_STANDING:
            standing.clear()
        return standing

    def _roll_back(self) -> None:
        self._standing.clear()
        # SQLite has rolled back by itself after some errors.
        if not self.connection.get_autocommit():
            self.connection.execute(SQL["rollback"])


def _answer_of(job: Job, connection: apsw.Connection) -> Any:
    """A job says no before it writes anything, so its refusal harms nobody."""
    try:
        return job(connection)
    except NoetlError as refusal:
        return refusal
