"""Places under a limit, and states of an execution that are no longer the present one."""

from copy import copy
from typing import Any, cast

import msgspec
import pytest
from tests.support.cluster import turns, until
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, step

from noetl.adapters.memory.storage import MemoryStorage
from noetl.control.limits import waiting
from noetl.node.local import LocalNode
from noetl.ports.limits import LimitClaim
from noetl.server.active import ActiveExecution
from noetl.server.limits import LimitKeeper


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


@pytest.mark.rule("LIMIT-2", "LIMIT-3")
async def test_a_place_in_a_pool_is_none_under_the_limit_of_the_playbook() -> None:
    """A start that was to be refused was told that it had its place, and began for ever."""
    limits = MemoryStorage().limits
    keeper = LimitKeeper(cast(Any, None), limits, print)
    own = LimitClaim(execution_id="b", group="p", at_once=1)
    part = LimitClaim(execution_id="b", holder="part 5.0/0", group=":pool default", total=2)
    await limits.take([msgspec.structs.replace(own, execution_id="a"), own, part])
    assert await keeper.withdraw("b")
