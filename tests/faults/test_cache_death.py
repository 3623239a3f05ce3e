"""CACHE-1: a process that dies between an outcome and keeping it."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from noetl.node.local import LocalNode
from noetl.ports.cache import CacheFilter
from noetl.server.timers import now
from noetl.settings import Settings

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: t, path: t}
workflow:
  - step: start
    tool:
      - get:
          kind: python
          args: {file: "{{ workload.file }}"}
          code: |
            with open(file, "a") as ran:
                ran.write("x")
            result = 7
          spec: {cache: {key: k, ttl: 60}}
workload: {file: ""}
"""

DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from noetl.node.local import LocalNode
from noetl.settings import Settings

async def main(home, text, file):
    local = await LocalNode.open(Settings(home=Path(home)))
    async def keep(entry, sources):
        os.kill(os.getpid(), signal.SIGKILL)
    local.storage.cache.keep = keep
    active = await local.run_text(text, folder=home, payload={"file": file})
    print(active.execution_id, flush=True)
    await active.finished
    await local.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.rule("CACHE-1")
def test_what_was_recorded_stands_and_the_next_run_calls_the_tool(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    home = tmp_path / "home"
    died = subprocess.run(
        [sys.executable, "-c", DIES, str(home), TEXT, str(ran)],
        capture_output=True,
        check=False,
        env=os.environ,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    execution_id = died.stdout.decode().strip()

    async def afterwards() -> None:
        local = await LocalNode.open(Settings(home=home))
        entries = local.storage.cache
        assert list(await entries.page(CacheFilter(), now=now())) == []
        resumed = await local.resume(execution_id)
        await resumed.finished
        assert (resumed.execution.status, resumed.execution.leaves) == ("completed", {"start": 7})
        assert ran.read_text() == "x", "its outcome was recorded: it did not run again (TASK-9)"
        for _ in range(2):
            again = await local.run_text(TEXT, folder=str(home), payload={"file": str(ran)})
            await again.finished
            assert again.execution.leaves == {"start": 7}
        assert ran.read_text() == "xx", "the next run calls the tool and keeps what it gives"
        assert len(await entries.page(CacheFilter(), now=now())) == 1
        await local.close()

    asyncio.run(afterwards())
