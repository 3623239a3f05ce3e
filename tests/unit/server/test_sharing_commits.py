"""Executions that come together are written together, however short they are."""

import asyncio
from pathlib import Path

from tests.support.steps import arc, noop, playbook, step

from noetl.adapters.sqlite.storage import SqliteStorage
from noetl.node.local import LocalNode
from noetl.settings import Settings


async def test_executions_that_are_over_with_their_first_row_share_commits(tmp_path: Path) -> None:
    local = await LocalNode.open(Settings(home=tmp_path))
    text = playbook(step("start", noop("a"), arcs=[arc("more")]), step("more", noop("b")))
    await run(local, text)
    assert isinstance(local.storage, SqliteStorage)
    commits = 0

    def count() -> bool:
        nonlocal commits
        commits += 1
        return False

    local.storage.writer.connection.set_commit_hook(count)
    await asyncio.gather(*(run(local, text) for _ in range(200)))
    await local.close()
    assert commits < 20, "each of 200 executions made a commit of its own"


async def run(local: LocalNode, text: str) -> None:
    active = await local.run_text(text, folder=None, payload={})
    await active.finished
    assert active.execution.status == "completed"
    local.server.release(active.execution.execution_id)
