"""
Many runs of the program, each a process of its own that can be killed.

A process that has imported everything already is forked for each run: what runs is the program
as it is, but its start costs next to nothing, so that hundreds of deaths fit into a test.
"""

import json
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir, suppress
from functools import cache
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw

from noetl.messages import events as e
from noetl.messages.codec import decode_events

PATIENCE = 600.0
"""Seconds before a process that hangs fails its test; never a time that is expected to pass."""
Effect = tuple[str, int]
"""Idempotency key and attempt of one call."""

ROOT = Path(__file__).parents[2]
_nursery = multiprocessing.get_context("forkserver")
_nursery.set_forkserver_preload(
    [
        "tests.support.processes",
        "noetl.cli.main",
        "noetl.cli.run",
        "noetl.cli.replay",
        "noetl.cli.running.plain",
        "noetl.cli.events",
        "noetl.cli.execute",
        "noetl.cli.explain",
        "noetl.cli.listing",
        "noetl.cli.logs",
        "noetl.cli.orders",
        "noetl.cli.register",
        "noetl.cli.server",
        "noetl.cli.status",
        "noetl.cli.validate",
        "noetl.cli.worker",
        "noetl.tools.http.tool",
        "noetl.tools.python.tool",
        "noetl.tools.playbook",
        # What every server and every worker imports first of all, libraries included.
        "litestar.app",
        "noetl.adapters.nats.switchboard",
        "noetl.adapters.postgres.storage",
        "noetl.api.serve",
        "noetl.cli.background.serving",
        "noetl.cli.background.working",
        "noetl.keychain.keychain",
        "noetl.node.server",
        "noetl.node.work_plane",
        "noetl.worker.iterations",
        "noetl.worker.nested",
        "litestar.exceptions.responses",
        "litestar.middleware.allowed_hosts",
        "litestar.middleware.csrf",
        "litestar.middleware.response_cache",
        "litestar.plugins.attrs",
        "litestar.plugins.pydantic",
        "noetl.adapters.nats.link",
        "noetl.adapters.nats.wakes",
        "noetl.adapters.postgres.object_store",
        "noetl.cli.background.door",
        "noetl.cli.background.sharding",
        "noetl.exports.export",
        "noetl.node.archiving",
        "noetl.tools.sql.values",
        "noetl.worker.masked_results",
        "noetl.worker.workplace",
        "pydantic.v1",  # Litestar asks it about every type wherever it is installed
        "pydantic.networks",
        "pydantic.type_adapter",
        "uvicorn.lifespan.on",
        "uvicorn.protocols.http.httptools_impl",
        "uvloop",
        "tests.support.frozen",
    ]
)


@cache
def ready() -> None:
    """
    The process that others are forked from begins in a folder of ours: it would take a module of
    the folder that a test is in for one of the library's.
    """
    with chdir(ROOT):
        ensure_running()


class Running:
    """One run of `noetl`, in a session of its own."""

    def __init__(self, home: Path, *words: str | Path, name: str = "said", **more: str) -> None:
        self._out = home.with_name(f"{name}.out")
        self._err = home.with_name(f"{name}.err")
        environment = {"NOETL_HOME": str(home), **more}
        given = ([str(word) for word in words], environment, self._out, self._err)
        self.process = _nursery.Process(target=_become, args=given)
        ready()
        self.process.start()

    @property
    def pid(self) -> int:
        assert self.process.pid is not None, "the process has started"
        return self.process.pid

    def kill(self) -> None:
        """Death without warning; a process that has ended is left in peace."""
        self.process.kill()

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def waits(self, seconds: float) -> bool:
        """Whether it still runs after so long; returns at once when it ends."""
        self.process.join(seconds)
        return self.process.is_alive()

    def ended(self, patience: float = PATIENCE) -> int:
        """Its exit code; below 0 for a signal."""
        assert not self.waits(patience), f"{self.pid} does not end: {self.err}"
        assert self.process.exitcode is not None, "the process has ended"
        assert "Traceback" not in self.out + self.err, self.out + self.err
        assert "internal error" not in self.err, self.err
        return self.process.exitcode

    @property
    def out(self) -> str:
        return self._out.read_text() if self._out.exists() else ""

    @property
    def err(self) -> str:
        return self._err.read_text() if self._err.exists() else ""

    def answer(self) -> Any:
        """The JSON that it printed."""
        self.ended()
        return json.loads(self.out)


def _become(words: Sequence[str], environment: dict[str, str], out: Path, err: Path) -> None:
    """Turn this fresh process into the program."""
    os.setsid()
    os.environ.update(environment)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    from noetl.cli.main import main

    code = main(words)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def ran(
    words: Sequence[str], stdin: bytes, environment: Mapping[str, str]
) -> tuple[int, bytes, bytes]:
    """One run from its first word to its end: the code, what it printed, what it complained."""
    with TemporaryDirectory(prefix="ran-") as folder:
        (Path(folder) / "in").write_bytes(stdin)
        given = (words, dict(environment), os.getcwd(), folder)
        process = _nursery.Process(target=_run, args=given)
        ready()
        process.start()
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
        out, err = ((Path(folder) / name).read_bytes() for name in ("out", "err"))
        assert process.exitcode is not None, "it has ended"
        return process.exitcode, out, err


def _run(words: Sequence[str], environment: dict[str, str], here: str, folder: str) -> None:
    """Turn this fresh process into the program as a shell starts it."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(here)
    writes = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, name, how in ((0, "in", os.O_RDONLY), (1, "out", writes), (2, "err", writes)):
        os.dup2(os.open(f"{folder}/{name}", how, 0o600), number)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.argv = ["noetl", *words]
    from noetl.__main__ import start

    sys.exit(start())


class Home:
    """A home as the disk has it, whatever became of its processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def rows(self, statement: str, *parameters: Any) -> list[Any]:
        if not (self.folder / "noetl.db").exists():
            return []
        connection = apsw.Connection(str(self.folder / "noetl.db"))
        try:
            connection.set_busy_timeout(int(PATIENCE * 1000))
            return connection.execute(statement, parameters).fetchall()
        except apsw.SQLError:  # its tables are not made yet
            return []
        finally:
            connection.close()

    def roots(self) -> list[str]:
        """The executions that are nobody's children, oldest first."""
        found = self.rows(
            "select execution_id from execution where parent_execution_id is null order by 1"
        )
        return [row[0] for row in found]

    def names(self) -> list[str]:
        return [row[0] for row in self.rows("select execution_id from execution order by 1")]

    def decisions(self) -> int:
        """How many rows the log has."""
        found = self.rows("select count(*) from decision")
        return int(found[0][0]) if found else 0

    def status(self, name: str) -> str:
        return str(self.rows("select status from execution where execution_id = ?", name)[0][0])

    def events(self, name: str) -> list[e.Event]:
        """The log of one execution; its numbers are shown to be without a gap."""
        found = self.rows(
            "select first_seq, last_seq, events from decision where execution_id = ? order by 1",
            name,
        )
        events: list[e.Event] = []
        for first, last, text in found:
            assert first == len(events) + 1, f"{name}: a gap before {first}"
            events += decode_events(text.encode() if isinstance(text, str) else text)
            assert last == len(events), f"{name}: {last} is not the number of the last event"
        return events

    def recorded(self) -> list[Effect]:
        """Every recorded outcome, as its effect is named."""
        return [
            (f"{name}-{event.task_run_id}", event.attempt)
            for name in self.names()
            for event in self.events(name)
            if isinstance(event, e.TaskDone)
        ]
