"""
What one commit writes: decisions of many executions, each chain on its own condition.

The seq that an execution must stand at is the condition of the part of the statement that advances
it, and its decisions are written only if it was: the statement itself tells which were too late.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import astuple, fields

from noetl.errors import NoetlError, VersionConflict
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision, ExecutionRow, PrintedLine

UPDATED_AT = [field.name for field in fields(ExecutionRow)].index("updated_at")
WRITTEN, SNAPSHOT, PRINTED, NOTE = 13, 3, 7, 2
"""How many columns the parts of the statement take."""
BETWEEN = "\x1f"
"""Stands in no id and, unescaped, in no JSON."""
Refused = dict[str, type[NoetlError]]


class Chain:
    """The decisions of one execution in one batch, each on top of the one before."""

    __slots__ = ("commits", "decisions", "notes", "row", "snapshot")

    def __init__(self) -> None:
        self.decisions: list[Decision] = []
        self.commits: list[Commit] = []
        self.row: ExecutionRow | None = None
        self.snapshot: tuple[int, bytes] | None = None
        self.notes: list[int] = []

    def grow(self, decision: Decision, commit: Commit) -> None:
        """Add the next decision of the execution."""
        self.decisions.append(decision)
        self.commits.append(commit)
        if decision.row is not None:
            self.row = decision.row
        if decision.snapshot is not None:
            self.snapshot = (decision.last, decision.snapshot)
        self.notes += decision.notes

    @property
    def more(self) -> bool:
        """Whether it changes more than where the execution stands."""
        return self.row is not None or self.snapshot is not None or bool(self.notes)

    @property
    def expected(self) -> int:
        return self.decisions[0].expected

    @property
    def last(self) -> int:
        return self.decisions[-1].last

    def columns(self) -> tuple[Any, ...]:
        """The row as it is after the last decision, then the seq that it must have before."""
        assert self.row is not None, "only a chain with a row has columns"
        columns = [storable(value) for value in astuple(self.row)]
        end = self.decisions[-1]
        if self.row is not end.row:  # later decisions have moved `updated_at` on
            columns[UPDATED_AT] = end.at
        return (*columns[:-1], end.last, self.expected)


class Batch:
    """Decisions that share a commit, and the answers to all that wait for it."""

    def __init__(self, refused: Refused) -> None:
        self.chains: dict[str, Chain] = {}
        self.lines: list[PrintedLine] = []
        self.count = self.size = 0
        self.number = 0
        self._refused = refused
        self._commits: list[Commit] = []
        self._faults: dict[Commit, NoetlError] = {}

    def add(self, decision: Decision, commit: Commit) -> None:
        """Take the decision in, unless it is already known that it cannot be written."""
        self._commits.append(commit)
        self.count += 1
        name = decision.execution_id
        chain = self.chains.get(name)
        if name in self._refused:
            self._faults[commit] = still_refused(decision, self._refused[name])
        elif chain is not None and chain.decisions[-1].last != decision.expected:
            self._refused[name] = VersionConflict
            self._faults[commit] = overtaken(decision, chain.last)
        else:
            if chain is None:
                chain = self.chains[name] = Chain()
            chain.grow(decision, commit)
            self.size += len(decision.events)

    def parts(self) -> "Iterator[Batch]":
        """Each by itself: one of them is bad, and the others must not be harmed by it."""
        for name, chain in self.chains.items():
            part = Batch(self._refused)
            part.chains = {name: chain}
            part._faults = self._faults
            yield part
        if self.lines:
            part = Batch(self._refused)
            part.lines = self.lines
            yield part

    def too_late(self, name: str, stands_at: int | None) -> None:
        """Another writer was first; None where it is not known any more how far it came."""
        self._refused[name] = VersionConflict
        for decision, commit in self._chained(name):
            self._faults[commit] = overtaken(decision, stands_at)

    def give_up(self, name: str, fault: NoetlError) -> None:
        """The decisions of an execution cannot be written."""
        self._refused[name] = type(fault)
        for _, commit in self._chained(name):
            self._faults[commit] = fault

    def settle(self) -> None:
        """Tell everybody, in the order of the calls."""
        for commit in self._commits:
            commit.settle(self._faults.get(commit) if self._faults else None)

    def lone(self) -> tuple[Any, ...] | None:
        """The parameters of the usual lone decision; None if there is more to write."""
        if len(self.chains) != 1 or self.lines:
            return None
        (chain,) = self.chains.values()
        if len(chain.decisions) != 1 or chain.more:
            return None
        one = chain.decisions[0]
        return one.execution_id, one.expected, one.last, one.at, one.events.decode()

    def moved(self) -> list[str] | None:
        """The parameters of a batch that changes no row; None if there is more to write."""
        if self.lines or any(chain.more for chain in self.chains.values()):
            return None
        return self._moved(self.chains.values())

    def everything(self) -> list[Any]:
        """The parameters of any batch."""
        chains = self.chains
        snapshots = [(name, *chain.snapshot) for name, chain in chains.items() if chain.snapshot]
        notes = [(name, number) for name, chain in chains.items() for number in chain.notes]
        lines = [tuple(storable(value) for value in astuple(line)) for line in self.lines]
        return [
            *self._moved(chain for chain in chains.values() if chain.row is None),
            *_transposed([chain.columns() for chain in chains.values() if chain.row], WRITTEN),
            *_transposed(snapshots, SNAPSHOT),
            *_transposed(lines, PRINTED),
            *_transposed(notes, NOTE),
        ]

    def _moved(self, chains: Iterable[Chain]) -> list[str]:
        ends = [(chain.decisions[0], chain.decisions[-1]) for chain in chains]
        decisions = [one for chain in self.chains.values() for one in chain.decisions]
        return [
            _texts([end.execution_id for _, end in ends]),
            _numbers([first.expected for first, _ in ends]),
            _numbers([end.last for _, end in ends]),
            _numbers([end.at for _, end in ends]),
            _texts([one.execution_id for one in decisions]),
            _numbers([one.expected + 1 for one in decisions]),
            _numbers([one.last for one in decisions]),
            _numbers([one.at for one in decisions]),
            _texts([one.events.decode() for one in decisions]),
        ]

    def _chained(self, name: str) -> Iterable[tuple[Decision, Commit]]:
        chain = self.chains[name]
        return zip(chain.decisions, chain.commits, strict=True)


def overtaken(decision: Decision, found: int | None) -> VersionConflict:
    """The refusal of a decision that comes too late."""
    stands = "elsewhere" if found is None else f"at {found}"
    return VersionConflict(
        f"execution {decision.execution_id} stands {stands}, not at {decision.expected}: another "
        "writer was first; load it again and decide again"
    )


def still_refused(decision: Decision, kind: type[NoetlError]) -> NoetlError:
    """The refusal of what was decided on top of something that never happened."""
    return kind(
        f"execution {decision.execution_id}: an earlier decision was not written, so the one "
        f"after {decision.expected} is not either; load it again and decide again"
    )


def storable(value: Any) -> Any:
    """Text without what PostgreSQL cannot keep in one: U+0000 and halves of surrogate pairs."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _texts(column: list[str]) -> str:
    joined = BETWEEN.join(column)
    # A split must give back just what was joined; of nothing it makes no text at all.
    if column and (joined == "" or joined.count(BETWEEN) != len(column) - 1):
        raise ValueError("expected ids and JSON, found nothing or the character U+001F")
    return joined


def _numbers(column: list[int]) -> str:
    return ",".join(map(str, column))


def _transposed(rows: list[tuple[Any, ...]], width: int) -> list[Any]:
    """One array for each column."""
    return list(zip(*rows, strict=True)) if rows else [()] * width
