"""A disk that is full under a parallel loop: said, ended, and gone on with when there is room."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.oracle import end_of, judge, logs_in
from tests.support.processes import Home, Running
from tests.support.steps import Tree, loop, noop, otherwise, playbook, step, task

MB = 1024 * 1024
ITERATIONS, FLIGHT = 200, 8
LIMIT = 10_000
"""`max_payload_bytes`: what is larger lies beside the log."""
EXECS = ("local", "distributed")


def made(size: int) -> Tree:
    """A result of a tool."""
    code = f"result = str(n) + 'x' * {size}"
    return task("makes", "python", code=code, args={"n": "{{ iter.n }}"})


def passed_on(size: int) -> Tree:
    """A value that only a rule has made."""
    return noop("makes", otherwise(set_prev=f"{{{{ 'x' * {size} ~ iter.n }}}}"))


def text_of(work: Tree, where: str) -> str:
    elements = f"{{{{ range({ITERATIONS}) | list }}}}"
    looped = loop(elements, mode="parallel", flight=FLIGHT, exec=where)
    limits = {"policy": {"limits": {"max_payload_bytes": LIMIT}}}
    return playbook(step("start", work, loop=looped), executor={"kind": "local", "spec": limits})


def mount(*words: str | Path) -> None:
    subprocess.run(["mount", *words], check=True)


@pytest.fixture
def small_home(tmp_path: Path) -> Iterator[Home]:
    """On a small file system of its own; needs root, which the suite has in CI."""
    folder = tmp_path / "home"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", f"size={MB}", "tmpfs", folder)
    yield Home(folder)
    give_room(folder)
    subprocess.run(["umount", "-l", folder], check=True)


def give_room(folder: Path) -> None:
    mount("-o", f"remount,size={64 * MB}", folder)


def run(home: Home, text: str) -> Running:
    file = home.folder.with_name("playbook.yaml")
    file.write_text(text)
    return Running(home.folder, "run", file)


@pytest.mark.fault("T8")
@pytest.mark.parametrize("where", EXECS)
@pytest.mark.parametrize("work", [made(9_000), passed_on(20_000)], ids=["in the log", "beside it"])
def test_a_parallel_loop_on_a_full_disk_says_so_and_is_resumed(
    work: Tree, where: str, small_home: Home
) -> None:
    running = run(small_home, text_of(work, where))
    assert running.ended() == 3
    (name,) = small_home.roots()
    assert "no space left" in running.err.lower()
    assert f"noetl resume {name}" in running.err
    give_room(small_home.folder)
    resumed = Running(small_home.folder, "resume", name, name="resumed")
    assert resumed.ended() == 0, resumed.out + resumed.err
    logs = logs_in(small_home.folder, [name])
    judge(logs)
    assert end_of(logs[name]) == ("completed", None)


@pytest.mark.fault("T8")
@pytest.mark.parametrize("where", EXECS)
def test_results_that_find_no_room_leave_nothing_that_hangs(where: str, small_home: Home) -> None:
    """Each fails its task, or stops the run: either way it ends, once, with the reason."""
    running = run(small_home, text_of(made(200_000), where))
    assert running.ended() in (1, 3)
    assert "no space left" in (running.out + running.err).lower()
    (name,) = small_home.roots()
    give_room(small_home.folder)
    if small_home.status(name) == "running":
        resumed = Running(small_home.folder, "resume", name, name="resumed")
        assert resumed.ended() in (0, 1), resumed.out + resumed.err
    judge(logs_in(small_home.folder, [name]))


@pytest.mark.parametrize("where", EXECS)
def test_an_interruption_on_a_full_disk_is_no_fault_of_the_program(
    where: str, small_home: Home
) -> None:
    running = run(small_home, text_of(passed_on(20_000), where))
    while running.waits(0.01) and free(small_home.folder) > 2 * LIMIT:
        pass
    running.tell(signal.SIGINT)
    assert running.ended() in (3, 130)
    give_room(small_home.folder)


def free(folder: Path) -> int:
    """Bytes that are left."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize
