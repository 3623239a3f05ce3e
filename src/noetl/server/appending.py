"""
Decisions on their way into the log.

Bodies are durable before the events that refer to them (EVT-4), and the order of an execution's
decisions is kept: one whose bodies are being stored holds up the later ones of its execution, and
nobody else.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from noetl.control.execution import Execution
from noetl.expression.failure import shortened
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, EventLog, ExecutionRow
from noetl.ports.result_store import ResultStore
from noetl.server.active import ActiveExecution, Held
from noetl.server.replay import frozen
from noetl.server.report import handled_words

Spawn = Callable[[Any], None]


class Appender:
    """Stores bodies, then appends; counts what has no answer yet."""

    def __init__(self, log: EventLog, results: ResultStore, me: str, spawn: Spawn) -> None:
        self._log = log
        self._results = results
        self._me = me
        self._spawn = spawn
        self.uncommitted = 0

    def append(
        self,
        active: ActiveExecution,
        expected: int,
        at: int,
        text: bytes,
        *,
        shown: bool,
        alone: bool,
        notes: tuple[int, ...],
        releases: tuple[str, ...],
        holds: bool,
    ) -> Commit:
        """The answer comes with the commit. `alone`: nothing else waits, commit at once."""
        execution = active.execution
        active.tail += 1
        snapshot = None
        if active.due_for_snapshot and not execution.finished:
            snapshot, active.tail = frozen(execution), 0
        active.ended_at = at if execution.finished else None
        decision = Decision(
            execution_id=execution.execution_id,
            expected=expected,
            last=execution.seq,
            at=at,
            events=text,
            row=self.row(active, at) if shown else None,
            snapshot=snapshot,
            notes=notes,
            releases=releases,
            holds=holds,
            claim=active.claim if holds else None,
        )
        self.uncommitted += 1
        active.uncommitted += 1
        if execution.bodies or active.held:
            commit = self._hold(active, decision, execution)
        else:
            commit = self._log.append(decision, alone=alone)
        active.latest = commit
        commit.add_done_callback(active.settle)
        return commit

    def _hold(self, active: ActiveExecution, decision: Decision, execution: Execution) -> Commit:
        held = Held(decision, list(execution.bodies.values()), Commit())
        execution.bodies.clear()
        active.held.append(held)
        if len(active.held) == 1:
            self._spawn(self._store(active))
        return held.commit

    async def _store(self, active: ActiveExecution) -> None:
        while active.held:
            held = active.held[0]
            try:
                for body in held.bodies:
                    await self._results.put(held.decision.execution_id, body)
            except Exception as fault:  # a store that refuses: the decision never happened
                self.refuse_held(active, fault)
                return
            if not active.held or active.held[0] is not held:
                return  # refused meanwhile
            active.held.popleft()
            appended = self._log.append(held.decision)
            appended.add_done_callback(partial(_pass_on, held.commit))

    def refuse_held(self, active: ActiveExecution, fault: BaseException) -> None:
        """What waits for its bodies is not written any more."""
        held = list(active.held)
        active.held.clear()
        for one in held:
            one.commit.settle(fault)

    def row(self, active: ActiveExecution, at: int) -> ExecutionRow:
        """What lists show of the execution from now on."""
        execution = active.execution
        error = execution.error
        return ExecutionRow(
            execution_id=execution.execution_id,
            path=execution.path,
            digest=execution.digest,
            status=execution.status,
            started_at=active.started_at,
            updated_at=at,
            version=active.version,
            finished_at=at if execution.finished else None,
            parent_execution_id=execution.parent_execution_id,
            origin_execution_id=execution.origin_execution_id,
            origin_seq=execution.origin_seq,
            owner=None if execution.finished else self._me,
            error=told(note_of(execution) if error is None else str(error.get("message", ""))),
            asks=1 if active.asked and not execution.finished else None,
            seq=execution.seq,
        )


def told(error: str | None) -> str | None:
    """An error as lists show it: it may quote a payload of a megabyte, and they have 200 rows."""
    return None if error is None else shortened(error)


def note_of(execution: Execution) -> str | None:
    """Of one that completed: what went wrong on the way, and of handled failures the first."""
    if execution.status != "completed":
        return None
    words = ", ".join(handled_words(execution.errors_passed, execution.failures_handled))
    first = execution.first_handled
    return f"{words}: {first.error.get('message', '')}" if first is not None else words or None


def _pass_on(commit: Commit, appended: Commit) -> None:
    commit.settle(appended.exception())
