"""TASK-10: a step's timeout bounds its loop too, whoever runs the iterations."""

import pytest
from tests.support.canned import Silence
from tests.support.scenario import ok, scenario
from tests.support.steps import arc, call, loop, otherwise, step

from noetl.messages import events as e


@pytest.mark.rule("TASK-10", "LOOP-4", "LOOP-5")
@pytest.mark.parametrize("where", ["local", "distributed"])
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_loop_that_takes_too_long_fails_with_what_it_came_to(mode: str, where: str) -> None:
    silence = Silence()
    looped = loop([1, 2], mode=mode, exec=where, reduce={"seen": "append"})
    late = arc("late", "event.error.kind == 'timeout'", loop="{{ event.loop }}")
    made = scenario(
        step(
            "start",
            call("ask", otherwise(set_ctx={"seen": "{{ iter.n }}"})),
            loop=looped,
            arcs=[late],
            timeout=0.05,
        ),
        step("late", call("tell")),
    )
    ran = made.answers("ask", ok("first"), silence).run()
    assert silence.cancelled == 1
    assert ran.status == "completed"
    assert ran.ctx == {"seen": [1]}
    told = ran.one(e.TokenCreated, step="late").args["loop"]
    assert (told["total"], told["done"], told["results"][:1]) == (2, 1, ["first"])
    assert ran.story("start")[-3:] == ["step.failed", "next.evaluated", "next.fired"]
