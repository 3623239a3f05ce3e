"""
What one transaction writes: decisions of many executions, checked and then written in bulk.

The seq that an execution must stand at, and that nobody else owns it (promise 4), are conditions of
the statement that advances it. If all are advanced, as nearly always, that was the check. If one is
not, `Overtaken` is raised, and the caller rolls back and comes again with `look_first`, which finds
out which ones to refuse.
"""

from typing import Any

import apsw
from msgspec.structs import astuple

from noetl.adapters.batching import DecisionBatch
from noetl.adapters.sqlite.statements import SQL, in_bulk
from noetl.ports.event_log import Decision, ExecutionRow, PrintedLine

COLUMNS = ExecutionRow.__struct_fields__
ADVANCE_ONE, APPEND_ONE = SQL["advance_one"], SQL["append_one"]


class Overtaken(Exception):
    """Some execution of the batch does not stand where its decision says."""


def write_batch(
    connection: apsw.Connection, batch: DecisionBatch, me: str, *, look_first: bool
) -> None:
    """Write what may be written; what was too late is told to the batch."""
    if look_first:
        _drop_overtaken(connection, batch, me)
    _advance(connection, batch, me)
    chains = batch.chains
    rows = [
        (name, decision.expected + 1, decision.last, decision.at, decision.events)
        for name, chain in chains.items()
        for decision in chain.decisions
    ]
    _write(connection, "append_decisions", rows)
    snapshots = [(name, *chain.snapshot) for name, chain in chains.items() if chain.snapshot]
    _write(connection, "keep_snapshots", snapshots)
    drop_notes(connection, [(number,) for chain in chains.values() for number in chain.notes])
    for name, chain in chains.items():
        for holder in chain.releases:
            connection.execute(SQL["release_claim"], (name, holder))


def write_one(cursor: apsw.Cursor, decision: Decision, me: str) -> None:
    """A lone decision that changes no row: nothing to gather, two plain statements."""
    name, expected, last, at = decision.execution_id, decision.expected, decision.last, decision.at
    cursor.execute(ADVANCE_ONE, (last, at, name, expected, me))
    if cursor.connection.changes() != 1:
        raise Overtaken
    cursor.execute(APPEND_ONE, (name, expected + 1, last, at, decision.events))


def write_printed(connection: apsw.Connection, lines: list[PrintedLine]) -> None:
    """What tasks printed since the last commit."""
    _write(connection, "keep_printed", [astuple(line) for line in lines])


def drop_notes(connection: apsw.Connection, notes: list[tuple[Any, ...]]) -> None:
    """Orders that are obeyed, or need not be."""
    _write(connection, "drop_notes", notes)


def _drop_overtaken(connection: apsw.Connection, batch: DecisionBatch, me: str) -> None:
    for name, chain in list(batch.chains.items()):
        stored = connection.execute(SQL["stands_at"], (name,)).fetchone()
        stands_at, owner = (0, None) if stored is None else stored
        there = (stored is None) == (chain.expected == 0)
        if stands_at != chain.expected or not there or owner not in (None, me):
            batch.too_late(name, stands_at)


def _advance(connection: apsw.Connection, batch: DecisionBatch, me: str) -> None:
    begun: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    moved: list[tuple[Any, ...]] = []
    for name, chain in batch.chains.items():
        if chain.row is None:
            moved.append((name, chain.expected, chain.last, chain.at, me))
        elif chain.expected == 0:
            begun.append(tuple(chain.columns()))
        else:
            changed.append((*chain.columns(), chain.expected, me))
    for statement, rows in (
        ("start_executions", begun),
        ("change_executions", changed),
        ("advance_executions", moved),
    ):
        before = connection.total_changes()
        _write(connection, statement, rows)
        if rows and connection.total_changes() - before != len(rows):
            raise Overtaken


def _write(connection: apsw.Connection, name: str, rows: list[tuple[Any, ...]]) -> None:
    for statement, parameters in in_bulk(name, rows):
        connection.execute(statement, parameters)
