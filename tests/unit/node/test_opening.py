"""What a server waits for while it opens and serves is said."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cluster import until

from noetl.adapters.sqlite import locks
from noetl.node.server import ServerNode
from noetl.settings import Settings

HOLDS = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.execute("begin immediate")
print("held", flush=True)
sys.stdin.read()
"""


async def test_a_server_says_that_another_program_has_locked_its_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "QUIET", 0.01)
    said: list[str] = []
    node = await ServerNode.open(Settings(home=tmp_path), says=said.append)
    words = [sys.executable, "-c", HOLDS, str(tmp_path / "noetl.db")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as foreigner:
        assert foreigner.stdout is not None
        assert foreigner.stdout.readline() == b"held\n"
        term = node.storage.owners.term()
        drawing = asyncio.ensure_future(term)
        await until(lambda: any(f"process {foreigner.pid}" in words for words in said))
        foreigner.kill()
    await drawing
    await node.close()
