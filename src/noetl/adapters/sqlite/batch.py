"""
What one transaction writes: decisions of many executions, checked and then written in bulk.

Where an execution stands is what its last decision says (decision 0053). Whether all of a batch
stand where they must, and nobody else owns one (promise 4), is asked in a few statements. If not,
`Overtaken` is raised, and the caller rolls back and comes again with `look_first`, which finds out
which ones to refuse.
"""

import time
from typing import Any

import apsw
from msgspec.structs import asdict, astuple

from noetl.adapters.batching import DecisionBatch, DecisionChain
from noetl.adapters.sqlite.statements import SQL, in_bulk
from noetl.ports.event_log import Decision, ExecutionRow, PrintedLine

COLUMNS = ExecutionRow.__struct_fields__
STANDS_AT, APPEND_ONE, HOLDS = SQL["stands_at"], SQL["append_one"], SQL["holds_place"]
HAS_ROOM, TAKE_PLACE = SQL["has_room"], SQL["take_place"]


class Overtaken(Exception):
    """Some execution of the batch does not stand where its decision says."""


def write_batch(
    connection: apsw.Connection,
    batch: DecisionBatch,
    me: str,
    standing: dict[str, int],
    *,
    look_first: bool,
) -> None:
    """
    Write what may be written; what was too late is told to the batch. `standing` is where some
    executions are known to stand, which nobody else owns; it is moved along.
    """
    if look_first:
        _drop_overtaken(connection, batch, me)
    _advance(connection, batch, me, standing)
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
        if chain.row is None or chain.row.owner == me:
            standing[name] = chain.last
        else:
            standing.pop(name, None)


def append_one(cursor: apsw.Cursor, decision: Decision) -> None:
    """A lone decision that changes no row, of an execution that is known to stand there."""
    first, last = decision.expected + 1, decision.last
    cursor.execute(APPEND_ONE, (decision.execution_id, first, last, decision.at, decision.events))


def check_one(connection: apsw.Connection, decision: Decision, me: str) -> None:
    """That the execution stands where its decision says, and is nobody else's."""
    if _stands_at(connection, decision.execution_id, me) != (decision.expected, True):
        raise Overtaken


def write_printed(connection: apsw.Connection, lines: list[PrintedLine]) -> None:
    """What tasks printed since the last commit."""
    _write(connection, "keep_printed", [astuple(line) for line in lines])


def drop_notes(connection: apsw.Connection, notes: list[tuple[Any, ...]]) -> None:
    """Orders that are obeyed, or need not be."""
    _write(connection, "drop_notes", notes)


def _stands_at(connection: apsw.Connection, name: str, me: str) -> tuple[int, bool]:
    """The `seq` of an execution (0: there is none), and whether this process may move it."""
    stored = connection.execute(STANDS_AT, (name,)).fetchone()
    owner, seq = (None, 0) if stored is None else stored
    return seq, owner in (None, me)


def _has_place(connection: apsw.Connection, name: str, chain: DecisionChain, me: str) -> bool:
    """Whether what it rests on is there, or there is room for the claim it brings (LIMIT-3)."""
    if not chain.holds or connection.execute(HOLDS, (name,)).fetchone() is not None:
        return True
    if chain.claim is None:
        return False
    given = asdict(chain.claim)
    room: Any = connection.execute(HAS_ROOM, given).fetchone()
    if room[0] and not chain.passes:
        connection.execute(TAKE_PLACE, given | {"now": int(time.time() * 1000), "process": me})
    return bool(room[0])


def _drop_overtaken(connection: apsw.Connection, batch: DecisionBatch, me: str) -> None:
    for name, chain in list(batch.chains.items()):
        seq, mine = _stands_at(connection, name, me)
        if seq != chain.expected or not mine or not _has_place(connection, name, chain, me):
            batch.too_late(name, seq)


def _advance(
    connection: apsw.Connection, batch: DecisionBatch, me: str, standing: dict[str, int]
) -> None:
    begun: list[tuple[Any, ...]] = []
    changed: list[tuple[Any, ...]] = []
    moved: list[tuple[Any, ...]] = []
    for name, chain in batch.chains.items():
        if chain.row is None:
            if standing.get(name) != chain.expected:
                moved.append((name, chain.expected, me))
        elif chain.expected == 0:
            begun.append(tuple(chain.columns()))
            if not _has_place(connection, name, chain, me):
                raise Overtaken
        else:
            changed.append((*chain.columns(), chain.expected, me))
    for statement, rows in (("start_executions", begun), ("change_executions", changed)):
        before = connection.total_changes()
        _write(connection, statement, rows)
        if rows and connection.total_changes() - before != len(rows):
            raise Overtaken
    as_expected = 0
    for text, parameters in in_bulk("standing_executions", moved):
        found: Any = connection.execute(text, parameters).fetchall()
        as_expected += found[0][0]
    if as_expected != len(moved):
        raise Overtaken


def _write(connection: apsw.Connection, name: str, rows: list[tuple[Any, ...]]) -> None:
    for statement, parameters in in_bulk(name, rows):
        connection.execute(statement, parameters)
