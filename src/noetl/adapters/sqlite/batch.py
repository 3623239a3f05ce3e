"""
What one transaction writes: decisions of many executions, checked and then written in bulk.

The seq that an execution must stand at is the condition of the statement that advances it. If all
are advanced, as nearly always, that was the check. If one is not, `Overtaken` is raised, and
the caller rolls back and comes again with `look_first`, which finds out which ones to refuse.
"""

from collections.abc import Iterable
from typing import Any

import apsw
from msgspec.structs import astuple, fields

from noetl.adapters.sqlite.statements import SQL, in_bulk
from noetl.errors import NoetlError, VersionConflict
from noetl.ports.event_log import Decision, ExecutionRow, PrintedLine

COLUMNS = ExecutionRow.__struct_fields__
ADVANCE_ONE, APPEND_ONE = SQL["advance_one"], SQL["append_one"]


UPDATED_AT = [field.name for field in fields(ExecutionRow)].index("updated_at")


class Overtaken(Exception):
    """Some execution of the batch does not stand where its decision says."""


class Chain:
    """The decisions of one execution in one batch, each on top of the one before."""

    __slots__ = ("at", "decisions", "expected", "last", "numbers", "row", "snapshot")

    def __init__(self, number: int, decision: Decision) -> None:
        self.numbers = [number]
        self.decisions = [decision]
        self.expected = decision.expected
        self.last = decision.last
        self.at = decision.at
        self.row = decision.row
        self.snapshot = None if decision.snapshot is None else (decision.last, decision.snapshot)

    def grow(self, number: int, decision: Decision) -> None:
        """Add the next decision of the same execution."""
        self.numbers.append(number)
        self.decisions.append(decision)
        self.last = decision.last
        self.at = decision.at
        if decision.row is not None:
            self.row = decision.row
        if decision.snapshot is not None:
            self.snapshot = (decision.last, decision.snapshot)


def overtaken(execution_id: str, expected: int, found: int) -> VersionConflict:
    """The refusal of a decision that comes too late."""
    return VersionConflict(
        f"execution {execution_id} stands at {found}, not at {expected}: another writer was "
        "first; load it again and decide again"
    )


def write_decisions(
    connection: apsw.Connection,
    numbered: Iterable[tuple[int, Decision]],
    refused: dict[str, type[NoetlError]],
    look_first: bool,
) -> dict[int, NoetlError]:
    """Write what may be written; the answer holds the refused ones by their number."""
    answers: dict[int, NoetlError] = {}
    chains: dict[str, Chain] = {}
    for number, decision in numbered:
        execution_id = decision.execution_id
        chain = chains.get(execution_id)
        if execution_id in refused:
            answers[number] = _still_refused(decision, refused[execution_id])
        elif chain is None:
            chains[execution_id] = Chain(number, decision)
        elif chain.last == decision.expected:
            chain.grow(number, decision)
        else:
            refused[execution_id] = VersionConflict
            answers[number] = overtaken(execution_id, decision.expected, chain.last)
    if look_first:
        _drop_overtaken(connection, chains, refused, answers)
    _advance(connection, chains)
    _append(connection, chains)
    return answers


def write_one(cursor: apsw.Cursor, decision: Decision) -> None:
    """A lone decision that changes no row: nothing to gather, two plain statements."""
    name, expected, last, at = decision.execution_id, decision.expected, decision.last, decision.at
    cursor.execute(ADVANCE_ONE, (last, at, name, expected))
    if cursor.connection.changes() != 1:
        raise Overtaken
    cursor.execute(APPEND_ONE, (name, expected + 1, last, at, decision.events))


def write_printed(connection: apsw.Connection, lines: list[PrintedLine]) -> None:
    """What tasks printed since the last commit."""
    for statement, parameters in in_bulk("keep_printed", [astuple(line) for line in lines]):
        connection.execute(statement, parameters)


def drop_notes(connection: apsw.Connection, notes: list[tuple[int]]) -> None:
    """Orders that are obeyed, or need not be."""
    for statement, parameters in in_bulk("drop_notes", notes):
        connection.execute(statement, parameters)


def _still_refused(decision: Decision, kind: type[NoetlError]) -> NoetlError:
    return kind(
        f"execution {decision.execution_id}: an earlier decision was not written, so the one "
        f"after {decision.expected} is not either; load it again and decide again"
    )


def _drop_overtaken(
    connection: apsw.Connection,
    chains: dict[str, Chain],
    refused: dict[str, type[NoetlError]],
    answers: dict[int, NoetlError],
) -> None:
    for execution_id, chain in list(chains.items()):
        stored = connection.execute(SQL["stands_at"], (execution_id,)).fetchone()
        stands_at = 0 if stored is None else stored[0]
        if stands_at == chain.expected and (stored is None) == (chain.expected == 0):
            continue
        del chains[execution_id]
        refused[execution_id] = VersionConflict
        for number, decision in zip(chain.numbers, chain.decisions, strict=True):
            answers[number] = overtaken(execution_id, decision.expected, stands_at)


def _columns(chain: Chain) -> tuple[Any, ...]:
    """The row without its `seq`; later decisions of the batch have moved `updated_at` on."""
    assert chain.row is not None, "only a chain with a row has columns"
    columns = astuple(chain.row)
    if chain.row is chain.decisions[-1].row:
        return columns[:-1]
    return (*columns[:UPDATED_AT], chain.at, *columns[UPDATED_AT + 1 : -1])


def _advance(connection: apsw.Connection, chains: dict[str, Chain]) -> None:
    begun: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    moved: list[tuple[Any, ...]] = []
    for execution_id, chain in chains.items():
        if chain.row is None:
            moved.append((execution_id, chain.expected, chain.last, chain.at))
        elif chain.expected == 0:
            begun.append((*_columns(chain), chain.last))
        else:
            changed.append((*_columns(chain), chain.last, chain.expected))
    for name, rows in (
        ("start_executions", begun),
        ("change_executions", changed),
        ("advance_executions", moved),
    ):
        before = connection.total_changes()
        for statement, parameters in in_bulk(name, rows):
            connection.execute(statement, parameters)
        if rows and connection.total_changes() - before != len(rows):
            raise Overtaken


def _append(connection: apsw.Connection, chains: dict[str, Chain]) -> None:
    rows = [
        (decision.execution_id, decision.expected + 1, decision.last, decision.at, decision.events)
        for chain in chains.values()
        for decision in chain.decisions
    ]
    for statement, parameters in in_bulk("append_decisions", rows):
        connection.execute(statement, parameters)
    snapshots = [(name, *chain.snapshot) for name, chain in chains.items() if chain.snapshot]
    for statement, parameters in in_bulk("keep_snapshots", snapshots):
        connection.execute(statement, parameters)
    notes = [
        (number,)
        for chain in chains.values()
        for decision in chain.decisions
        for number in decision.notes
    ]
    drop_notes(connection, notes)
