"""A continuous export beside a busy log: `kill -9` of the exporter, of connections, of a server."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.support.postgres import Database
from tests.support.steps import arc, noop, playbook, step
from tests.system.program import NOETL
from tests.system.running import Running
from tests.system.servers import NEUTRAL, node

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.postgres.storage import open_storage as open_postgres
from noetl.node.local import LocalNode
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings
from noetl.tools.table import Toolbox

pytestmark = pytest.mark.rule("EVT-6")

TEXT = playbook(
    step("a", noop("n"), arcs=[arc("b")]),
    step("b", noop("n")),
    metadata={"name": "short", "path": "tests/short"},
)
DEATHS = 5


class Exporting:
    """An exporter that is started again as often as a test likes."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._environment = environment

    @contextmanager
    def started(self, *words: str) -> Iterator[Running]:
        given = {**os.environ, **NEUTRAL, "PYTHONUNBUFFERED": "1", **self._environment}
        command = [NOETL, "export", "--follow", "--format", "jsonl", "-o", str(self.folder)]
        process = subprocess.Popen(
            [*command, "--every", "0", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=given,
        )
        try:
            yield Running(process)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(600)
            assert process.stdout is not None
            process.stdout.close()

    def events(self) -> list[tuple[str, int]]:
        files = sorted(self.folder.glob("events-*.jsonl"))
        lines = (json.loads(line) for file in files for line in file.read_bytes().splitlines())
        return sorted((line["execution_id"], line["seq"]) for line in lines)

    def is_open(self) -> bool:
        """Whether something that was seen has not come to its end here."""
        return bool(json.loads((self.folder / "position.json").read_bytes())["open"])


def of(rows: list[Any]) -> list[tuple[str, int]]:
    return sorted((name, seq) for name, last in rows for seq in range(1, last + 1))


def test_postgres_loses_nothing_and_gives_nothing_twice(
    log_database: Database, tmp_path: Path
) -> None:
    exporting = Exporting(
        tmp_path / "out", NOETL_HOME=str(tmp_path / "home"), NOETL_DB=log_database.url
    )

    async def work(turn: asyncio.Semaphore, stop: asyncio.Event) -> list[Any]:
        local = LocalNode(
            Settings(home=tmp_path / "home"),
            await open_postgres(log_database.url),
            results=ResultStore(MemoryObjectStore()),
            tools=Toolbox(tmp_path),
        )
        try:
            while not stop.is_set():
                await turn.acquire()  # not so fast that nobody could follow
                begun = [await local.run_text(TEXT, folder=None, payload={}) for _ in range(5)]
                await asyncio.gather(*(active.finished for active in begun))
        finally:
            await local.close()
        with psycopg.connect(log_database.url) as connection:
            return connection.execute("select execution_id, seq from noetl.execution").fetchall()

    def disturb(more: Callable[[], None]) -> None:
        for number in range(DEATHS):
            more()
            with exporting.started() as process:
                process.wait_for("exported")
                more()
                if number % 2:  # and the connections of everybody, the writer's too
                    with psycopg.connect(log_database.url, autocommit=True) as connection:
                        connection.execute(
                            "select pg_terminate_backend(pid) from pg_stat_activity "
                            "where datname = current_database() and pid <> pg_backend_pid()"
                        )
                    more()
                    process.wait_for("exported")

    async def both() -> list[Any]:
        turn, stop = asyncio.Semaphore(4), asyncio.Event()
        loop = asyncio.get_running_loop()

        def more() -> None:
            for _ in range(4):
                loop.call_soon_threadsafe(turn.release)

        working = asyncio.ensure_future(work(turn, stop))
        await asyncio.to_thread(disturb, more)
        stop.set()
        turn.release()
        return await working

    rows = asyncio.run(both())
    with exporting.started() as process:
        while exporting.events() != of(rows):
            process.wait_for("exported")
    assert len(rows) > 5 * DEATHS
    assert not exporting.is_open()
    assert len(exporting.events()) == len(set(exporting.events()))


def test_a_server_that_dies_is_waited_for(tmp_path: Path) -> None:
    with node(tmp_path / "home", "--open") as up:
        exporting = Exporting(
            tmp_path / "out", NOETL_HOME=str(tmp_path / "other"), NOETL_SERVER=up.url
        )
        assert up.there("register", "-", stdin=TEXT.encode()).code == 0
        port = up.url.rpartition(":")[2]
        assert up.there("execute", "tests/short", "--wait").code == 0
        with exporting.started() as process:
            process.wait_for("exported")
            os.kill(up.status()["pid"], signal.SIGKILL)
            assert "nothing is lost" in process.wait_for("tried again")
            up.start("--open", "--port", port)
            assert up.there("execute", "tests/short", "--wait").code == 0
            process.wait_for("exported")
            listed = up.there("list", "--json").objects()
            while exporting.events() != of([(row["execution_id"], row["seq"]) for row in listed]):
                process.wait_for("exported")
        assert len(listed) == 2
