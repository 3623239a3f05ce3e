"""Opening a home: created, found again, refused untouched."""

import multiprocessing
import os
import re
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.contracts.homes import decision

from noetl.adapters.sqlite.batch import COLUMNS
from noetl.adapters.sqlite.database import VERSION, open_database
from noetl.adapters.sqlite.executions import page_led_by
from noetl.adapters.sqlite.locks import FILE
from noetl.adapters.sqlite.statements import MIGRATIONS, SIZES, SQL, in_bulk, load, of_size
from noetl.adapters.sqlite.storage import open_storage
from noetl.errors import LogUnavailable
from noetl.messages.names import NAMES

NOBODY = 65534


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".db-shm"}


def test_a_new_home_is_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "home"
    open_database(folder).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / FILE).is_file()


def test_every_commit_is_durable(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("user_version") == VERSION
    connection.close()


def test_opening_again_changes_nothing(tmp_path: Path) -> None:
    open_database(tmp_path).close()
    before = bytes_of(tmp_path)
    open_database(tmp_path).close()
    assert bytes_of(tmp_path) == before


@pytest.mark.parametrize("in_wal", [False, True])
def test_a_newer_format_is_refused_untouched(tmp_path: Path, in_wal: bool) -> None:
    connection = open_database(tmp_path)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, int(in_wal))
    connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()
    before = bytes_of(tmp_path)
    assert (f"{FILE}-wal" in before) == in_wal
    with pytest.raises(LogUnavailable) as refused:
        open_database(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path / FILE} has format {VERSION + 1}, this program knows {VERSION}: it was written "
        "by a newer NoETL and is left untouched; update NoETL, or set NOETL_HOME to another folder"
    )
    assert bytes_of(tmp_path) == before


def old_home(folder: Path, version: int) -> apsw.Connection:
    """The tables as they were in that format, with an execution in them; left open."""
    connection = apsw.Connection(str(folder / FILE))
    connection.execute("pragma journal_mode = wal")
    for migration in MIGRATIONS[:version]:
        connection.execute(migration.read_text("utf-8"))
    connection.execute("insert into event_name values ('old.name', '', '', '', '')")
    connection.execute(
        "insert into execution (execution_id, path, digest, status, started_at, updated_at, seq)"
        " values ('a', 'p', 'd', 'running', 1, 1, 1)"
    )
    connection.execute("insert into decision values ('a', 1, 1, 5, '[{}]')")
    connection.execute(f"pragma user_version = {version}")
    return connection


@pytest.mark.parametrize("version", range(1, VERSION))
async def test_an_older_format_is_brought_up_to_date(tmp_path: Path, version: int) -> None:
    older = old_home(tmp_path, version)
    home, other = await open_storage(tmp_path), await open_storage(tmp_path)
    assert older.pragma("user_version") == VERSION
    names = older.execute("select name from event_name").fetchall()
    assert {name for (name,) in names} == set(NAMES)
    await home.log.append(decision("a", 1))
    assert [(row.first, row.last) for row in await other.log.read("a")] == [(1, 1), (2, 2)]
    assert (await other.owners.adopt(1)).execution_ids == ["a"]
    assert [found.execution_id for found in await home.executions.page(since=1)] == ["a"]
    # A program of the older format that has the home open goes on.
    older.execute("update execution set seq = 3 where execution_id = 'a'")
    older.execute("insert into decision values ('a', 3, 3, 7, '[{}]')")
    assert (await home.executions.find("a")).seq == 3  # type: ignore[union-attr]
    older.close()
    for each in (home, other):
        await each.close()


def test_a_migration_is_done_whole_or_not_at_all(tmp_path: Path) -> None:
    older = old_home(tmp_path, 1)
    older.execute("create table server (mine text)")  # in the way of the second
    tables = older.execute("select name, sql from sqlite_schema order by name").fetchall()
    with pytest.raises(LogUnavailable, match="table server already exists"):
        open_database(tmp_path)
    assert older.execute("select name, sql from sqlite_schema order by name").fetchall() == tables
    assert older.pragma("user_version") == 1
    older.close()


DUE = "select execution_id from execution where wake_at <= ? order by wake_at limit 10"


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        (DUE, "execution USING INDEX execution_wake (wake_at<?"),
        (page_led_by("none"), "execution"),
        (page_led_by("status"), "execution USING INDEX execution_status (status=?"),
        (page_led_by("path"), "execution USING INDEX execution_path (path=?"),
        (page_led_by("parent"), "execution USING INDEX execution_parent (parent_execution_id=?"),
        (SQL["page_executions_between"], "execution USING INDEX execution_started (started_at>?"),
        (SQL["children"], "execution USING INDEX execution_parent (parent_execution_id=?"),
        (SQL["count_executions"], "execution USING COVERING INDEX execution_status (status=?"),
        (SQL["free_executions"], "execution USING INDEX execution_free"),
        (SQL["left_executions"], "execution USING INDEX execution_owner (owner=?"),
        (SQL["owned_executions"], "execution USING INDEX execution_owner (owner=?"),
        (SQL["waiting_notes"], "note"),
        (SQL["read_decisions"], "decision USING INDEX decision_order (execution_id=?"),
        (
            SQL["ended_roots"],
            "ended USING INDEX execution_finished (finished_at>? AND finished_at<?",
        ),
        (SQL["page_versions"], "catalog USING PRIMARY KEY (path=?"),
    ],
)
def test_reads_walk_an_index(tmp_path: Path, statement: str, index: str) -> None:
    """What a page costs does not grow with the history: nothing is sorted that was not found."""
    connection = open_database(tmp_path)
    explained = connection.execute(f"explain query plan {statement}", _nulls(statement))
    steps = [str(row[3]) for row in explained.fetchall()]
    connection.close()
    assert any(step.startswith((f"SEARCH {index}", f"SCAN {index}")) for step in steps), steps
    sorts = [step for step in steps if "TEMP B-TREE" in step]
    # Of ended executions those that are forgotten at a time are sorted again, no others.
    assert len(sorts) == (1 if "as ended" in statement else 0), steps


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / FILE))
    connection.execute("create table recipes (name text)")
    connection.close()
    before = bytes_of(tmp_path)
    with pytest.raises(LogUnavailable, match="is a database of something else; move it away"):
        open_database(tmp_path)
    assert bytes_of(tmp_path) == before


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"hello " * 1000)
    with pytest.raises(LogUnavailable, match=r"noetl.db in .* is not a log of NoETL; move"):
        open_database(tmp_path)
    assert (tmp_path / FILE).read_bytes() == b"hello " * 1000


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("x")
    with pytest.raises(LogUnavailable, match="cannot be created: Not a directory; set NOETL_HOME"):
        open_database(tmp_path / "home")


def _open_without_rights(folder: Path, answers: "multiprocessing.Queue[str]") -> None:
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    try:
        open_database(folder)
    except LogUnavailable as refused:
        answers.put(str(refused))
    else:
        answers.put("opened")


@pytest.mark.parametrize("existing", [False, True])
def test_a_read_only_home_is_refused(existing: bool) -> None:
    # Not in pytest's own folder, which nobody but its owner may enter.
    folder = Path(tempfile.mkdtemp(prefix="noetl-read-only-"))
    if existing:
        open_database(folder).close()
        (folder / FILE).chmod(0o444)
    folder.chmod(0o555)
    try:
        forking = multiprocessing.get_context("fork")
        answers: multiprocessing.Queue[str] = forking.Queue()
        child = forking.Process(target=_open_without_rights, args=(folder, answers))
        child.start()
        says = answers.get()
        child.join()
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert re.search("(is read-only; make it writable|cannot be opened: .*; check its perm)", says)
    assert str(folder) in says


async def test_a_home_is_closed_once_and_for_all(tmp_path: Path) -> None:
    home = await open_storage(tmp_path)
    await home.close()
    await home.close()
    with pytest.raises(LogUnavailable, match="is closed"):
        await home.playbooks.keep("d", "p", "text", None)
    with pytest.raises(LogUnavailable, match="is closed"):
        await home.executions.find("a")
    assert sorted(bytes_of(tmp_path)) == [FILE], "nothing is left in the journal"


def test_the_columns_of_the_table_are_those_of_the_row(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    columns = [row[1] for row in connection.execute("pragma table_info(execution)").fetchall()]
    connection.close()
    assert set(columns) == {"number", *COLUMNS}


def test_every_statement_can_be_prepared(tmp_path: Path) -> None:
    connection = open_database(tmp_path)
    leads = [name.removeprefix("lead_") for name in SQL if name.startswith("lead_")]
    whole = {name: text for name, text in SQL.items() if not name.startswith("lead_")}
    whole |= {f"page led by {lead}": page_led_by(lead) for lead in leads}
    del whole["page_executions"]
    for name, text in whole.items():
        prepared = of_size(name, 1)[0] if "@rows" in text else text
        connection.execute(f"explain {prepared}", _nulls(prepared)).fetchall()
    connection.close()


def _nulls(statement: str) -> Any:
    if ":" in statement:
        return _Nothing()
    numbers = [int(number) for number in re.findall(r"\?(\d+)", statement)]
    return (None,) * (max(numbers) if numbers else statement.count("?"))


class _Nothing(dict[str, None]):
    def __missing__(self, _: str) -> None:
        return None


def test_statements_are_found_by_name() -> None:
    assert load("-- a page\n\n-- name: one\nselect 1\n\n-- name: two\n-- why\nselect\n2\n") == {
        "one": "select 1",
        "two": "-- why\nselect\n2",
    }


@pytest.mark.parametrize(
    ("count", "sizes"),
    [(0, []), (1, [1]), (2, [8]), (8, [8]), (9, [64]), (512, [512]), (514, [512, 8])],
)
def test_rows_are_filled_up_to_a_known_size(count: int, sizes: list[int]) -> None:
    calls = in_bulk("keep_snapshots", [("a", n, b"") for n in range(count)])
    assert [text.count("(?, ?, ?)") for text, _ in calls] == sizes
    assert [len(parameters) for _, parameters in calls] == [3 * size for size in sizes]
    assert [value for _, parameters in calls for value in parameters if value == "a"] == [
        "a"
    ] * count


def test_the_largest_statement_fits_into_sqlite() -> None:
    widest = max(of_size(name, 1)[1] for name, text in SQL.items() if "@rows" in text)
    assert widest * SIZES[-1] <= 32766


def test_a_statement_without_rows_has_no_size() -> None:
    with pytest.raises(LookupError, match="'begin' takes no rows"):
        of_size("begin", 8)
