"""Executions that come together are written together; what is alone waits for no thread."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.steps import arc, loop, noop, playbook, step, task

from noetl.adapters.sqlite.storage import SqliteStorage
from noetl.control import waits
from noetl.control.execution import Execution
from noetl.control.waits_held import pending
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode
from noetl.pipeline.frame import TaskWait
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


async def test_steps_beside_iterations_that_wait_are_written_as_if_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits has no part: a loop of nothing else has nothing to tell meanwhile."""
    local = await LocalNode.open(Settings(home=tmp_path, run_ahead=False))
    text = playbook(
        step("start", noop("s"), arcs=[arc("crowd"), arc("gate")], mode="inclusive"),
        step(
            "crowd",
            task("wait", "wait", signal="never"),
            loop=loop([1, 2], mode="parallel", flight=2),
        ),
        step("gate", task("go", "wait", signal="go"), arcs=[arc("one")]),
        step("one", noop("a"), arcs=[arc("two")]),
        step("two", noop("b")),
    )
    active = await local.run_text(text, folder=None, payload={})
    await active.passes(lambda: sum(1 for _ in pending(active.execution)) < 3)
    await active.settled()
    assert isinstance(local.storage, SqliteStorage)
    threads: list[int] = []
    looks: list[Execution] = []

    def note() -> bool:
        threads.append(threading.get_ident())
        return False

    def counted(execution: Execution) -> Iterator[TaskWait]:
        looks.append(execution)
        return pending(execution)

    local.storage.writer.connection.set_commit_hook(note)
    monkeypatch.setattr(waits, "pending", counted)
    await local.signal(active.execution_id, SendSignal(signal="go"))
    await active.passes(lambda: "two" not in active.execution.tallies)
    await active.settled()
    local.storage.writer.connection.set_commit_hook(None)
    assert {*threads} == {threading.get_ident()}, "a commit was handed to the writing thread"
    assert len(looks) == 1, "who waits for a signal is looked for once"
    await local.order(active.execution_id, "cancel")
    await active.finished
    await local.close()
