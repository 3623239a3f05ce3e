"""The control plane against chance: any plan, any order, any repetition, any crash."""

from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.plans import executors, planned, steps_of
from tests.support.searching import examples
from tests.support.simulation import World
from tests.support.steps import (
    Tree,
    arc,
    call,
    loop,
    noop,
    otherwise,
    sets,
    step,
    when,
)

from noetl.errors import PlaybookRejected
from noetl.messages import events as e
from noetl.playbook.plan import Plan


def plan_of(steps: list[Tree], executor: Tree) -> Plan:
    extra = [step("last", call("tidy"))] if "final_step" in executor["spec"] else []
    try:
        return planned(*steps, *extra, executor=executor)
    except PlaybookRejected:
        assume(False)
        raise


@pytest.mark.rule("EVT-5", "EVT-3", "NEXT-5", "NEXT-6", "TASK-9", "LOOP-4")
@examples(700)
@given(steps=steps_of(), executor=executors(), seed=st.integers(0, 2**32))
def test_every_plan_comes_to_one_end(steps: list[Tree], executor: Tree, seed: int) -> None:
    World(plan_of(steps, executor), Random(seed), faults=False).run()


@pytest.mark.rule("EVT-5", "EVT-3", "NEXT-8", "TASK-9", "WRK-1")
@examples(700)
@given(steps=steps_of(), executor=executors(), seed=st.integers(0, 2**32))
def test_no_fault_changes_what_is_true(steps: list[Tree], executor: Tree, seed: int) -> None:
    World(plan_of(steps, executor), Random(seed), faults=True).run()


MEETING = [
    step("s0", arcs=[arc("a"), arc("b"), arc("c")], mode="inclusive"),
    *[step(name, call(f"ask_{name}"), arcs=[arc("meet", who=name)]) for name in ("a", "b", "c")],
]


@pytest.mark.fault("T17")
@pytest.mark.rule("NEXT-7")
@examples(300)
@given(
    mode=st.sampled_from(["all", "any", 1, 2, 3]),
    back=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
    guard=st.sampled_from([True, "event.name == 'step.done'"]),
    seed=st.integers(0, 2**32),
    faults=st.booleans(),
)
def test_joins_do_what_a_petri_net_does(
    mode: Any, back: list[str], guard: Any, seed: int, faults: bool
) -> None:
    """Three sources, some of which fail, and cycles back to any of them (T17)."""
    meet = step(
        "meet",
        sets("count", n="{{ (ctx.n | default(0)) + 1 }}"),
        join={"from": ["c", "a", "b"], "mode": mode},
        arcs=[arc(name, "ctx.n < 3") for name in back],
        mode="inclusive",
    )
    sources = [
        {**one, "next": {"arcs": [arc("meet", guard, who=one["step"])]}} for one in MEETING[1:]
    ]
    limits = {"spec": {"policy": {"limits": {"max_step_runs": 40}}}}
    World(plan_of([MEETING[0], *sources, meet], limits), Random(seed), faults=faults).run()


WRITES = [
    otherwise(set_ctx={"k": "{{ iter.n }}"}, set_prev="{{ iter.n }}"),
    when("iter.n == 2", "fail"),
    when("iter.index == 1", "break"),
]


@pytest.mark.rule("LOOP-5", "LOOP-6", "LOOP-4")
@examples(250)
@given(
    elements=st.lists(st.integers(0, 4), max_size=6),
    where=st.sampled_from(["local", "distributed"]),
    how=st.sampled_from(["sum", "min", "max", "append", "count", "first", "last"]),
    rule=st.sampled_from(WRITES),
    flight=st.integers(1, 4),
    seeds=st.tuples(st.integers(0, 2**32), st.integers(0, 2**32)),
)
def test_a_loop_with_reducers_comes_to_the_same_in_any_order(
    elements: list[int], where: str, how: str, rule: Tree, flight: int, seeds: tuple[int, int]
) -> None:
    """One after the other without faults, and at once with them: the same ctx and results."""
    ends = []
    for mode, seed, faults in (("sequential", 0, False), ("parallel", seeds[1], True)):
        policy: Tree = {"exec": where, "on_failure": "continue", "reduce": {"k": how}}
        looped = loop(elements, mode=mode, flight=flight, **policy)
        work = noop("work", otherwise(set_ctx={"k": "{{ iter.n + 1 }}"}))
        plan = plan_of([step("s0", work, noop("more", rule), loop=looped)], NO_LIMITS)
        world = World(plan, Random(seed), faults=faults)
        world.stops = False
        world.run()
        done = [event for event in world.log if type(event) is e.LoopDone]
        if world.state.failures:  # three leases were lost: nothing to compare
            assert world.state.failures[0].error["kind"] == "worker_lost"
            return
        ends.append((world.state.ctx, done[0].results, done[0].failed))
    assert ends[0] == ends[1]


NO_LIMITS: Tree = {"spec": {}}
