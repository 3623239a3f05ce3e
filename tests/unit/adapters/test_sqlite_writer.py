"""When the writer commits, on which thread, and what it does when it cannot."""

import asyncio
import threading
from pathlib import Path
from typing import Any, Self

import apsw
import pytest
from tests.contracts.homes import SqliteHomes, answer_of, decision, row, taken

from noetl.adapters.sqlite.faults import unavailable
from noetl.adapters.sqlite.storage import SqliteStorage
from noetl.errors import LogUnavailable
from noetl.ports.commit import Commit
from noetl.ports.event_log import PrintedLine


@pytest.fixture
def homes(tmp_path: Path) -> SqliteHomes:
    return SqliteHomes(tmp_path)


class Commits:
    """On which thread each commit was made, and how many there were."""

    def __init__(self, home: SqliteStorage) -> None:
        self.threads: list[str] = []
        home.writer.connection.set_commit_hook(self._seen)

    def _seen(self) -> bool:
        self.threads.append(threading.current_thread().name)
        return False


class Gate:
    """Keeps the writer in a transaction, so that what a test appends gathers for the next one."""

    def __init__(self) -> None:
        self._entered = threading.Event()
        self._opened = threading.Event()
        self._held: asyncio.Future[None]

    @classmethod
    async def shut(cls, home: SqliteStorage) -> Self:
        gate = cls()
        gate._held = asyncio.ensure_future(home.writer.transact(gate._wait))
        await asyncio.to_thread(gate._entered.wait)
        return gate

    async def open(self) -> None:
        self._opened.set()
        await self._held

    def _wait(self, _: apsw.Connection) -> None:
        self._entered.set()
        self._opened.wait()


async def test_a_lone_decision_is_committed_on_the_thread_of_the_caller(homes: SqliteHomes) -> None:
    home = await homes.open()
    commits = Commits(home)
    answer = home.log.append(decision("a", 0), alone=True)
    assert answer.done(), "nothing to wait for"
    await answer
    await home.log.append(decision("a", 1))
    await home.log.append(decision("a", 2), alone=True)
    here = threading.current_thread().name
    assert commits.threads == [here, "noetl-log", here]


class Statements:
    """What the writer asks of the database."""

    def __init__(self, home: SqliteStorage) -> None:
        self.asked: list[str] = []
        home.writer.connection.set_exec_trace(self._seen)

    def _seen(self, _: Any, statement: str, __: Any) -> bool:
        self.asked.append(statement.split()[0])
        return True


async def test_a_decision_after_another_writes_one_row_and_reads_none(
    homes: SqliteHomes,
) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 1, row=row("a", owner=home.owners.me)))
    statements = Statements(home)
    for number, alone in ((1, True), (2, True), (3, False)):
        await home.log.append(decision("a", number), alone=alone)
    assert statements.asked == [*WROTE, *WROTE, *WROTE]
    found = await home.executions.find("a")
    assert found is not None
    assert (found.seq, found.updated_at) == (4, decision("a", 3).at)


WROTE = ["begin", "insert", "commit"]


@pytest.mark.parametrize(
    "change",
    [
        "update execution set owner = 'somebody' where execution_id = 'a'",
        "insert into decision values ('a', 3, 3, 7, '[{}]')",
        "delete from decision where execution_id = 'a'",
        "delete from execution where execution_id = 'a'",
    ],
)
@pytest.mark.parametrize("by_another", [True, False])
@pytest.mark.parametrize("alone", [True, False])
async def test_a_decision_sees_what_was_written_since_the_last_one(
    homes: SqliteHomes, change: str, by_another: bool, alone: bool
) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    await home.log.append(decision("a", 1), alone=alone)
    if by_another:
        other = apsw.Connection(str(home.folder / "noetl.db"))
        other.execute(change)
        other.close()
    else:
        await home.writer.transact(lambda connection: connection.execute(change))
    before = await home.log.read("a")
    assert await answer_of(home.log.append(decision("a", 2), alone=alone)) == "VersionConflict"
    assert await home.log.read("a") == before


@pytest.mark.parametrize("alone", [True, False])
async def test_what_was_not_committed_is_not_known_to_stand(
    homes: SqliteHomes, alone: bool
) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    connection = home.writer.connection
    connection.set_commit_hook(lambda: True)  # makes a rollback of it
    assert await answer_of(home.log.append(decision("a", 1), alone=alone)) == "LogUnavailable"
    connection.set_commit_hook(None)
    home.log.forget("a")
    assert await answer_of(home.log.append(decision("a", 2), alone=alone)) == "VersionConflict"
    home.log.forget("a")
    assert await answer_of(home.log.append(decision("a", 1), alone=alone)) == "ok"


async def test_an_execution_that_is_given_away_is_not_known_to_stand(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0, 1, row=row("a", owner="somebody")))
    assert await answer_of(home.log.append(decision("a", 1), alone=True)) == "VersionConflict"


async def test_what_waits_is_not_overtaken_by_a_lone_decision(homes: SqliteHomes) -> None:
    home = await homes.open()
    commits = Commits(home)
    first, second = home.log.append(decision("a", 0)), home.log.append(decision("a", 1), alone=True)
    assert not second.done()
    await asyncio.gather(first, second)
    assert set(commits.threads) == {"noetl-log"}


async def test_many_decisions_share_a_commit(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    commits = Commits(home)
    gate = await Gate.shut(home)
    waiting = [home.log.append(decision("a", n)) for n in range(1, 1001)]
    await gate.open()
    await asyncio.gather(*waiting)
    assert len(commits.threads) == 2, "the one that was held, and one for all that had gathered"
    found = await home.executions.find("a")
    assert found is not None
    assert found.seq == 1001


async def test_a_lock_held_by_another_process_is_waited_for(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    other = apsw.Connection(str(home.folder / "noetl.db"))
    other.execute("begin immediate")
    # Alone, but not at once: the loop must not stand still while the other one writes.
    waiting = [home.log.append(decision("a", 1), alone=True), home.log.append(decision("a", 2))]
    home.printed.keep(line("first"))
    read = await home.log.read("a")
    assert [each.done() for each in waiting] == [False, False]
    assert len(read) == 1, "readers are not kept out"
    other.execute("rollback")
    await asyncio.gather(*waiting)
    other.close()
    assert [found.last for found in await home.log.read("a")] == [1, 2, 3]
    assert [found.text for found in await home.printed.read("a")] == ["first"]


async def full(home: SqliteStorage) -> None:
    """No page may be added from now on."""
    pages = home.writer.connection.pragma("page_count")
    assert home.writer.connection.pragma("max_page_count", pages) == pages


def big(execution_id: str, expected: int, **fields: Any) -> Any:
    body = b'[{"name":"step.done","result":"' + b"x" * 50_000 + b'"}]'
    return decision(execution_id, expected, events=body, **fields)


@pytest.mark.parametrize("alone", [True, False])
async def test_a_full_disk_refuses_clearly_and_goes_on_when_there_is_room(
    homes: SqliteHomes, alone: bool
) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    await full(home)
    with pytest.raises(LogUnavailable) as refused:
        await home.log.append(big("a", 1, row=row("a", status="completed")), alone=alone)
    assert str(refused.value) == (
        f"no space left on the disk of {home.folder}; free some and run `noetl resume a`"
    )
    assert await answer_of(home.log.append(decision("a", 2), alone=alone)) == "LogUnavailable"
    found = await home.executions.find("a")
    assert found is not None
    assert (found.seq, found.status) == (1, "running"), "nothing of it is visible"
    home.writer.connection.pragma("max_page_count", 100_000)
    assert await answer_of(home.log.append(big("a", 1), alone=alone)) == "LogUnavailable"
    home.log.forget("a")
    await home.log.append(big("a", 1), alone=alone)
    assert [found.last for found in await home.log.read("a")] == [1, 2]
    assert home.writer.connection.pragma("integrity_check") == "ok"


async def test_a_full_disk_refuses_the_whole_batch_and_its_followers(homes: SqliteHomes) -> None:
    home = await homes.open()
    await asyncio.gather(home.log.append(decision("a", 0)), home.log.append(decision("b", 0)))
    await full(home)
    gate = await Gate.shut(home)
    waiting = [home.log.append(big("a", 1)), home.log.append(decision("b", 1))]
    await gate.open()
    assert [await answer_of(each) for each in waiting] == ["LogUnavailable", "LogUnavailable"]
    assert await answer_of(home.log.append(decision("b", 2))) == "LogUnavailable"
    assert await answer_of(home.playbooks.keep("d", "p", "x" * 50_000, None)) == "LogUnavailable"
    home.log.forget("b")
    await home.log.append(decision("b", 1))


async def test_a_read_only_connection_refuses_clearly(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    home.writer.connection.execute("pragma query_only = on")
    with pytest.raises(LogUnavailable, match=r"is read-only; make it writable and run `noetl res"):
        await home.log.append(decision("a", 1))


async def test_one_bad_decision_does_not_harm_the_others(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("bad", 0))
    gate = await Gate.shut(home)
    waiting = [
        home.log.append(decision("a", 0)),
        home.log.append(decision("bad", 1, at=2**70)),
        home.log.append(decision("a", 1)),
        home.log.append(decision("bad", 2)),
    ]
    await gate.open()
    answers = [await answer_of(each) for each in waiting]
    assert answers == ["ok", "LogUnavailable", "ok", "LogUnavailable"]
    assert [found.last for found in await home.log.read("a")] == [1, 2]
    assert [found.last for found in await home.log.read("bad")] == [1]


async def test_a_bad_decision_alone_is_refused_and_nothing_stays_open(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    with pytest.raises(LogUnavailable, match=r"the log in .* failed: .*run `noetl resume a`"):
        await home.log.append(decision("a", 1, at=2**70), alone=True)
    assert home.writer.connection.get_autocommit()
    await home.log.append(decision("b", 0), alone=True)


async def test_a_job_that_fails_harms_nobody(homes: SqliteHomes) -> None:
    home = await homes.open()

    def stumble(_: apsw.Connection) -> None:
        raise ZeroDivisionError("oops")

    failing = asyncio.ensure_future(home.writer.transact(stumble))
    fine = home.log.append(decision("a", 0))
    with pytest.raises(LogUnavailable, match=r"the log in .* failed: oops"):
        await failing
    await fine


async def waited(commit: Commit) -> None:
    await commit


async def test_a_caller_who_no_longer_waits_does_not_undo_anything(homes: SqliteHomes) -> None:
    home = await homes.open()
    given_up, next_one = home.log.append(decision("a", 0)), home.log.append(decision("a", 1))
    waiting = asyncio.ensure_future(waited(given_up))
    await asyncio.sleep(0)
    waiting.cancel()
    await next_one
    assert given_up.done()
    assert given_up.exception() is None
    assert [found.last for found in await home.log.read("a")] == [1, 2]


async def test_closing_writes_what_was_queued(homes: SqliteHomes) -> None:
    home = await homes.open()
    waiting = [home.log.append(decision("a", n)) for n in range(50)]
    home.printed.keep(line("last words"))
    await home.close()
    assert [await answer_of(each) for each in waiting] == ["ok"] * 50
    assert await answer_of(home.log.append(decision("a", 50), alone=True)) == "LogUnavailable"
    again = await homes.open()
    assert len(await again.log.read("a")) == 50
    assert [found.text for found in await again.printed.read("a")] == ["last words"]


async def test_closing_a_full_home_loses_lines_but_closes(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    await full(home)
    home.printed.keep(line("x" * 50_000))
    await home.close()
    again = await homes.open()
    assert list(await again.printed.read("a")) == []


async def test_a_flood_of_lines_does_not_wait_for_a_decision(homes: SqliteHomes) -> None:
    home, other = await homes.open(), await homes.open()
    for n in range(1000):
        home.printed.keep(line(f"{n}"))
    await home.writer.transact(lambda _: None)
    home.printed.keep(line("later"))
    assert len(await other.printed.read("a")) == 1000


async def test_lines_ride_with_the_next_commit(homes: SqliteHomes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.log.append(decision("a", 0))
    commits = Commits(home)
    home.printed.keep(line("hello"))
    await home.log.append(decision("a", 1), alone=True)
    assert len(commits.threads) == 1
    assert [found.text for found in await other.printed.read("a")] == ["hello"]


async def test_an_idle_inbox_is_not_even_searched(homes: SqliteHomes) -> None:
    home, other = await homes.open(), await homes.open()
    await home.log.append(decision("a", 0, row=row("a", owner=home.owners.me)))
    await taken(home)
    searched: list[str] = []
    await home.inbox._reader.look(
        lambda connection: connection.trace_v2(
            apsw.SQLITE_TRACE_STMT, lambda event: searched.append(event["sql"])
        )
    )
    assert list(await taken(home)) == []
    assert searched == ["pragma data_version"]
    await other.inbox.leave("a", "cancel", {})
    assert [note.kind for note in await taken(home)] == ["cancel"]


async def test_processes_that_only_read_leave_no_trace(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.executions.page()
    await taken(home)
    assert home.writer.connection.execute("select * from process").fetchall() == []
    await home.log.append(decision("a", 0))
    tokens = home.writer.connection.execute("select token from process").fetchall()
    assert tokens == [(home.owners.me,)]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (apsw.FullError("x"), "no space left on the disk of h; free some and try again"),
        (apsw.ReadOnlyError("x"), "h is read-only; make it writable and try again"),
        (apsw.IOError("x"), "the disk of h failed: x; check the disk and try again"),
        (
            apsw.CorruptError("x"),
            "the log in h is damaged: x; restore it from a copy and try again",
        ),
        (
            apsw.TooBigError("x"),
            "the log in h refused to write: x; see `noetl doctor` and try again",
        ),
        (OverflowError("x"), "the log in h failed: x; see `noetl doctor` and try again"),
    ],
)
def test_failures_say_what_to_do(error: Exception, says: str) -> None:
    assert str(unavailable(error, Path("h"))) == says


def line(text: str) -> PrintedLine:
    return PrintedLine(
        execution_id="a", step="s", task_run_id="1", attempt=1, at=1, stream="stdout", text=text
    )
