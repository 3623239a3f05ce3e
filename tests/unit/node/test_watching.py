"""The watch of a run goes on after a fault: what is asked of it later is heard."""

from typing import Any

import pytest
from tests.support.canned import Silence
from tests.support.cluster import until
from tests.support.scenario import scenario
from tests.support.steps import call, step

from noetl.node import control_plane


async def test_a_watch_that_fell_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """An order that another process leaves afterwards is obeyed."""
    made = scenario(step("start", call("one")))
    made.answers("one", Silence())
    monkeypatch.setattr(control_plane, "AGAIN", 0.01)
    local = made.local()
    obey = local.ownership.obey
    fell: list[bool] = []

    async def falls_once(notes: Any) -> None:
        if not fell:
            fell.append(True)
            raise KeyError("a hole in the watch")
        await obey(notes)

    monkeypatch.setattr(local.ownership, "obey", falls_once)
    active = await local.run_text(made.text, folder=None, payload={}, execution_id="x1")
    await until(lambda: made.tools.calls)
    await until(lambda: fell)
    await made.home.beside("2").inbox.leave("x1", "cancel", {"reason": "enough"})
    await until(active.finished.done)
    assert active.execution.status == "cancelled"
    await local.close()
