"""What runs in memory is verified as what runs on disk is."""

import asyncio
from pathlib import Path

import pytest
from tests.support.steps import noop, playbook, step
from tests.support.verification import KEPT

from noetl.node.local import LocalNode
from noetl.settings import Settings
from noetl.tools.table import Toolbox


def test_a_home_in_memory_is_verified_when_it_is_closed(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    async def ran() -> None:
        local = LocalNode.in_memory(Settings(home=tmp_path), Toolbox(tmp_path))
        text = playbook(step("start", noop("work")))
        await local.run_text(text, folder=None, payload={})
        await local.close()

    before = request.config.stash[KEPT].count
    asyncio.run(ran())
    assert request.config.stash[KEPT].count == before + 1
