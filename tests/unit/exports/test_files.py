"""A file is there whole, or as it was before."""

import os
import stat
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.unit.exports.stories import each, run

from noetl.errors import LogUnavailable, UnwritableFile
from noetl.exports.export import ExportBody
from noetl.exports.files import replacing, write_durably, write_file
from noetl.exports.parquet import write_parquet

TWO = [ExportBody(b"one\n", 1), ExportBody(b"two\n", 1)]


async def broken(fault: BaseException) -> AsyncIterator[ExportBody]:
    yield TWO[0]
    raise fault


def test_bodies_one_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    run(write_file(file, each(TWO)))
    assert file.read_bytes() == b"one\ntwo\n"
    assert os.listdir(tmp_path) == ["out.jsonl"]


@pytest.mark.parametrize("fault", [LogUnavailable("gone"), KeyboardInterrupt()], ids=repr)
def test_a_failure_on_the_way_leaves_the_old_file(tmp_path: Path, fault: BaseException) -> None:
    file = tmp_path / "out.jsonl"
    file.write_text("before")
    with pytest.raises(type(fault)):
        run(write_file(file, broken(fault)))
    assert file.read_text() == "before"
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    run(write_file(link, each(TWO)))
    assert link.is_symlink()
    assert target.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("form", ["jsonl", "parquet", "position"])
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path, form: str) -> None:
    """As the log is that it was made from. One that is there keeps the mode that it was given."""
    ways: dict[str, Callable[[Path], object]] = {
        "jsonl": lambda file: run(write_file(file, each(TWO))),
        "parquet": lambda file: run(write_parquet(file, each([]))),
        "position": lambda file: write_durably(file, b"{}"),
    }
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    old.chmod(0o640)
    before = os.umask(0)
    try:
        for file in (old, new):
            ways[form](file)
    finally:
        os.umask(before)
    assert [stat.S_IMODE(file.stat().st_mode) for file in (old, new)] == [0o640, 0o600]
    assert sorted(os.listdir(tmp_path)) == ["new", "old"]


def test_nobody_knows_the_name_of_a_part(tmp_path: Path) -> None:
    """In a folder where others may write: a link of that name would lead elsewhere."""
    names = set()
    for _ in range(2):
        with replacing(tmp_path / "out") as part:
            names.add(part.name)
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
    assert len(names) == 2


def test_a_pipe_takes_them_as_they_come(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    run(write_file(pipe, each(TWO)))
    reader.join()
    assert read == [b"one\ntwo\n"]
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing/out", "no such file or directory"),
        ("file/out", "not a directory"),
        (".", "is a directory"),
        ("x" * 300, "file name too long"),
        ("nul\0", "embedded null"),
    ],
)
def test_why_it_cannot_be_written(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableFile) as refused:
        run(write_file(tmp_path / name, each(TWO)))
    assert reason in str(refused.value)
    assert "check the path" in str(refused.value)
    assert ".part" not in str(refused.value)
    assert os.listdir(tmp_path) == ["file"]


def test_a_full_disk_is_named() -> None:
    with pytest.raises(UnwritableFile, match="cannot write '/dev/full': no space left on device"):
        run(write_file(Path("/dev/full"), each(TWO)))
