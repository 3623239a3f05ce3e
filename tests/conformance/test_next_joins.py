"""NEXT-7: how tokens meet at a join."""

from typing import Any

import pytest
from tests.support.scenario import Gate, Scenario, error, scenario
from tests.support.steps import Tree, arc, call, loop, noop, otherwise, sets, step

from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution


def meeting(mode: Any, **more: Any) -> Scenario:
    """`a` and `b` lead to `meet`; each brings args of its own."""
    return scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("ask_a"), arcs=[arc("meet", x="a", a=1)]),
        step("b", call("ask_b"), arcs=[arc("meet", x="b", b=2)]),
        step(
            "meet", call("met", body="{{ args }}"), join={"from": ["b", "a"], "mode": mode}, **more
        ),
    )


ALL = {"x": "a", "a": 1, "b": 2, "from": {"b": {"x": "b", "b": 2}, "a": {"x": "a", "a": 1}}}
ONLY_A = {"x": "a", "a": 1, "from": {"a": {"x": "a", "a": 1}}}


@pytest.mark.rule("NEXT-7")
@pytest.mark.parametrize(
    ("mode", "args", "absorbed"), [("all", ALL, 0), (2, ALL, 0), ("any", ONLY_A, 1), (1, ONLY_A, 1)]
)
def test_a_join_fires_once(mode: Any, args: Tree, absorbed: int) -> None:
    gate = Gate()

    async def a_first(local: LocalNode, active: ActiveExecution) -> None:
        del local, active
        first, second = await gate.held(2)
        await gate.let_go(first)
        await gate.let_go(second)

    ran = meeting(mode).answers("ask_a", gate).answers("ask_b", gate).act(a_first)
    assert ran.inputs("met") == [args]
    assert len(ran.of(e.TokenAbsorbed)) == absorbed
    assert ran.steps["meet"] == (1, 0, "done")
    assert ran.execution.tokens == {}
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-7")
@pytest.mark.parametrize("mode", ["any", 1])
def test_tokens_that_stand_at_a_join_when_it_fires_go_with_it(mode: Any) -> None:
    """Both sources only route: their tokens are there before the join is looked at."""
    ran = scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", arcs=[arc("meet", a=1)]),
        step("b", arcs=[arc("meet", b=2)]),
        step("meet", call("met", body="{{ args }}"), join={"from": ["a", "b"], "mode": mode}),
    ).run()
    assert ran.inputs("met") == [{"a": 1, "b": 2, "from": {"a": {"a": 1}, "b": {"b": 2}}}]
    assert ran.steps["meet"] == (1, 0, "done")
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-7")
def test_what_still_waits_at_a_join_is_dropped_with_an_event() -> None:
    ran = meeting("all").answers("ask_b", error("http")).run()
    assert ran.story("meet") == ["token.created", "token.parked", "token.dropped"]
    assert ran.one(e.TokenParked).reason == "join"
    assert ran.one(e.TokenDropped).reason == "nothing can end its wait (join)"
    assert ran.status == "failed"
    assert ran.error["step"] == "b"


@pytest.mark.rule("NEXT-7", "ADM-3")
@pytest.mark.parametrize("mode", ["all", "any"])
def test_the_join_comes_before_admission(mode: str) -> None:
    """The gate opens when both tokens are there: they leave together, and only once."""
    ran = scenario(
        step("start", arcs=[arc("a"), arc("b"), arc("opener")], mode="inclusive"),
        step("a", arcs=[arc("meet", a=1)]),
        step("b", arcs=[arc("meet", b=2)]),
        step("opener", call("slow", otherwise(set_ctx={"go": True}))),
        step(
            "meet",
            call("met", body="{{ args.from }}"),
            join={"from": ["a", "b"], "mode": mode},
            admit=[
                {"when": "{{ ctx.go and args.from.a.a == 1 }}", "then": {"allow": True}},
                {"else": {"then": {"allow": False}}},
            ],
        ),
    ).run()
    assert ran.inputs("met") == [{"a": {"a": 1}, "b": {"b": 2}}]
    assert ran.execution.tokens == {}
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-7")
@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_cycle_passes_a_join_again(mode: str) -> None:
    ran = scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("ask_a"), arcs=[arc("meet")]),
        step("b", call("ask_b"), arcs=[arc("meet")]),
        step(
            "meet",
            sets("count", n="{{ (ctx.n | default(0)) + 1 }}"),
            join={"from": ["a", "b"], "mode": mode},
            arcs=[arc("a", "ctx.n < 3"), arc("b", "ctx.n < 3")],
            mode="inclusive",
        ),
    ).run()
    assert ran.ctx == {"n": 3}
    assert ran.steps["meet"] == (3, 0, "done")
    absorbed = {"all": 0, "any": 3}[mode]
    assert len(ran.of(e.TokenAbsorbed)) == absorbed
    assert ran.execution.tokens == {}
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-7")
def test_a_token_that_passed_a_join_meets_none_that_did_not() -> None:
    """The second token of `a` has not passed; that of `b` comes from there."""
    ran = scenario(
        step("start", arcs=[arc("x"), arc("y"), arc("b")], mode="inclusive"),
        step("x", arcs=[arc("a")]),
        step("y", arcs=[arc("a")]),
        step("a", arcs=[arc("meet")]),
        step("b", arcs=[arc("meet")]),
        step("meet", noop("met"), join={"from": ["a", "b"], "mode": "all"}, arcs=[arc("b")]),
    ).run()
    assert (ran.steps["a"][0], ran.steps["b"][0]) == (2, 2)
    assert ran.steps["meet"][0] == 1


@pytest.mark.rule("NEXT-7", "NEXT-5")
def test_resume_finds_tokens_of_a_join_once() -> None:
    gate = Gate()

    async def pause(local: LocalNode, active: ActiveExecution) -> None:
        first, second = await gate.held(2)
        local.server.receive(active, r.PauseExecution())
        await gate.let_go(first)
        await gate.let_go(second)
        local.server.receive(active, r.ResumeExecution())

    ran = meeting("any").answers("ask_a", gate).answers("ask_b", gate).act(pause)
    assert ran.inputs("met") == [ALL]
    assert ran.status == "completed"


@pytest.mark.rule("NEXT-7", "LOOP-8")
def test_an_empty_loop_takes_part_in_a_join() -> None:
    ran = scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", noop("x"), loop=loop([]), arcs=[arc("meet")]),
        step("b", noop("y"), loop=loop([], mode="parallel"), arcs=[arc("meet")]),
        step("meet", call("met"), join={"from": ["a", "b"], "mode": "all"}),
    ).run()
    assert ran.labels() == ["met"]


@pytest.mark.rule("NEXT-7", "NEXT-3")
def test_a_failure_that_an_arc_took_takes_part_in_a_join() -> None:
    ran = (
        scenario(
            step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
            step("a", call("ask_a"), arcs=[arc("meet", True)]),
            step("b", call("ask_b"), arcs=[arc("meet", True)]),
            step("meet", call("met"), join={"from": ["a", "b"], "mode": "all"}),
        )
        .answers("ask_b", error("http"))
        .run()
    )
    assert ran.steps["meet"] == (1, 0, "done")
    assert ran.status == "completed"
