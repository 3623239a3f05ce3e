"""TPL-5: the templates of one decision share their turns; what takes long is decided elsewhere."""

import asyncio
from typing import Any

import pytest
from tests.support.scenario import Gate, ok, scenario
from tests.support.steps import arc, call, noop, step

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.execution import Execution
from noetl.expression.limits import LARGEST_LOADED
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.reference import Reference
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution

LONG = "range(99999) | sum == {}"
RIGHT = 99998 * 99999 // 2


def routed(guards: list[str], **roots: Any) -> Any:
    arcs = [arc("there", guard) for guard in guards]
    return scenario(
        step("start", call("ask"), arcs=[*arcs, arc("elsewhere")]),
        step("there", noop("rest")),
        step("elsewhere", noop("rest")),
        **roots,
    ).answers("ask", ok({"n": 1}))


@pytest.mark.rule("TPL-5", "NEXT-3")
def test_one_long_guard_is_evaluated_and_decides() -> None:
    ran = routed([LONG.format(RIGHT)]).run()
    assert ran.status == "completed"
    assert ran.one(e.NextFired).to == "there"


@pytest.mark.rule("TPL-5")
def test_the_guards_of_one_decision_share_their_turns() -> None:
    """Ten of them had taken ten million, and a server eleven seconds for fifty."""
    ran = routed([LONG.format(n) for n in range(50)]).run()
    assert ran.status == "failed"
    assert "more than 1,000,000 turns" in ran.error["message"]


@pytest.mark.rule("TPL-5")
def test_so_do_those_of_the_workload() -> None:
    declared = {f"k{n}": f"{{{{ {LONG.format(n)} }}}}" for n in range(50)}
    ran = routed(["true"], workload=declared).run()
    assert ran.status == "failed"
    assert "more than 1,000,000 turns" in ran.error["message"]


@pytest.mark.rule("TPL-5")
def test_the_workload_may_take_long() -> None:
    ran = routed(["workload.long"], workload={"long": f"{{{{ {LONG.format(RIGHT)} }}}}"}).run()
    assert ran.one(e.NextFired).to == "there"


@pytest.mark.parametrize("hurried", [True, False])
def test_whoever_is_hurried_is_told_that_it_takes_long(hurried: bool) -> None:
    made = routed(["true"], workload={"long": f"{{{{ {LONG.format(RIGHT)} }}}}"})
    start = r.StartExecution(execution_id="x1", path="p", digest="d")
    found = decide(made.plan, Execution(execution_id="x1"), start, at=1, hurried=hurried)
    assert (found == Needs((), time=True)) is hurried


@pytest.mark.rule("TPL-5", "RES-2")
def test_no_server_loads_a_huge_value_for_a_template() -> None:
    """Two gibibytes of a stream had been loaded for `event.result.stdout | length`."""
    huge = Reference(
        store="memory", key=f"x1/{'0' * 64}", size=LARGEST_LOADED + 1, checksum="0" * 64
    )
    made = scenario(
        step("start", call("ask"), arcs=[arc("there", "event.result.out | length > 1")]),
        step("there", noop("rest")),
    ).answers("ask", ok({"out": huge}))
    ran = made.run()
    assert ran.status == "failed"
    assert "more than 256 MiB" in ran.error["message"]


@pytest.mark.rule("TPL-5", "NEXT-8")
def test_what_comes_while_a_long_decision_is_made_is_decided_after_it() -> None:
    made = routed([LONG.format(RIGHT)])
    ask = Gate(ok(1))
    made.answers("ask", ask)

    async def story(node: LocalNode, active: ActiveExecution) -> None:
        (held,) = await ask.held(1)
        await ask.let_go(held)
        while not active.inputs:
            await asyncio.sleep(0)
        node.server.receive(active, r.CancelExecution(reason="enough"))
        assert len(active.inputs) == 2

    ran = made.act(story)
    assert ran.one(e.NextFired).to == "there"
    assert ran.status == "cancelled"
    assert ran.names.index("next.fired") < ran.names.index("execution.cancelled")
