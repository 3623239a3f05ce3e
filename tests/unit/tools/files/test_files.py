"""The worker's folder for files: what lies in it is reached by every kind, and nothing else."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.code import ContainerInputs, ScriptInputs
from noetl.kinds.http import HttpInputs
from noetl.kinds.kind import Inputs
from noetl.kinds.sql import DuckdbInputs, PostgresInputs
from noetl.kinds.storage import GcsInputs, S3Inputs
from noetl.messages.outcome import Outcome
from noetl.tools.bounds import Bounds
from noetl.tools.container.orders import order_of
from noetl.tools.paths import inside, open_file, whole_file
from noetl.tools.process.orders import script_file
from noetl.tools.refusal import Refusal
from noetl.tools.sql.copying import copy_of
from noetl.tools.sql.duck_paths import placed
from noetl.tools.sql.statements import statements_of
from noetl.tools.table import Toolbox


class Place(msgspec.Struct, frozen=True):
    """A root with the playbook's folder in it, and a folder outside."""

    root: Path
    outside: Path

    @property
    def folder(self) -> Path:
        return self.root / "books"

    def call(self, inputs: Inputs, **more: Any) -> Any:
        given = {"folder": str(self.folder), "files": str(self.root), **more}
        return call_of(inputs, **given)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path / "root", tmp_path / "outside")
    for folder in (place.root, place.outside, place.folder):
        folder.mkdir()
        (folder / "a.csv").write_text(f"word\n{folder.name}\n")
        (folder / "a.sh").write_text("#!/bin/sh\necho ran\n")
    (place.folder / "link.csv").symlink_to(place.outside / "a.csv")
    (place.folder / "away").symlink_to(place.outside)
    (place.folder / "up.csv").symlink_to(place.root / "a.csv")
    return place


WITHIN = [
    "a.csv",
    "../a.csv",
    "up.csv",
    "new/of/mine",
    "{root}/a.csv",
    "{root}/../{root.name}/a.csv",
]
BEYOND = [
    "../../outside/a.csv",
    "link.csv",
    "away/a.csv",
    "away/new.csv",
    "{outside}/a.csv",
    "/etc/hostname",
    "{root}2/a.csv",
    "/proc/self/cwd/a.csv",
    "a\0b",
]


@pytest.mark.parametrize("path", WITHIN)
def test_what_lies_below_the_root_is_reached(place: Place, path: str) -> None:
    found = inside(str(place.folder), path.format(root=place.root), str(place.root))
    assert found.is_relative_to(place.root)


@pytest.mark.parametrize("path", BEYOND)
def test_nothing_else_is(place: Place, path: str) -> None:
    with pytest.raises(Refusal) as refused:
        inside(str(place.folder), path.format(**msgspec.structs.asdict(place)), str(place.root))
    assert (refused.value.outcome.error or {})["kind"] == "input"


def test_a_link_that_is_put_in_later_is_not_followed(place: Place) -> None:
    """Code of the playbook runs beside the task that has looked at the path already."""
    within = place.folder / "within"
    within.mkdir()
    (within / "a.csv").write_text("within")
    path = inside(str(place.folder), "within/a.csv")
    with open_file(path) as file:
        assert file.read() == b"within"
    within.rename(place.folder / "before")
    within.symlink_to(place.outside)
    with pytest.raises(Refusal, match="exchanged while it was opened"):
        open_file(path)
    with pytest.raises(Refusal, match="exchanged while it was opened"), whole_file(path):
        pass
    assert sorted(one.name for one in place.outside.iterdir()) == ["a.csv", "a.sh"]
    assert (place.outside / "a.csv").read_text() == "word\noutside\n"


def test_what_is_no_file_is_not_waited_for(place: Place) -> None:
    os.mkfifo(place.folder / "pipe")
    with pytest.raises(Refusal, match="it is not a file"):
        open_file(inside(str(place.folder), "pipe"))


def test_a_playbook_without_a_file_has_absolute_paths_alone(place: Place) -> None:
    assert inside(None, f"{place.root}/a.csv", str(place.root)).is_file()
    with pytest.raises(Refusal, match="has no folder to start from"):
        inside(None, "a.csv", str(place.root))
    with pytest.raises(Refusal, match="has no folder to start from"):
        inside(None, f"{place.root}/a.csv")


def test_the_refusal_says_what_to_do(place: Place) -> None:
    with pytest.raises(Refusal, match="the worker's folder for files; put the file there, or"):
        inside(str(place.folder), "link.csv", str(place.root))


INPUTS: dict[str, Any] = {
    "script": lambda path: ScriptInputs(path=path, interpreter="sh"),
    "container": lambda path: ContainerInputs(
        image="alpine", mounts=[{"source": path, "target": "/x"}]
    ),
    "postgres": lambda path: PostgresInputs(command="copy t from stdin", file=path),
    "http": lambda path: HttpInputs(url="http://127.0.0.1:1/", method="POST", files={"f": path}),
    "s3": lambda path: S3Inputs(
        operation="put", bucket="b", key="k", path=path, endpoint="http://127.0.0.1:1"
    ),
    "gcs": lambda path: GcsInputs(
        operation="put", bucket="b", key="k", path=path, endpoint="http://127.0.0.1:1"
    ),
    "duckdb": lambda path: DuckdbInputs(command=f"select word from '{path}'"),
    "duckdb database": lambda path: DuckdbInputs(command="select 1", database=path),
}
"""What takes a path, each with one."""


def asked(place: Place, name: str, path: str, **more: Any) -> Outcome:
    """The outcome; of kinds that would need a server, what stands before it."""
    call, kind = place.call(INPUTS[name](path), **more), name.partition(" ")[0]

    async def whole() -> Outcome:
        tools = Toolbox(place.root, bounds=Bounds(files=str(place.root)))
        try:
            if kind == "container":
                order_of(call)
            elif kind == "postgres":
                statements = statements_of(call.inputs.command)
                assert copy_of(call, statements, BenchPlace().results) is not None
            elif kind == "script":
                script_file(call, "/nowhere")
            return await tools[kind].call(call, BenchPlace())
        except Refusal as refusal:
            return refusal.outcome
        finally:
            for tool in tools.built:
                await tool.close()

    return asyncio.run(whole())


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("path", ["../../outside/a.csv", "link.csv", "{outside}/a.csv"])
def test_every_kind_refuses_what_lies_outside(place: Place, name: str, path: str) -> None:
    error = asked(place, name, path.format(outside=place.outside)).error
    assert error is not None
    assert (error["kind"], error["retryable"]) == ("input", False), error
    assert "files" in error["message"]


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "duckdb"])
@pytest.mark.parametrize("files", [True, False])
def test_no_kind_reaches_files_of_noetl(place: Place, name: str, files: bool) -> None:
    """Not even where they lie in the folder of the playbook; for SQL see tests/system."""
    own = place.folder / "home"
    own.mkdir()
    (own / "key").write_text("planted")
    more = {"private": (str(own),), **({} if files else {"files": None})}
    error = asked(place, name, "home/key", **more).error
    assert (error or {})["kind"] == "input", error
    assert "files of NoETL itself" in (error or {})["message"]


@pytest.mark.parametrize("name", ["http", "s3", "gcs"])
def test_what_lies_inside_is_sent(place: Place, name: str) -> None:
    """Nobody listens: a refused connection shows that the file was taken."""
    error = asked(place, name, f"{place.root}/a.csv").error
    assert (error or {})["kind"] == "connection", error


def test_a_script_of_the_root_runs(place: Place) -> None:
    outcome = asked(place, "script", f"{place.root}/a.sh")
    assert outcome.result["stdout"] == "ran\n"


def sql(place: Place, *commands: str, **inputs: Any) -> list[Outcome]:
    """Commands of one step run."""

    async def calls() -> list[Outcome]:
        tool = Toolbox(place.root)["duckdb"]
        try:
            given = [DuckdbInputs(command=command, **inputs) for command in commands]
            return [await tool.call(place.call(one), BenchPlace()) for one in given]
        finally:
            await tool.close()

    return asyncio.run(calls())


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("select word from 'a.csv'", ["books"]),
        ("select word from '../a.csv'", ["root"]),
        ("select word from '{root}/a.csv'", ["root"]),
        ("select word from read_csv('a.csv', delim = ',', nullstr = ['x', 'y'])", ["books"]),
        ("select word from read_csv(['a.csv', '../a.csv']) order by 1", ["books", "root"]),
        ("select word from read_csv('a*.csv') where word = 'books'", ["books"]),
        ("select 'a.csv' as word", ["a.csv"]),
        ("copy (select 'new' as word) to 'b.csv'; select word from 'b.csv'", ["new"]),
        ("attach 'x.db' as x; create table x.t as select 7 as word; from x.t", [7]),
    ],
)
@pytest.mark.parametrize("database", [None, "d.duckdb"])
def test_duckdb_works_below_the_root(
    place: Place, command: str, words: list[Any], database: str | None
) -> None:
    (outcome,) = sql(place, command.format(root=place.root), database=database)
    assert outcome.error is None, outcome.error
    assert [row["word"] for row in outcome.result] == words


@pytest.mark.parametrize(
    "command",
    [
        "from read_text('/etc/hostname')",
        "from read_text('/etc' || '/hostname')",
        "select * from glob('/etc/*')",
        "copy (select 1) to '{outside}/b.csv'",
        "attach '{outside}/x.db' as x",
        "export database '{outside}/dump'",
        "install httpfs",
        "set temp_directory = '/var/tmp'",
        "from read_csv('link.csv')",
    ],
)
def test_duckdb_reaches_nothing_else(place: Place, command: str) -> None:
    before = sorted(place.outside.iterdir())
    (outcome,) = sql(place, command.format(outside=place.outside))
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("input", False), outcome.error
    assert sorted(place.outside.iterdir()) == before


@pytest.mark.parametrize("more", ["enable_external_access = true", "allowed_directories = ['/']"])
def test_duckdb_cannot_be_let_out_again(place: Place, more: str) -> None:
    widened, read = sql(place, f"set {more}", "from read_text('/etc/hostname')")
    assert widened.status == "error"
    assert (read.error or {})["kind"] == "input"


@pytest.mark.parametrize("database", [None, "d.duckdb"])
def test_rows_are_a_table_all_the_same(place: Place, database: str | None) -> None:
    (outcome,) = sql(place, "select a from rows", rows=[{"a": 1}, {"a": 2}], database=database)
    assert outcome.result == [{"a": 1}, {"a": 2}], outcome.error


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("from 'a'", "from '{0}/a'"),
        ("FROM read_csv('a', sep='b')", "FROM read_csv('{0}/a', sep='b')"),
        ("from f(['a']) join 'b' on c = 'd'", "from f(['a']) join '{0}/b' on c = 'd'"),
        (
            "from read_parquet(['a', 'b'], x = ['c', 'd'])",
            "from read_parquet(['{0}/a', '{0}/b'], x = ['c', 'd'])",
        ),
    ],
)
def test_paths_that_are_read(place: Place, text: str, changed: str) -> None:
    assert placed(text, str(place.folder), str(place.root)) == changed.format(place.folder)
    assert placed(text, str(place.folder)) == text
