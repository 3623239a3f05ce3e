"""The worker at work: windows, slots, parts that fail, parts that are lost."""

import asyncio
from typing import Any

import pytest
from tests.support.canned import Silence
from tests.support.scenario import Gate, Scenario, error, ok, scenario
from tests.support.steps import arc, call, loop, nested, noop, step

from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.reference import Reference
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.worker import calling, part
from noetl.worker.calling import holds_reference
from noetl.worker.iterations import Window

REFERENCE = Reference("memory", "x1/0", 1, "0")


def test_a_window_lets_nobody_far_ahead() -> None:
    async def story() -> list[int]:
        window = Window(ended=[0, 2], low=0, width=3)
        passed: list[int] = []

        async def come(index: int) -> None:
            await window.room_for(index)
            passed.append(index)

        waiting = [asyncio.create_task(come(index)) for index in (3, 4, 5)]
        await asyncio.sleep(0)
        assert passed == [3], "1 is the lowest that has not ended"
        window.close(3)
        await asyncio.sleep(0)
        assert passed == [3]
        window.close(1)
        await asyncio.gather(*waiting)
        return passed

    assert asyncio.run(story()) == [3, 4, 5]


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        ({"a": [1, {"b": REFERENCE}]}, True),
        ([REFERENCE], True),
        (REFERENCE, True),
        ({"a": [1, "$ref"]}, False),
        ({"$ref": {}}, False),
        (None, False),
    ],
)
def test_references_are_found_wherever_they_are(value: Any, holds: bool) -> None:
    assert holds_reference(value) is holds


def test_slots_bound_the_calls_of_a_worker() -> None:
    running, most = 0, 0

    async def count(call_: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return ok(call_.label)

    made = scenario(step("start", call("work"), loop=loop(list(range(20)), mode="parallel")))
    made.answers("work", count)

    async def one_slot(local: LocalNode, active: ActiveExecution) -> None:
        del active
        local.worker._slots = asyncio.Semaphore(2)

    assert made.act(one_slot).status == "completed"
    assert most == 2


def both() -> Scenario:
    return scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("ask_a")),
        step("b", call("ask_b")),
    )


@pytest.mark.parametrize("looped", [None, "local", "distributed"])
def test_a_part_that_falls_to_our_own_fault_fails_its_run_alone(
    looped: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape: Any = {} if looped is None else {"loop": loop([1, 2], mode="parallel", exec=looped)}
    made = scenario(
        step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
        step("a", call("ask_a"), **shape),
        step("b", call("ask_b")),
    )
    real = calling.call_tool

    async def faulty(work: Any, ask: Any) -> Any:
        if ask.task.label == "ask_a":
            raise ZeroDivisionError("a hole in the worker")
        return await real(work, ask)

    monkeypatch.setattr(part, "call_tool", faulty)
    ran = made.run()
    assert ran.status == "failed"
    assert (ran.error["step"], ran.error["kind"]) == ("a", "internal")
    assert "ZeroDivisionError: a hole in the worker" in ran.error["message"]
    assert ran.steps["b"] == (1, 0, "done")


def test_a_worker_whose_part_was_given_up_stops_quietly() -> None:
    """Its run was failed in its place: what it reports is refused, and nothing else happens."""
    gate = Gate()
    made = both().answers("ask_a", gate)

    async def give_up(local: LocalNode, active: ActiveExecution) -> None:
        (held,) = await gate.held(1)
        while "b" in {run.step for run in active.execution.runs.values()}:
            await asyncio.sleep(0)
        (run,) = active.execution.runs.values()
        error_ = {"kind": "worker_lost", "message": "gone", "retryable": False}
        failed = e.StepFailed(step=run.step, step_run_id=run.step_run_id, error=error_)
        taken = local.server.receive(
            active,
            r.Report(
                step_run_id=run.step_run_id,
                part=0,
                epoch=9,
                worker="other",
                events=[failed],
                after=None,
            ),
        )
        assert taken.events != []
        await gate.let_go(held)

    ran = made.act(give_up)
    assert ran.error["kind"] == "worker_lost"
    assert len(ran.of(e.StepFailed)) == 1


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_cancelling_reaches_into_nested_loops(mode: str) -> None:
    silence = Silence()
    inner = nested("each", loop([1, 2, 3], mode=mode), call("work"))
    made = scenario(step("start", inner)).answers("work", silence)

    async def cancel(local: LocalNode, active: ActiveExecution) -> None:
        while not made.tools.calls:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        local.server.receive(active, r.CancelExecution())

    ran = made.act(cancel)
    assert ran.status == "cancelled"
    assert silence.cancelled == len(made.tools.calls) == (1 if mode == "sequential" else 3)


def test_the_news_of_a_long_task_do_not_wait_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.worker.worker.NEWS", 0.0)
    gate = Gate()
    made = scenario(step("start", call("one"))).answers("one", gate)

    async def look(local: LocalNode, active: ActiveExecution) -> None:
        del local
        (held,) = await gate.held(1)
        while active.execution.seq < 9:
            await asyncio.sleep(0)
        assert active.execution.runs["4.0"].started
        await gate.let_go(held)

    ran = made.act(look)
    assert ran.names[6:9] == ["token.claimed", "step.started", "task.started"]


@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_failure_in_a_nested_loop_leaves_others_of_it_alone(mode: str) -> None:
    made = scenario(
        step(
            "start",
            nested("each", loop([1, 2, 3], mode=mode, on_failure="continue"), call("work")),
            noop("end"),
        )
    ).answers("work", error("http"), ok("second"), ok("third"))
    ran = made.run()
    assert ran.result == [None, "second", "third"]
    assert len(ran.of(e.IterationFailed)) == 1
