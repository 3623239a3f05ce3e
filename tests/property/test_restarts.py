"""Restarts against chance: any plan, any fate, any choice; then again, from the restart (RST)."""

from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.support.plans import executors, planned, steps_of
from tests.support.searching import examples
from tests.support.simulation import World
from tests.support.steps import Tree, call, step

from noetl.control.forgetting import History, Recorded, RunAgain, choose, described, wanted
from noetl.control.restarting import Successor, take_over
from noetl.errors import PlaybookRejected, RestartRefused
from noetl.messages import events as e
from noetl.messages.codec import decode, encode
from noetl.messages.requests import KeptState
from noetl.playbook.plan import Plan


def plan_of(steps: list[Tree], executor: Tree) -> Plan:
    extra = [step("last", call("tidy"))] if "final_step" in executor["spec"] else []
    try:
        return planned(*steps, *extra, executor=executor)
    except PlaybookRejected:
        assume(False)
        raise


def history_of(world: World) -> History:
    events = [Recorded(number, 0, event) for number, event in enumerate(world.log, 1)]
    return History(events, world.plan)


def some_choice(history: History, random: Random) -> RunAgain | None:
    """What failed, a run, or iterations of a loop; None where nothing can be chosen so."""
    runs = [run for run in history.runs.values() if run.step != history.plan.final]
    wishes: list[str] = []
    if runs and random.random() < 0.7:
        run = random.choice(runs)
        wishes = [f"{run.step}@{run.run_id}"]
        if run.begun and random.random() < 0.7:
            indexes = random.sample(sorted(run.begun), random.randint(1, len(run.begun)))
            wishes = [f"{run.step}@{run.run_id}:{','.join(map(str, indexes))}"]
    try:
        return choose(history, map(wanted, wishes))
    except RestartRefused:
        assert not wishes, "what has run can be chosen"
        return None


def restarted(world: World, random: Random, *, faults: bool) -> World | None:
    history = history_of(world)
    choice = some_choice(history, random)
    if choice is None:
        return None
    try:
        kept = take_over(history, choice, Successor("x1", world.plan, "files"), {}).state
    except RestartRefused as refused:
        if "stays recorded" not in str(refused):
            raise
        return None
    assert decode(encode(kept), KeptState) == kept, "what is kept can be written and read"
    read_again = choose(history, map(wanted, described(history, choice)))
    assert not choice.runs or read_again.runs == choice.runs, "the log says what was chosen"
    again = World(world.plan, random, faults=faults)
    again.restart = {"origin_execution_id": "x0", "origin_seq": len(world.log), "kept": kept}
    again.run()
    nothing_twice(again, kept)
    return again


def nothing_twice(again: World, kept: KeptState) -> None:
    """RST-3: an iteration whose outcome is kept is not begun again."""
    restored = [event for event in again.log if isinstance(event, e.StepRestored)]
    for event, run in zip(restored, kept.runs, strict=True):
        loop: dict[str, Any] | None = run.run.get("loop")
        if loop is None:
            continue
        ended = set(range(loop.get("low", 0))) | set(map(int, loop.get("ended", {})))
        begun = {
            one.index
            for one in again.log
            if isinstance(one, e.IterationStarted) and one.step_run_id == event.step_run_id
        }
        assert not ended & begun


@pytest.mark.rule("RST-1", "RST-2", "RST-3")
@examples(500)
@given(steps=steps_of(), executor=executors(), seed=st.integers(0, 2**32), faults=st.booleans())
def test_every_end_can_be_restarted_and_comes_to_an_end(
    steps: list[Tree], executor: Tree, seed: int, faults: bool
) -> None:
    random = Random(seed)
    world: World | None = World(plan_of(steps, executor), random, faults=faults)
    assert world is not None
    world.run()
    for _ in range(2):
        world = restarted(world, random, faults=faults)
        if world is None:
            return


@pytest.mark.rule("RST-1")
@examples(200)
@given(steps=steps_of(), executor=executors(), seed=st.integers(0, 2**32))
def test_from_its_first_run_an_execution_begins_as_it_began(
    steps: list[Tree], executor: Tree, seed: int
) -> None:
    world = World(plan_of(steps, executor), Random(seed), faults=True)
    world.run()
    history = history_of(world)
    assume(history.runs)
    first = next(iter(history.runs.values()))
    assume(first.step == world.plan.entry)
    successor = Successor("x1", world.plan, "files")
    kept = take_over(history, RunAgain({first.run_id: None}), successor, {}).state
    assert (kept.ctx, kept.leaves, kept.runs) == ({}, {}, [])
    assert [(token["step"], token["source"]) for token in kept.tokens] == [(world.plan.entry, None)]
    assert kept.kept["step_runs"] == 0
