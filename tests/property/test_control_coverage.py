"""Every event moves the state somewhere, and every directive meets every status: none unseen."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, get_args

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.restarted import restarted
from tests.support.scenario import Gate, Scenario, error, ok, scenario
from tests.support.simulation import World
from tests.support.steps import (
    Tree,
    allow,
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    playbook,
    refuse,
    sets,
    step,
    when,
)
from tests.support.waiting import Stage, staged, waits

from noetl.control.evolve import EVOLVE
from noetl.messages import events as e
from noetl.pipeline import drive, policy
from noetl.playbook.model import Do

Seen = set[Any]

TO_SEQ_ALONE = {e.WorkflowStarted, e.NextFired, e.PlaybookProcessed, e.WaitWithdrawn}
"""Events that change nothing but the `seq`."""

JUDGED: dict[str, Tree] = {"retry": {"attempts": 2}, "jump": {"to": "end"}}


@pytest.fixture
def evolved(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The classes of events that `evolve` was given."""
    seen: Seen = set()

    def noting(kind: type[e.Event], change: Callable[..., None]) -> Callable[..., None]:
        def note(*given: Any) -> None:
            seen.add(kind)
            change(*given)

        return note

    for kind, change in list(EVOLVE.items()):
        monkeypatch.setitem(EVOLVE, kind, noting(kind, change))
    return seen


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Pairs of directive and status that `judge` came to."""
    seen: Seen = set()
    judge = policy.judge

    def note(task: Any, scope: Any, **more: Any) -> Any:
        verdict = judge(task, scope, **more)
        seen.add((verdict.do, scope["outcome"]["status"]))
        return verdict

    monkeypatch.setattr(drive, "judge", note)
    return seen


def busy() -> Scenario:
    """A playbook with something of everything."""
    inner = nested("in", loop([1, 2], iterator="m"), noop("deep"))
    return scenario(
        step("start", sets("seed", x=1), arcs=[arc("a"), arc("b"), arc("gate")], mode="inclusive"),
        step(
            "a", call("ask", when("_attempt == 1", "retry", attempts=2, delay=9)), arcs=[arc("m")]
        ),
        step("b", inner, arcs=[arc("m")]),
        step("m", call("met"), join={"from": ["a", "b"], "mode": "any"}, arcs=[arc("run")]),
        step(
            "run",
            call("work", when("iter.n == 1", "fail")),
            loop=loop([1, 2], mode="parallel", on_failure="continue"),
            arcs=[arc("bad")],
        ),
        step("bad", call("break_")),
        step("gate", noop("g"), admit=[allow("ctx.never"), refuse()]),
    ).answers("break_", error("http"))


def everything() -> Iterator[World]:
    """A small playbook under faults, with many seeds."""
    simple = scenario(
        step("start", call("s"), arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("ask"), arcs=[arc("m", True)]),
        step("b", call("ask_b"), arcs=[arc("m", True)]),
        step("m", call("met"), join={"from": ["a", "b"], "mode": "any"}),
    )
    for seed in itertools.count():
        yield World(simple.plan, Random(seed), faults=True)


def again() -> None:
    """A loop that failed in the middle, restarted: it waits for a place (RST-3, LIMIT-3)."""
    made = scenario(step("start", call("work"), loop=loop([1, 2]), limit={"at_once": 1}))
    restarted(made.answers("work", ok(), error("http"), ok()))


def over_the_limit(home: Path) -> None:
    """A second execution, which waits for the end of the first (LIMIT-1)."""

    async def test(cluster: Cluster) -> None:
        tools, gate = CannedTools(), Gate()
        tools.answers["work"] = [gate]
        await cluster.server()
        cluster.worker(tools)
        limit = {"spec": {"limit": {"at_once": 1}}}
        text = playbook(step("start", call("work")), executor=limit)
        for name in [await cluster.start(text) for _ in range(2)]:
            (key,) = await gate.held(1)
            await gate.let_go(key)
            await cluster.end_of(name)

    clustered(test, home)


def kept(home: Path) -> None:
    """A loop whose outcome another execution has kept (CACHE-1)."""

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools())
        ((label, work),) = call("work").items()
        work["spec"] = {**work.get("spec", {}), "cache": {"key": "k", "ttl": 60}}
        text = playbook(step("start", {label: work}, loop=loop([1])))
        for _ in range(2):
            await cluster.end_of(await cluster.start(text))

    clustered(test, home)


def waiting(home: Path) -> Seen:
    """The events of a wait for one of two (WAIT-1)."""
    seen: Seen = set()

    async def test(stage: Stage) -> None:
        either = {"late": {"seconds": 3600}, "paid": {"signal": "paid"}}
        execution_id = await stage.start(playbook(step("start", waits("hear", any=either))))
        await stage.waits(execution_id)
        await stage.signal(execution_id, "paid")
        await stage.ended(execution_id)
        seen.update(type(event) for event in await stage.events(execution_id))

    staged(test, "embedded", home)
    return seen


@pytest.mark.rule("EVT-2", "EVT-5")
def test_no_event_is_unseen(evolved: Seen, tmp_path: Path) -> None:
    recorded = {type(event) for event in busy().run().events} | waiting(tmp_path)
    assert recorded >= TO_SEQ_ALONE
    again()
    over_the_limit(tmp_path / "limit")
    kept(tmp_path / "kept")
    missing: Seen = set(EVOLVE) - evolved
    for world in itertools.islice(everything(), 300):
        if not missing:
            break
        world.run()
        missing = set(EVOLVE) - evolved
    assert missing == set(), "no scenario and no simulation has shown these to the fold"
    assert set(get_args(e.AnyEvent)) == set(EVOLVE) | TO_SEQ_ALONE


@pytest.mark.rule("TASK-2")
def test_no_directive_is_unseen(judged: Seen) -> None:
    for do, outcome in itertools.product(get_args(Do), [ok(1), error("http")]):
        rule = when("_attempt == 1", do, **JUDGED.get(do, {}))
        made = scenario(step("start", call("judged", rule, otherwise()), noop("end")))
        made.answers("judged", outcome).run()
    assert judged == set(itertools.product(get_args(Do), ["ok", "error"]))
