"""A lock that another program holds is told, and not waited for in silence or for ever."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.contracts.homes import SqliteHomes, answer_of, decision

from noetl.adapters.sqlite.storage import open_storage
from noetl.errors import LogUnavailable

HOLDS = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("begin immediate")
print("held", flush=True)
sys.stdin.read()
"""

QUEUES = """
import fcntl, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
file = open(sys.argv[1], "r+b")
fcntl.lockf(file, fcntl.LOCK_EX)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path: Path) -> SqliteHomes:
    return SqliteHomes(tmp_path)


@pytest.fixture
def foreigner(home: SqliteHomes) -> Iterator["subprocess.Popen[bytes]"]:
    """Another program, which has begun to write and does not end."""
    asyncio.run(made(home))
    words = [sys.executable, "-c", HOLDS, str(home.folder / "noetl.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


@pytest.fixture
def crowd(tmp_path: Path, foreigner: "subprocess.Popen[bytes]") -> Iterator[None]:
    """
    Two others at a lock that is no business of ours: one has it, one waits for it.

    They come later and on the first processor: the system lists them before the foreigner.
    """
    assert foreigner.poll() is None
    file = tmp_path / "theirs"
    file.touch()
    with ExitStack() as both:
        words = [sys.executable, "-c", QUEUES, str(file)]
        for _ in range(2):
            process = both.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE))
            both.callback(process.kill)
        place = f":{file.stat().st_ino}"
        while not any("->" in line and place in line for line in locks()):
            os.sched_yield()
        yield


def locks() -> list[str]:
    return Path("/proc/locks").read_text("utf-8").splitlines()


async def made(homes: SqliteHomes) -> None:
    home = await homes.open()
    await home.log.append(decision("a", 0))
    await homes.close_all()


async def test_a_lock_is_waited_for_with_a_word(
    home: SqliteHomes, foreigner: "subprocess.Popen[bytes]"
) -> None:
    told: list[str] = []
    opened = await open_storage(home.folder, patience=600, says=told.append)
    opened.writer._locks._quiet = 0.0
    appending = opened.log.append(decision("a", 1))
    assert len(await opened.log.read("a")) == 1, "reading needs no lock"
    while not told:
        await asyncio.sleep(0)
    assert not appending.done()
    foreigner.kill()
    await appending
    await opened.close()
    file = home.folder / "noetl.db"
    assert told[0].startswith(f"waiting for {file}: process {foreigner.pid} (")
    assert told[-1] == f"{file} is free again"


@pytest.mark.usefixtures("crowd")
async def test_a_lock_that_stays_ends_in_a_refusal(
    home: SqliteHomes, foreigner: "subprocess.Popen[bytes]"
) -> None:
    told: list[str] = []
    opened = await open_storage(home.folder, patience=0.05, says=told.append)
    with pytest.raises(LogUnavailable, match=r"process \d+ .* has locked .*noetl.db .* try again"):
        await opened.log.append(decision("a", 1))
    with pytest.raises(LogUnavailable, match="has locked"):
        await opened.owners.claim("a")
    assert len(told) > 0
    assert len(await opened.log.read("a")) == 1
    foreigner.kill()
    foreigner.wait()
    opened.log.forget("a")
    assert await answer_of(opened.log.append(decision("a", 1))) == "ok"
    await opened.close()
