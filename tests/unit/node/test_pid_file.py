"""Who holds a pid file, and what a file of the dead means."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from noetl.adapters.processes import Process
from noetl.errors import HomeInUse, UnwritableFile
from noetl.node.pid_file import PidFile, pid_files


def test_it_is_there_while_it_is_held(tmp_path: Path) -> None:
    file = PidFile(tmp_path, "server")
    assert file.running() is None
    with file.held("a server") as tell:
        running = file.running()
        assert running is not None
        assert (running.pid, running.ready, running.url) == (os.getpid(), False, None)
        tell("http://127.0.0.1:1")
        running = file.running()
        assert running is not None
        assert (running.ready, running.url) == (True, "http://127.0.0.1:1")
    assert file.running() is None
    assert not file.path.exists()


def test_two_cannot_hold_it(tmp_path: Path) -> None:
    file = PidFile(tmp_path, "server")
    with file.held("a server"):
        with (
            pytest.raises(HomeInUse, match=rf"already \(process {os.getpid()}\); stop it with"),
            file.held("a server"),
        ):
            raise AssertionError("it was held twice")
        assert file.running() is not None
    with file.held("a server"):
        assert file.running() is not None


@pytest.mark.parametrize(
    "change",
    [
        {"ticks": 1},
        {"boot": "another"},
        {"pid": 2**22 + 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_file_of_a_dead_process_means_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    """The number may have been given to another process since: its start tells them apart."""
    file = PidFile(tmp_path, "worker-default-1")
    me = Process.this()
    told = {"pid": me.pid, "ticks": me.ticks, "boot": me.boot, "started_at": 0, **change}
    file.path.parent.mkdir()
    file.path.write_bytes(msgspec.json.encode(told))
    assert file.running() is None
    with file.held("a worker"):
        assert file.running() is not None


@pytest.mark.parametrize("content", [b"", b"17", b"{", b'{"pid": "x"}', b"\xff\x00"])
def test_a_broken_file_means_nothing(tmp_path: Path, content: bytes) -> None:
    file = PidFile(tmp_path, "server")
    file.path.parent.mkdir()
    file.path.write_bytes(content)
    assert file.running() is None
    with file.held("a server"):
        assert file.running() is not None


HOLD = """
import sys
from pathlib import Path
from noetl.node.pid_file import PidFile
with PidFile(Path(sys.argv[1]), "server").held("a server"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_holder_lets_go(tmp_path: Path) -> None:
    file = PidFile(tmp_path, "server")
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        running = file.running()
        assert running is not None
        assert running.pid == holder.pid
        with (
            pytest.raises(HomeInUse, match=f"process {holder.pid}"),
            file.held("a server"),
        ):
            raise AssertionError("it was held twice")
        holder.kill()
        holder.wait()
    assert file.path.exists()
    assert file.running() is None
    with file.held("a server"):
        assert file.running() is not None


def test_a_home_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("a file in the way")
    with (
        pytest.raises(UnwritableFile, match=r"cannot write .*check who owns the home"),
        PidFile(tmp_path, "server").held("a server"),
    ):
        raise AssertionError("it was held")


def test_files_of_a_kind(tmp_path: Path) -> None:
    for name in ("worker-gpu-1", "worker-default-2", "worker-default-1", "server"):
        file = PidFile(tmp_path, name)
        file.path.parent.mkdir(exist_ok=True)
        file.path.touch()
    assert [file.name for file in pid_files(tmp_path, "worker")] == [
        "worker-default-1",
        "worker-default-2",
        "worker-gpu-1",
    ]
    assert [file.name for file in pid_files(tmp_path, "worker-gpu")] == ["worker-gpu-1"]
