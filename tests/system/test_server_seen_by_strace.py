"""What the kernel sees of a server: each start is synced before its answer leaves."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.support.asking import asking
from tests.support.fleet import PATIENCE, free_port
from tests.support.strace import Seen, seen_in, strace
from tests.system.program import NOETL

from noetl.client.client import Client
from noetl.errors import ServerAway, ServerRefused

TEXT = """apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: seen, path: tests/seen}
workload: {mark: none}
workflow:
  - step: start
    tool:
      - rest: {kind: noop}
"""
STARTS = 3
ANSWERS = ("write", "writev", "sendto", "sendmsg")


def started_under_strace(folder: Path) -> tuple[list[str], list[Seen]]:
    """The ids of some executions, as answered one after the other, and what the kernel saw."""
    log, port = folder / "calls", free_port()
    words = [NOETL, "server", "start", "--foreground", "--open", "--port", str(port)]
    home = {"NOETL_HOME": str(folder / "home"), "NOETL_SERVER": "", "NOETL_DB": ""}
    traced = strace(log, "pwrite64", "fsync", "fdatasync", *ANSWERS)
    server = subprocess.Popen(
        [*traced, *words], env={**os.environ, **home}, stderr=subprocess.DEVNULL
    )
    try:
        with Client(f"http://127.0.0.1:{port}") as client:
            ready(client, server)
            client.register(TEXT)
            ids = [
                client.execute("tests/seen", payload={"mark": f"mark-{n}"}).execution_id
                for n in range(STARTS)
            ]
    finally:
        end(server)
    return ids, seen_in(log)


def ready(client: Client, server: "subprocess.Popen[bytes]") -> None:
    for _ in asking(lambda: "it does not answer", PATIENCE):
        with suppress(ServerAway, ServerRefused):
            client.ready()
            return
        assert server.poll() is None, "it ended"


def end(strace_process: "subprocess.Popen[bytes]") -> None:
    """The server is told to stop; strace ends with it."""
    until = time.monotonic() + PATIENCE
    children = Path(f"/proc/{strace_process.pid}/task/{strace_process.pid}/children")
    for child in children.read_text().split():
        os.kill(int(child), signal.SIGTERM)
    strace_process.wait(until - time.monotonic())


@pytest.mark.fault("T20")
@pytest.mark.rule("EVT-3", "SRV-2")
def test_a_start_is_synced_before_it_is_answered(tmp_path: Path) -> None:
    ids, calls = started_under_strace(tmp_path)
    for number, execution_id in enumerate(ids):
        written = next(
            place
            for place, call in enumerate(calls)
            if call.on_journal and call.name == "pwrite64" and f"mark-{number}" in call.rest
        )
        synced = next(place for place, call in enumerate(calls) if place > written and call.is_sync)
        answered = next(
            place
            for place, call in enumerate(calls)
            if call.name in ANSWERS and "socket:" in call.rest and execution_id in call.rest
        )
        assert written < synced < answered, f"start {number}: {written}, {synced}, {answered}"
