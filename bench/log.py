"""What a decision costs: in groups beside raw rows, and alone beside one raw commit."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import apsw

from bench.figure import Figure
from bench.size import sized
from noetl.adapters.sqlite.storage import SqliteStorage, open_storage
from noetl.ports.event_log import Decision, ExecutionRow

BODY = "x" * 400
EVENTS = b'[{"name":"step.done","step":"fetch","step_run_id":"12.1","result":"%s"}]' % (b"x" * 330)
REPEATS = sized(9, small=1)
GROUPED = sized(20_000)
PER_COMMIT = sized(1_000)
ALONE = sized(300)


def figures() -> list[Figure]:
    with TemporaryDirectory() as folder:
        return asyncio.run(measure(Path(folder)))


async def measure(folder: Path) -> list[Figure]:
    raw = raw_file(folder / "raw.db")
    home = await open_storage(folder / "home")
    chain, many = Supply(["chain"]), Supply([f"e{n}" for n in range(PER_COMMIT)])
    rows: list[float] = []
    one_execution: list[float] = []
    executions: list[float] = []
    commits: list[float] = []
    alone: list[float] = []
    for _ in range(REPEATS):
        rows.append(raw_rows(raw))
        one_execution.append(await in_groups(home, chain.take(GROUPED)))
        executions.append(await in_groups(home, many.take(GROUPED)))
        for _ in range(ALONE):
            commits.append(raw_commit(raw))
            alone.append(await lone(home, chain.take(1)[0]))
    await home.close()
    raw.close()
    return [
        Figure.of("log: decisions of one execution", one_execution, rows, 0.4, "/s", at_most=False),
        Figure.of("log: decisions of 1000 executions", executions, rows, 0.3, "/s", at_most=False),
        Figure.of("log: lone decision / raw commit", alone, commits, 1.3, "s"),
    ]


class Supply:
    """Decisions for some executions by turns, each on top of the one before."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._made = 0

    def take(self, count: int) -> list[Decision]:
        begin, self._made = self._made, self._made + count
        return [self._decision(number) for number in range(begin, begin + count)]

    def _decision(self, number: int) -> Decision:
        expected, place = divmod(number, len(self._names))
        name = self._names[place]
        return Decision(
            execution_id=name,
            expected=expected,
            last=expected + 1,
            at=number,
            events=EVENTS,
            row=row(name) if expected == 0 else None,
        )


def row(name: str) -> ExecutionRow:
    return ExecutionRow(
        execution_id=name, path="p", digest="d", status="running", started_at=0, updated_at=0
    )


def raw_file(path: Path, checkpoint: int = 1000) -> apsw.Connection:
    """A file as safe as ours; its journal is written over after so many pages."""
    connection = apsw.Connection(str(path))
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma wal_autocheckpoint = {checkpoint}")
    connection.execute("pragma synchronous = full")
    connection.execute("create table body (n integer, text text)")
    return connection


def raw_rows(connection: apsw.Connection) -> float:
    """Rows of 400 bytes each second, a thousand to a commit."""
    began = perf_counter()
    for start in range(0, GROUPED, PER_COMMIT):
        with connection:
            connection.executemany(
                "insert into body values (?, ?)",
                [(n, BODY) for n in range(start, start + PER_COMMIT)],
            )
    return GROUPED / (perf_counter() - began)


def raw_commit(connection: apsw.Connection) -> float:
    began = perf_counter()
    connection.execute("insert into body values (?, ?)", (1, BODY))
    return perf_counter() - began


async def in_groups(home: SqliteStorage, decisions: list[Decision]) -> float:
    began = perf_counter()
    for waiting in [home.log.append(decision) for decision in decisions]:
        await waiting
    return len(decisions) / (perf_counter() - began)


async def lone(home: SqliteStorage, decision: Decision) -> float:
    began = perf_counter()
    await home.log.append(decision, alone=True)
    return perf_counter() - began
