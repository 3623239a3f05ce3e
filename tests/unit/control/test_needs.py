"""A decision asks for bodies as a value, and never loads one itself."""

from typing import Any

import pytest
from tests.support.decided import ByHand
from tests.support.steps import arc, call, loop, noop, refuse, step

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.likely import likely
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import encode, reference_to
from noetl.messages.reference import Reference

ROWS = list(range(50))
STORED = reference_to("files", "x1", encode(ROWS), "list[50]")


def ended(hand: ByHand, result: Any = STORED) -> r.Report:
    hand.claim()
    return hand.made(e.StepDone(**hand.run.ids, result=result), part=hand.part)


def asked(hand: ByHand, given: r.Input, **more: Any) -> list[e.Event] | Needs:
    return decide(hand.plan, hand.execution, given, at=hand.at, **more)


GUARDED = (
    step("start", call("ask"), arcs=[arc("many", "event.result | length > 9"), arc("few")]),
    step("many", noop("n")),
    step("few", noop("n")),
)


@pytest.mark.rule("RES-2", "NEXT-2")
def test_a_guard_that_looks_into_a_body_needs_it() -> None:
    hand = ByHand(*GUARDED)
    given = ended(hand)
    assert likely(hand.plan, hand.execution, given) == [STORED]
    assert asked(hand, given) == Needs((STORED,))


@pytest.mark.rule("RES-2", "NEXT-2")
def test_with_the_body_it_is_decided() -> None:
    hand = ByHand(*GUARDED)
    hand.give(ended(hand), bodies={STORED.key: ROWS})
    assert hand.run.step == "many"


@pytest.mark.rule("RES-4", "TPL-3")
def test_a_lost_body_fails_the_execution_with_the_reason() -> None:
    hand = ByHand(*GUARDED)
    hand.give(ended(hand), lost={STORED.key: "the body is gone"})
    assert hand.execution.status == "failed"
    assert "the body is gone" in hand.execution.failures[0].error["message"]


@pytest.mark.rule("RES-2", "NEXT-4", "LOOP-1")
def test_what_is_only_passed_on_is_not_loaded() -> None:
    hand = ByHand(
        step("start", call("ask"), arcs=[arc("each", rows="{{ event.result }}")]),
        step("each", call("one"), loop=loop("{{ args.rows }}", mode="parallel", exec="local")),
    )
    given = ended(hand)
    assert likely(hand.plan, hand.execution, given) == []
    hand.give(given)
    assert hand.run.loop is not None
    assert (hand.run.loop.items, hand.run.loop.total) == (STORED, 50)


@pytest.mark.rule("RES-2", "LOOP-1")
@pytest.mark.parametrize("where", ["args.rows", "ctx.rows", "rows"])
def test_the_collection_of_the_next_step_is_foreseen(where: str) -> None:
    hand = ByHand(
        step("start", call("ask"), arcs=[arc("each", rows="{{ event.result }}")]),
        step("each", call("one"), loop=loop(f"{{{{ {where} | batch(10) | list }}}}")),
    )
    hand.execution.ctx = {"rows": STORED}
    assert likely(hand.plan, hand.execution, ended(hand)) == [STORED]


@pytest.mark.rule("RES-2", "ADM-3")
def test_refused_tokens_that_are_tried_again_are_foreseen() -> None:
    hand = ByHand(
        step("start", arcs=[arc("gate"), arc("work")], mode="inclusive"),
        step("gate", noop("n"), admit=[refuse("ctx.rows is undefined or ctx.rows[0] == 0")]),
        step("work", call("ask"), call("tell")),
    )
    hand.claim()
    hand.execution.ctx = {"rows": STORED}
    given = hand.made(hand.done(), part=hand.part)
    assert likely(hand.plan, hand.execution, given) == [STORED]


CHUNKS = [reference_to("files", "x1", encode([n]), "list[1]") for n in range(3)]


def loop_in_chunks() -> tuple[ByHand, r.Report]:
    """A loop whose end is reported: its results lie in chunks, and its arc looks into them."""
    looped = step(
        "start",
        call("ask"),
        loop=loop([1, 2, 3], exec="local"),
        arcs=[arc("more", "event.loop.results | length == 3")],
    )
    hand = ByHand(looped, step("more", noop("n")))
    hand.claim()
    run = hand.run
    assert run.loop is not None
    run.loop.low = run.loop.done = run.loop.results.count = 3
    run.loop.results.chunks = list[Reference](CHUNKS)
    return hand, hand.made(e.LoopDone(**run.ids, total=3, done=0), part=hand.part)


@pytest.mark.rule("RES-2", "LOOP-9")
def test_chunks_of_an_ended_loop_are_all_asked_for_at_once() -> None:
    """The list of chunks is made by the decision itself; the chunks lie outside since long."""
    assert asked(*loop_in_chunks()) == Needs(tuple(CHUNKS))


@pytest.mark.rule("RES-4", "LOOP-9")
def test_a_lost_chunk_fails_the_execution_and_is_not_asked_for_again() -> None:
    hand, given = loop_in_chunks()
    there = {chunk.key: [number] for number, chunk in enumerate(CHUNKS[:2])}
    hand.give(given, bodies=there, lost={CHUNKS[2].key: "the chunk is gone"})
    assert hand.execution.status == "failed"
    assert "the chunk is gone" in hand.execution.failures[0].error["message"]


@pytest.mark.rule("EVT-3")
def test_a_decision_costs_no_look_at_what_has_ended() -> None:
    hand = ByHand(step("start", call("ask")))
    given = ended(hand, result="small")
    hand.give(given)
    assert hand.execution.finished
    assert likely(hand.plan, hand.execution, given) == []
