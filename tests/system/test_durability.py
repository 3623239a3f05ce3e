"""Nothing is acknowledged, and nothing touches the world, before it is durable (T20, promise 8)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.deaths import answer_of
from tests.support.disturbed import PLAYBOOKS
from tests.support.watched_disk import Seen, watched_disk

from noetl.adapters.files.object_store import FileObjectStore
from noetl.adapters.sqlite.storage import open_storage
from noetl.messages.outcome import Outcome
from noetl.node.local import LocalNode
from noetl.ports.commit import Commit
from noetl.ports.event_log import Decision
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings
from noetl.tools.tool import ToolCall, Workplace


class WatchingTools(CannedTools):
    """Tools that look at the disk when they are called."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self._seen = seen
        self.safe: list[bool] = []

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del workplace
        self.safe.append(self._seen.safe)
        return answer_of(call)


def watch_answers(local: LocalNode, seen: Seen) -> list[bool]:
    """Whether the disk had it, for each answer of the log."""
    safe: list[bool] = []
    append = local.storage.log.append

    def watched(decision: Decision, *, alone: bool = False) -> Commit:
        commit = append(decision, alone=alone)
        commit.add_done_callback(lambda _: safe.append(seen.safe))
        return commit

    setattr(local.storage.log, "append", watched)  # noqa: B010
    return safe


@pytest.mark.fault("T20")
@pytest.mark.rule("EVT-3", "TASK-9")
@pytest.mark.parametrize("name", ["chain", "counted", "pages", "round_trip"])
def test_a_sync_comes_before_every_answer_and_every_effect(name: str, tmp_path: Path) -> None:
    async def whole(seen: Seen) -> tuple[list[bool], list[bool]]:
        # One thing at a time, so that an open write is always the one that is answered.
        settings = Settings(home=tmp_path, run_ahead=False)
        tools = WatchingTools(seen)
        home = await open_storage(tmp_path)
        local = LocalNode(
            settings, home, results=ResultStore(FileObjectStore(tmp_path / "results")), tools=tools
        )
        answers = watch_answers(local, seen)
        active = await local.run_text(PLAYBOOKS[name](), folder=None, payload={"url": "x"})
        await active.finished
        await local.close()
        return answers, tools.safe

    with watched_disk() as seen:
        answers, effects = asyncio.run(whole(seen))
        assert (seen.writes > 0, seen.syncs >= len(answers)) == (True, True)
    assert answers == [True] * len(answers)
    assert effects == [True] * len(effects)
    assert len(effects) >= 5
