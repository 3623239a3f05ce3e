"""RST: of a loop the chosen iterations are run again, and the outcomes of the others are kept."""

import asyncio
from itertools import product
from typing import Any

import pytest
from tests.support.canned import Silence
from tests.support.restarted import restarted
from tests.support.scenario import Scenario, error, ok, scenario
from tests.support.steps import (
    Tree,
    arc,
    call,
    loop,
    nested,
    otherwise,
    step,
    when,
)

from noetl.errors import RestartRefused
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import Outcome
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.server.retention import sweep
from noetl.server.verify import Verified, verify
from noetl.tools.tool import ToolCall

WAYS = list(product(["sequential", "parallel"], ["local", "distributed"]))
each_way = pytest.mark.parametrize(("mode", "where"), WAYS)


def echo(asked: ToolCall[Any]) -> Outcome:
    """Answers with what it was given."""
    return ok(asked.inputs.body)


def writes(label: str, key: str, **inputs: Any) -> Tree:
    fails = when("outcome.status == 'error'", "fail")
    return call(label, fails, otherwise(set_ctx={key: "{{ outcome.result }}"}), **inputs)


def looped(*tasks: Tree, elements: Any = (10, 20, 30, 40), **spec: Any) -> Scenario:
    return scenario(
        step("start", *tasks, loop=loop(list(elements), **spec), arcs=[arc("after")]),
        step("after", call("last", body="{{ ctx }}")),
    )


def fails_at(*broken: int) -> Any:
    """Answers with the element, but for some, and for those once."""
    left = set(broken)

    def answer(asked: ToolCall[Any]) -> Outcome:
        value = asked.inputs.body
        if value in left:
            left.discard(value)
            return error("x", f"no luck with {value}")
        return ok(value)

    return answer


@pytest.mark.rule("RST-1", "RST-3")
@each_way
def test_of_a_loop_the_failed_iterations_are_run_again(mode: str, where: str) -> None:
    made = looped(call("work", body="{{ iter.n }}"), mode=mode, exec=where, flight=4)
    before, after = restarted(made.answers("work", fails_at(20)))
    assert before.status == "failed"
    done = {event.index for event in before.of(e.IterationDone)}
    assert after.status == "completed"
    assert sorted(after.inputs("work")) == [
        value for index, value in enumerate((10, 20, 30, 40)) if index not in done
    ]
    ended = after.one(e.LoopDone)
    assert (ended.total, ended.done, ended.failed) == (4, 4, 0)
    assert ended.results == [10, 20, 30, 40]


@pytest.mark.rule("RST-1")
@each_way
def test_of_a_loop_the_iterations_asked_for_are_run_again(mode: str, where: str) -> None:
    made = looped(call("work", body="{{ iter.n }}"), mode=mode, exec=where, flight=2)
    before, after = restarted(made.answers("work", echo), "start:0,2")
    assert before.status == after.status == "completed"
    assert sorted(after.inputs("work")) == [10, 30]
    assert after.one(e.LoopDone).results == [10, 20, 30, 40]
    run = before.one(e.LoopDone).step_run_id
    assert after.one(e.ExecutionRequested).chosen == [f"start@{run}:0,2"]
    assert after.one(e.StepRestored).origin_run_id == run
    assert after.labels()[-1] == "last"


@pytest.mark.rule("RST-1")
@each_way
def test_reducers_count_each_iteration_once(mode: str, where: str) -> None:
    adds = call("work", otherwise(set_ctx={"sum": "{{ outcome.result }}"}), body="{{ iter.n }}")
    made = looped(adds, mode=mode, exec=where, reduce={"sum": "sum"})
    made.answers("work", echo)
    before, after = restarted(made, "start:1", start={"ctx": {"sum": 5}})
    assert before.ctx == after.ctx == {"sum": 105}


@pytest.mark.rule("RST-1")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_an_iteration_is_run_again_with_its_nested_loop(mode: str) -> None:
    inner = nested(
        "each", loop([1, 2], iterator="m"), call("work", body="{{ [iter.parent.n, iter.m] }}")
    )
    made = looped(inner, elements=(10, 20), mode=mode).answers("work", echo)
    before, after = restarted(made, "start:1")
    assert before.status == after.status == "completed"
    assert after.inputs("work") == [[20, 1], [20, 2]]
    assert (
        after.one(e.LoopDone, parent_id=None).results
        == before.one(e.LoopDone, parent_id=None).results
    )


@pytest.mark.rule("RST-2", "RST-3")
def test_kept_outcomes_are_shared_by_reference() -> None:
    made = looped(call("work", body="{{ iter.n }}"), elements=(1, 2, 3), mode="sequential")
    big = "x" * 200_000
    made.answers("work", ok(big), error("x"), ok(big + "2"), ok(big + "3"))
    before, after = restarted(made)
    assert after.status == "completed"
    (kept,) = [event.result for event in before.of(e.IterationDone)]
    assert kept.key.startswith("x1/")
    found = after.one(e.StepRestored).run["loop"]["results"]["values"]
    assert found == [kept]
    assert sum(body.endswith(b'x"') for body in made.objects.kept.values()) == 1


@pytest.mark.rule("RST-2")
def test_a_large_kept_loop_lies_outside_the_log_and_proves_itself() -> None:
    elements = list(range(60))
    made = scenario(
        step("start", call("work", body="{{ iter.n }}"),
             loop=loop(elements, mode="parallel", exec="distributed", flight=10)),
        executor={"spec": {"policy": {"limits": {"max_payload_bytes": 5000}}}},
    ).answers("work", ok("y" * 300))  # fmt: skip
    _, after = restarted(made, "start:0")
    assert after.status == "completed"
    assert after.labels() == ["work"]
    assert after.one(e.StepRestored).run.key.startswith(after.execution.execution_id)


@pytest.mark.rule("RST-2", "RES-4")
def test_what_a_kept_loop_had_folded_outlives_a_sweep() -> None:
    made = scenario(
        step("start", call("work"), loop=loop(list(range(60)), mode="sequential")),
        executor={"spec": {"policy": {"limits": {"max_payload_bytes": 5000}}}},
    ).answers("work", ok("y" * 300))
    _, after = restarted(made, "start:50")
    name, home = after.execution.execution_id, made.home

    async def swept() -> tuple[int, Verified]:
        gone = await sweep(home.log, made.results, name)
        return gone, await verify(home.log, home.playbooks, made.results, name)

    gone, proof = asyncio.run(swept())
    assert gone == 0
    assert proof.ok, proof.message


@pytest.mark.rule("RST-2", "RES-2")
def test_a_restart_loads_what_its_first_decision_looks_into() -> None:
    made = scenario(
        step("start", writes("ask", "rows"), arcs=[arc("each")]),
        step("each", call("work", body="{{ iter.n | length }}"), loop=loop("{{ ctx.rows }}")),
    ).answers("ask", ok(["z" * 100_000, "z" * 100_001]))
    before, after = restarted(made, "each")
    assert before.inputs("work") == after.inputs("work") == [100_000, 100_001]


@pytest.mark.rule("RST-1")
@each_way
def test_a_cancelled_loop_goes_on_with_what_had_not_ended(mode: str, where: str) -> None:
    made = looped(call("work", body="{{ iter.n }}"), mode=mode, exec=where, flight=2)
    held = Silence()
    made.answers("work", ok("first"), held, held, ok("again"))

    async def cancel(local: LocalNode, active: ActiveExecution) -> None:
        while not active.execution.runs or len(made.tools.calls) < 2:
            await asyncio.sleep(0)
        loop_run = next(iter(active.execution.runs.values())).loop
        while loop_run is None or loop_run.done < 1:
            await asyncio.sleep(0)
        local.server.receive(active, r.CancelExecution(reason="enough"))

    def again() -> None:
        made.answers("work", ok("again"))

    before, after = restarted(made, first=cancel, between=again)
    assert before.status == "cancelled"
    assert after.status == "completed"
    assert after.one(e.LoopDone).results.count("first") == 1
    assert len(after.inputs("work")) == 3


@pytest.mark.rule("RST-4")
def test_a_loop_that_goes_on_must_be_the_same_loop() -> None:
    made = looped(call("work", body="{{ iter.n }}"), mode="sequential")
    made.answers("work", fails_at(20))
    other = looped(call("work", body="{{ iter.n }}"), mode="parallel")
    with pytest.raises(RestartRefused, match="the loop of step 'start'"):
        restarted(made, plan=other.plan)


@pytest.mark.rule("RST-1")
def test_an_iteration_that_never_was_is_refused() -> None:
    made = looped(call("work"), mode="sequential")
    with pytest.raises(RestartRefused, match=r"iteration 4, 9 of step 'start'.*has 4"):
        restarted(made, "start:1,4,9")
