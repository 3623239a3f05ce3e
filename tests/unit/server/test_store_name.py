"""References name the store that holds them, whichever it is (RES-1)."""

from pathlib import Path

import pytest
from tests.unit.server.test_retention import LARGE

from noetl.messages.reference import Reference
from noetl.node.local import LocalNode
from noetl.settings import Settings
from noetl.tools.table import Toolbox


@pytest.mark.rule("RES-1")
async def test_a_home_in_memory_keeps_its_bodies_there(tmp_path: Path) -> None:
    local = LocalNode.in_memory(Settings(home=tmp_path), Toolbox(tmp_path))
    active = await local.run_text(LARGE, folder=None, payload={})
    await active.finished
    reference = active.execution.ctx["text"]
    assert isinstance(reference, Reference)
    assert reference.store == "memory"
    assert await local.results.fetch(reference) == "x" * 400
    await local.close()
