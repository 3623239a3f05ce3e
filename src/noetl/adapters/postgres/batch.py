"""
What one statement writes: decisions of many executions, each chain on its own condition.

The seq that an execution must stand at is the condition of the part of the statement that advances
it, and its decisions are written only if it was: the statement itself tells which were too late.
"""

from collections.abc import Iterable
from typing import Any

from msgspec.structs import astuple

from noetl.adapters.batching import DecisionBatch, DecisionChain
from noetl.adapters.postgres.claiming import claim_columns
from noetl.adapters.postgres.columns import storable, transposed

WRITTEN, SNAPSHOT, PRINTED, NOTE, RELEASE = 19, 3, 7, 2, 2
"""How many columns the parts of the statement take."""
BETWEEN = "\x1f"
"""Stands in no id and, unescaped, in no JSON."""


def lone(batch: DecisionBatch) -> tuple[Any, ...] | None:
    """The parameters of the usual lone decision; None if there is more to write."""
    if len(batch.chains) != 1 or batch.lines:
        return None
    (chain,) = batch.chains.values()
    if len(chain.decisions) != 1 or chain.more:
        return None
    one = chain.decisions[0]
    return one.execution_id, one.expected, one.last, one.at, one.events.decode()


def moved(batch: DecisionBatch) -> list[str] | None:
    """The parameters of a batch that changes no row; None if there is more to write."""
    if batch.lines or any(chain.more for chain in batch.chains.values()):
        return None
    return _moved(batch, batch.chains.values())


def everything(batch: DecisionBatch) -> list[Any]:
    """The parameters of any batch."""
    chains = batch.chains
    rows = [
        (*map(storable, chain.columns()), chain.expected)
        for chain in chains.values()
        if chain.row is not None
    ]
    snapshots = [(name, *chain.snapshot) for name, chain in chains.items() if chain.snapshot]
    lines = [tuple(map(storable, astuple(line))) for line in batch.lines]
    notes = [(name, number) for name, chain in chains.items() for number in chain.notes]
    releases = [(name, holder) for name, chain in chains.items() for holder in chain.releases]
    holding = [name for name, chain in chains.items() if chain.holds]
    return [
        *_moved(batch, (chain for chain in chains.values() if chain.row is None)),
        *transposed(rows, WRITTEN),
        *transposed(snapshots, SNAPSHOT),
        *transposed(lines, PRINTED),
        *transposed(notes, NOTE),
        *transposed(releases, RELEASE),
        holding,
        *claim_columns(chains),
    ]


def _moved(batch: DecisionBatch, chains: Iterable[DecisionChain]) -> list[str]:
    ends = [(chain.expected, chain.decisions[-1]) for chain in chains]
    decisions = [one for chain in batch.chains.values() for one in chain.decisions]
    return [
        _texts([end.execution_id for _, end in ends]),
        _numbers([expected for expected, _ in ends]),
        _numbers([end.last for _, end in ends]),
        _numbers([end.at for _, end in ends]),
        _texts([one.execution_id for one in decisions]),
        _numbers([one.expected + 1 for one in decisions]),
        _numbers([one.last for one in decisions]),
        _numbers([one.at for one in decisions]),
        _texts([one.events.decode() for one in decisions]),
    ]


def _texts(column: list[str]) -> str:
    joined = BETWEEN.join(column)
    # A split must give back just what was joined; of nothing it makes no text at all.
    if column and (joined == "" or joined.count(BETWEEN) != len(column) - 1):
        raise ValueError("expected ids and JSON, found nothing or the character U+001F")
    return joined


def _numbers(column: list[int]) -> str:
    return ",".join(map(str, column))
