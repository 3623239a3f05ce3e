"""A disk that is full under a parallel loop: said, ended, and gone on with when there is room."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.oracle import end_of, judge, logs_in
from tests.support.processes import Home, Running
from tests.support.steps import loop, playbook, step, task

MB = 1024 * 1024
ROOM = 2 * MB
ITERATIONS, LARGE = 60, 200_000
TEXT = playbook(
    step(
        "start",
        task(
            "makes", "python", code=f"result = str(n) + 'x' * {LARGE}", args={"n": "{{ iter.n }}"}
        ),
        loop=loop(f"{{{{ range({ITERATIONS}) | list }}}}", mode="parallel", flight=8),
    ),
    executor={"kind": "local", "spec": {"policy": {"limits": {"max_payload_bytes": 10_000}}}},
)


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


@pytest.fixture
def small_home(tmp_path: Path) -> Iterator[Home]:
    """On a small file system of its own; needs root, which the suite has in CI."""
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "playbook.yaml").write_text(TEXT)
    mount("-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", folder)
    yield Home(folder)
    mount("-o", f"remount,size={64 * MB}", folder)
    subprocess.run(["umount", "-l", folder], check=True)


def run(home: Home) -> Running:
    return Running(home.folder, "run", home.folder.with_name("playbook.yaml"))


def test_a_parallel_loop_on_a_full_disk_ends_and_is_resumed(small_home: Home) -> None:
    running = run(small_home)
    assert running.ended() == 3
    (name,) = small_home.roots()
    assert "no space left" in running.err.lower()
    assert f"noetl resume {name}" in running.err
    mount("-o", f"remount,size={64 * MB}", small_home.folder)
    resumed = Running(small_home.folder, "resume", name, "--json", name="resumed")
    assert resumed.answer()["status"] == "completed"
    logs = logs_in(small_home.folder, [name])
    judge(logs)
    assert end_of(logs[name]) == ("completed", None)


def test_an_interruption_on_a_full_disk_is_no_fault_of_the_program(small_home: Home) -> None:
    running = run(small_home)
    while running.waits(0.01) and free(small_home.folder) > LARGE:
        pass
    running.tell(signal.SIGINT)
    assert running.ended() in (3, 130)
    mount("-o", f"remount,size={64 * MB}", small_home.folder)
    assert small_home.roots() != []


def free(folder: Path) -> int:
    """Bytes that are left."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
