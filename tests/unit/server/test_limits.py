"""Places under a limit, and states of an execution that are no longer the present one."""

from copy import copy

import pytest
from tests.support.cluster import turns, until
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, step

from noetl.control.limits import waiting
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution


@pytest.mark.rule("LIMIT-3")
def test_a_former_state_that_asks_again_takes_no_place_from_the_present_one() -> None:
    """
    An execution is loaded again while its former state is about to ask: the token of the present
    state still hears of its place.
    """
    gate = Gate(ok(1), ok(2))
    found = scenario(
        step("start", arcs=[arc("turn"), arc("turn")], mode="inclusive"),
        step("turn", call("work"), limit={"at_once": 1}),
    ).answers("work", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        (first,) = await gate.held(1)
        await until(lambda: len(list(waiting(active.execution))) == 1)
        await turns()  # it has asked for itself
        local.limits.take_up(copy(active))
        await turns()
        await gate.let_go(first)
        await turns()
        assert len(found.tools.calls) == 2, "the place is free, and nobody was told"
        (second,) = await gate.held(1)
        await gate.let_go(second)

    assert found.act(story).status == "completed"
