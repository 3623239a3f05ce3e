"""Several processes at one home, and processes that die."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from noetl.adapters.processes import Process
from noetl.adapters.sqlite.storage import open_storage

SCRIPT = Path(__file__).with_name("writing_process.py")


def start(home: Path, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(home), name, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stands_at(home: Path) -> dict[str, int]:
    """Where each execution stands, once row and decisions agree and nothing is damaged."""
    connection = apsw.Connection(str(home / "noetl.db"))
    try:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        rows: dict[str, int] = dict(
            connection.execute("select execution_id, seq from execution_row").fetchall()  # type: ignore[arg-type]
        )
        spans = connection.execute(
            "select execution_id, count(*), min(first_seq), max(last_seq) from decision group by 1"
        ).fetchall()
        assert {name: (n, 1, n) for name, n in rows.items()} == {
            name: tuple(span) for name, *span in spans
        }
        return rows
    finally:
        connection.close()


def test_many_processes_write_at_once_and_none_sees_a_lock(tmp_path: Path) -> None:
    home, names, count = tmp_path / "home", ["p0", "p1", "p2", "p3"], 60
    running = [start(home, name, count) for name in names]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    ended = []
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        _, complaints = process.communicate()
        ended.append((process.returncode, complaints))
    assert ended == [(0, "")] * len(names)
    assert stands_at(home) == {f"{name}.{n}": count for name in names for n in range(4)}


@pytest.mark.rule("EVT-3")
@pytest.mark.parametrize("acknowledged", [1, 2, 17, 60])
def test_what_was_acknowledged_survives_a_killed_writer(tmp_path: Path, acknowledged: int) -> None:
    home = tmp_path / "home"
    with start(home, "p", 1_000_000) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        for line in process.stdout:
            if line == f"{acknowledged}\n":
                process.send_signal(signal.SIGKILL)
                break
        printed = [int(line) for line in process.stdout] or [acknowledged]
    assert process.returncode == -signal.SIGKILL
    found = stands_at(home)
    assert sorted(found) == ["p.0", "p.1", "p.2", "p.3"]
    assert min(found.values()) >= printed[-1]
    assert max(found.values()) <= printed[-1] + 1


async def test_a_killed_owner_is_followed_by_the_next_process(tmp_path: Path) -> None:
    with start(tmp_path / "home", "p", 1_000_000) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("go\n")
        process.stdin.flush()
        while process.stdout.readline() != "1\n":
            pass
        home = await open_storage(tmp_path / "home")
        connection = home.writer.connection
        token = connection.execute("select token from process").fetchall()[0][0]
        await home.writer.transact(
            lambda file: file.execute("update execution set owner = ?", (token,)).fetchall()
        )
        with pytest.raises(Exception, match=f"is run by process {process.pid};"):
            await home.owners.claim("p.0")
        process.kill()
        # It has ended, but nobody has waited for it yet: it still stands in the system's table.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        await home.owners.claim("p.0")
    found = await home.executions.find("p.0")
    await home.close()
    assert found is not None
    assert found.owner == home.owners.me


async def test_the_dead_that_own_nothing_are_struck_out(tmp_path: Path) -> None:
    with start(tmp_path / "home", "p", 1) as process:
        process.communicate("go\n")
    home = await open_storage(tmp_path / "home")
    await home.playbooks.keep("d", "p", "text", None)
    rows = home.writer.connection.execute("select token, pid, ticks, boot from process").fetchall()
    await home.close()
    assert rows == [(home.owners.me, *Process.this())]


class TestProcess:
    def test_this_process_is_alive(self) -> None:
        assert Process.this().alive()

    def test_a_process_of_the_same_number_is_another_one(self) -> None:
        this = Process.this()
        assert this.ticks is not None
        assert not this._replace(ticks=this.ticks - 1).alive()

    def test_nothing_survives_the_machine(self) -> None:
        assert not Process.this()._replace(boot="another").alive()

    def test_without_a_start_the_number_must_do(self) -> None:
        assert Process(Process.this().pid).alive()

    def test_an_ended_process_is_dead_before_and_after_it_is_waited_for(
        self, tmp_path: Path
    ) -> None:
        with start(tmp_path / "home", "p", 1) as process:
            pass
        assert not Process(process.pid).alive()
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        seen = Process(child.pid, _ticks(child.pid))
        assert seen.alive()
        child.kill()
        child.communicate()
        assert not seen.alive()


def _ticks(pid: int) -> int:
    text = Path(f"/proc/{pid}/stat").read_text("utf-8")
    return int(text.rsplit(")", 1)[1].split()[19])
