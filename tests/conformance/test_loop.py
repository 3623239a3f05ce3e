"""LOOP: iterations, their order, their writes, their failures, and what a loop comes to."""

import asyncio
from collections import Counter
from itertools import product
from typing import Any

import pytest
from tests.support.canned import Silence
from tests.support.scenario import Gate, Scenario, error, name_of, ok, scenario
from tests.support.steps import Tree, arc, call, loop, noop, otherwise, sets, step, when

from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import Outcome
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.tools.tool import ToolCall

WAYS = list(product(["sequential", "parallel"], ["local", "distributed"]))
each_way = pytest.mark.parametrize(("mode", "where"), WAYS)


def looped(elements: Any, *tasks: Tree, arcs: list[Tree] | None = None, **spec: Any) -> Scenario:
    """A step `start` with a loop over `elements`, and a step `after`."""
    ways = {"iterator": "n", **spec}
    return scenario(
        step("start", *tasks, loop=loop(elements, **ways), arcs=arcs),
        step("after", call("last", body="{{ args }}")),
        workload={"list": [10, 20, 30], "text": "abc"},
    )


SEES = "{{ [iter.n, iter.index] }}"


def echo(call_: ToolCall[Any]) -> Outcome:
    """Answers with what it was given."""
    return ok(call_.inputs.body)


@pytest.mark.rule("LOOP-1", "LOOP-2", "LOOP-3", "LOOP-6", "SCOPE-2")
@each_way
def test_every_way_gives_the_same_log_but_for_its_order(mode: str, where: str) -> None:
    made = looped("{{ workload.list }}", call("work", body=SEES), mode=mode, exec=where, flight=2)
    ran = made.answers("work", echo).run()
    assert ran.status == "completed"
    assert ran.result == [[10, 0], [20, 1], [30, 2]]
    counted = Counter(ran.names)
    del counted["token.enqueued"], counted["token.claimed"]
    assert counted == {
        "playbook.execution.requested": 1,
        "playbook.request.evaluated": 1,
        "workflow.started": 1,
        "token.created": 1,
        "step.scheduled": 1,
        "step.started": 1,
        "loop.started": 1,
        "loop.iteration.started": 3,
        "task.started": 3,
        "task.done": 3,
        "loop.iteration.done": 3,
        "loop.done": 1,
        "workflow.finished": 1,
        "playbook.processed": 1,
    }
    started = ran.one(e.LoopStarted)
    assert (started.total, started.items) == (3, [10, 20, 30])
    assert (started.mode, started.exec) == (mode, where)
    done = ran.one(e.LoopDone)
    assert (done.total, done.done, done.failed, done.errors) == (3, 3, 0, [])


@pytest.mark.rule("LOOP-2")
@pytest.mark.parametrize(
    ("mode", "where"), [(None, "local"), ("sequential", "local"), ("parallel", "distributed")]
)
def test_where_iterations_run_by_default(mode: str | None, where: str) -> None:
    ran = looped([1], noop("work"), mode=mode).run()
    assert ran.one(e.LoopStarted).exec == where


@pytest.mark.rule("LOOP-1")
def test_sequential_iterations_run_one_after_the_other() -> None:
    ran = looped([1, 2], call("work")).run()
    inner = [name for name in ran.story("start") if name.startswith(("loop", "task"))]
    one = ["loop.iteration.started", "task.started", "task.done", "loop.iteration.done"]
    assert inner == ["loop.started", *one, *one, "loop.done"]


@pytest.mark.rule("LOOP-1")
@pytest.mark.parametrize("where", ["local", "distributed"])
@pytest.mark.parametrize(("flight", "most"), [(2, 2), (5, 5), (0, 10)])
def test_no_more_than_max_in_flight_run_at_once(where: str, flight: int, most: int) -> None:
    running, seen = 0, []
    full = asyncio.Event()

    async def count(call_: ToolCall[Any]) -> Outcome:
        nonlocal running
        running += 1
        seen.append(running)
        if running == most:
            full.set()
        await full.wait()  # the first ones stay until as many run as may
        await asyncio.sleep(0)  # and one too many would now be seen
        running -= 1
        return ok(call_.label)

    made = looped(list(range(25)), call("work"), mode="parallel", exec=where, flight=flight)
    ran = made.answers("work", count).run()
    assert max(seen) == most
    assert ran.one(e.LoopDone).done == 25


@pytest.mark.rule("LOOP-1", "SCOPE-4")
@each_way
def test_the_collection_is_evaluated_once(mode: str, where: str) -> None:
    made = scenario(
        step("start", sets("fill", list=[1, 2]), arcs=[arc("run"), arc("turn")], mode="inclusive"),
        step("turn", sets("empty", list=[])),
        step(
            "run",
            call("work", body="{{ iter.n }}"),
            loop=loop("{{ ctx.list }}", mode=mode, exec=where, flight=1),
        ),
    )
    ran = made.run()
    assert ran.inputs("work") == [1, 2]
    assert ran.ctx["list"] == []


@pytest.mark.rule("LOOP-3", "LOOP-4", "LOOP-8", "NEXT-2")
@each_way
def test_an_empty_collection_ends_at_once(mode: str, where: str) -> None:
    arcs = [arc("after", "event.name == 'loop.done'", total="{{ event.loop.total }}")]
    ran = looped([], call("work"), mode=mode, exec=where, arcs=arcs).run()
    assert ran.story("start") == [
        "workflow.started",
        "token.created",
        "step.scheduled",
        "loop.started",
        "loop.done",
        "next.evaluated",
        "next.fired",
    ]
    assert ran.inputs("last") == [{"total": 0}]


NO_LIST = {
    "text": ("{{ workload.text }}", "loop", "got str: 'abc'"),
    "a mapping": ("{{ workload }}", "loop", "got dict"),
    "a number": ("{{ 3 }}", "loop", "got int: 3"),
    "null": ("{{ none }}", "loop", "got NoneType"),
    "undefined": ("{{ ctx.nothing }}", "template", "`loop.in` of step 'start'"),
}


@pytest.mark.rule("LOOP-8", "TPL-3")
@pytest.mark.parametrize(("elements", "kind", "says"), NO_LIST.values(), ids=NO_LIST)
def test_what_is_no_list_fails_the_step_clearly(elements: str, kind: str, says: str) -> None:
    ran = looped(elements, call("work"), arcs=[arc("after", "event.error.kind == 'none'")]).run()
    assert ran.status == "failed"
    assert ran.error["kind"] == kind
    assert says in ran.error["message"]
    assert ran.story("start")[-2:] == ["step.failed", "next.evaluated"]


@pytest.mark.rule("LOOP-8", "TPL-1")
def test_a_range_is_a_list() -> None:
    ran = looped("{{ range(3) }}", call("work", body="{{ iter.n }}")).run()
    assert ran.inputs("work") == [0, 1, 2]


BREAKS = [when("iter.n in [3, 1]", "fail")]


@pytest.mark.rule("LOOP-4", "OUT-4", "NEXT-2")
@each_way
def test_a_failed_iteration_stops_the_loop(mode: str, where: str) -> None:
    arcs = [arc("after", "event.name == 'step.failed'", loop="{{ event.loop }}")]
    made = looped(list(range(6)), call("work", *BREAKS), mode=mode, exec=where, flight=1, arcs=arcs)
    ran = made.run()
    assert len(ran.of(e.IterationStarted)) == 2, "no further ones start"
    assert ran.of(e.LoopDone) == []
    failed = ran.one(e.StepFailed)
    assert failed.error["kind"] == "loop"
    assert failed.error["index"] == 1
    assert failed.error["cause"]["kind"] == "policy"
    assert failed.error["message"].startswith("iteration 1 failed: rule 1 of task 'work'")
    (told,) = ran.inputs("last")
    cause = failed.error["cause"]
    assert told["loop"] == {
        "total": 6,
        "done": 1,
        "failed": 1,
        "results": ["work", None],
        "errors": [{"index": 1, "error": cause}],
    }


@pytest.mark.rule("LOOP-4")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_those_in_flight_run_to_their_end_and_the_lowest_index_is_named(where: str) -> None:
    gate = Gate(error("http", "late"), ok("fine"), error("http", "early"))

    async def backwards(local: LocalNode, active: ActiveExecution) -> None:
        del local, active
        held = await gate.held(3)
        for task_run_id in reversed(held):
            await gate.let_go(task_run_id)

    made = looped(list(range(9)), call("work"), mode="parallel", exec=where, flight=3)
    ran = made.answers("work", gate).act(backwards)
    assert len(ran.of(e.IterationStarted)) == 3
    assert [event.index for event in ran.of(e.IterationFailed)] == [2, 0]
    assert ran.error["index"] == 0
    assert ran.error["cause"]["message"] == "early"
    assert ran.names[-3:] == ["step.failed", "workflow.finished", "playbook.processed"]


@pytest.mark.rule("LOOP-4", "LOOP-6")
@each_way
def test_on_failure_continue_runs_all(mode: str, where: str) -> None:
    made = looped(
        list(range(5)),
        call("work", *BREAKS, body=SEES),
        mode=mode,
        exec=where,
        on_failure="continue",
        arcs=[arc("after", "event.name == 'loop.done'", loop="{{ event.loop }}")],
    )
    ran = made.answers("work", echo).run()
    assert ran.status == "completed"
    ((told),) = ran.inputs("last")
    summary = told["loop"]
    assert summary["results"] == [[0, 0], None, [2, 2], None, [4, 4]]
    assert (summary["total"], summary["done"], summary["failed"]) == (5, 3, 2)
    assert [failure["index"] for failure in summary["errors"]] == [1, 3]
    assert ran.of(e.StepFailed) == []


@pytest.mark.rule("LOOP-5", "OUT-4")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_a_different_write_of_another_iteration_is_refused(where: str) -> None:
    made = looped(
        [1, 1, 2],
        call("work", otherwise(set_ctx={"same": "{{ iter.n }}"})),
        call("more"),
        mode="parallel",
        exec=where,
        flight=1,
        on_failure="continue",
    )
    ran = made.run()
    failed = ran.one(e.IterationFailed)
    assert (failed.index, failed.error["kind"]) == (2, "ctx_conflict")
    assert "iteration 2 may not write ctx.same" in failed.error["message"]
    assert ran.ctx == {"same": 1}
    assert ran.labels().count("more") == 2, "a refused write ends its iteration"
    refused = ran.of(e.TaskDone, task="work")[-1]
    assert (refused.do, refused.set_ctx) == ("fail", {})
    assert [event.patch for event in ran.of(e.CtxPatched)] == [{"same": 1}, {"same": 1}]


@pytest.mark.rule("LOOP-5")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_an_iteration_may_overwrite_its_own(where: str) -> None:
    made = looped(
        [1],
        noop("one", otherwise(set_ctx={"x": 1})),
        noop("two", otherwise(set_ctx={"x": "{{ ctx.x + 1 }}"})),
        mode="parallel",
        exec=where,
    )
    assert made.run().ctx == {"x": 2}


@pytest.mark.rule("LOOP-5")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_a_write_in_a_later_attempt_is_settled_as_itself(where: str) -> None:
    rules = [
        when("_attempt == 1", "retry", attempts=2),
        otherwise(set_ctx={"x": "{{ _attempt }}"}),
    ]
    ran = looped([1, 2], noop("work", *rules), mode="parallel", exec=where).run()
    assert ran.ctx == {"x": 2}
    assert ran.status == "completed"


@pytest.mark.rule("LOOP-5", "SCOPE-4")
@each_way
def test_who_sees_a_write(mode: str, where: str) -> None:
    made = looped(
        [1, 2, 3],
        call("look", body="{{ ctx.seen | default('nothing') }}"),
        noop("write", otherwise(set_ctx={"seen": "x"})),
        call("again", body="{{ ctx.seen }}"),
        mode=mode,
        exec=where,
        flight=1,
    )
    ran = made.run()
    others = "x" if mode == "sequential" else "nothing"
    assert ran.inputs("look") == ["nothing", others, others]
    assert ran.inputs("again") == ["x", "x", "x"]


REDUCERS: dict[str, tuple[str, Any, Any, Any]] = {
    # reducer → what each iteration writes, what ctx had, what it comes to
    "sum": ("sum", "{{ iter.n }}", 100, 106),
    "min": ("min", "{{ iter.n }}", 9, 1),
    "max": ("max", "{{ iter.n }}", 2, 3),
    "append": ("append", "{{ iter.n }}", [0], [0, 3, 1, 2]),
    "extend": ("extend", "{{ [iter.n, iter.index] }}", [0], [0, 3, 0, 1, 1, 2, 2]),
    "merge": ("merge", "{{ {'last': iter.n} }}", {"a": 0}, {"a": 0, "last": 2}),
    "count": ("count", "{{ iter.n }}", 10, 13),
    "first": ("first", "{{ iter.n }}", None, 3),
    "last": ("last", "{{ iter.n }}", 7, 2),
}


@pytest.mark.rule("LOOP-5")
@each_way
@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "backwards"])
@pytest.mark.parametrize(("how", "value", "before", "after"), REDUCERS.values(), ids=REDUCERS)
def test_reducers_do_not_depend_on_the_order_of_completion(
    mode: str, where: str, backwards: bool, how: str, value: str, before: Any, after: Any
) -> None:
    begin = [sets("seed", k=before)] if before is not None else [noop("seed")]
    ran = scenario(
        step("start", *begin, arcs=[arc("run")]),
        step(
            "run",
            call("work", otherwise(set_ctx={"k": value})),
            call("see", body="{{ ctx.k | default(none) }}"),
            loop=loop([3, 1, 2], mode=mode, exec=where, reduce={"k": how}),
        ),
    )
    ran.answers("work", turned_round(3) if backwards and mode == "parallel" else ok())
    done = ran.run()
    assert done.ctx == {"k": after}
    assert done.inputs("see") == [before] * 3, "seen from the terminal event on"
    patches = [event.patch for event in done.of(e.CtxPatched, step="run")]
    assert patches == [{"k": after}]
    assert done.story("run")[-2:] == ["ctx.patched", "loop.done"]


def turned_round(count: int) -> Any:
    """Answers that are given in the reverse order of the calls, once `count` have come."""
    waiting: list[asyncio.Future[None]] = []

    async def answer(call_: ToolCall[Any]) -> Outcome:
        future = asyncio.get_running_loop().create_future()
        waiting.append(future)
        if len(waiting) == count:
            for other in reversed(waiting):
                other.set_result(None)
        await future
        return ok(call_.label)

    return answer


@pytest.mark.rule("LOOP-5")
@each_way
def test_failed_iterations_are_left_out_and_every_write_counts(mode: str, where: str) -> None:
    made = looped(
        [1, 2, 3],
        noop("once", otherwise(set_ctx={"total": "{{ iter.n }}"})),
        noop("twice", when("iter.n == 2", "fail"), otherwise(set_ctx={"total": 10})),
        mode=mode,
        exec=where,
        on_failure="continue",
        reduce={"total": "sum"},
    )
    assert made.run().ctx == {"total": 24}


@pytest.mark.rule("LOOP-5", "LOOP-6")
@each_way
def test_a_write_that_its_reducer_cannot_take_fails_its_iteration(mode: str, where: str) -> None:
    made = looped(
        [1, "x", 3],
        noop("work", otherwise(set_ctx={"total": "{{ iter.n }}"}, set_prev="{{ iter.n }}")),
        mode=mode,
        exec=where,
        on_failure="continue",
        reduce={"total": "sum"},
    )
    ran = made.run()
    done = ran.one(e.LoopDone)
    assert ran.ctx == {"total": 4}
    assert (done.done, done.failed, done.results) == (2, 1, [1, None, 3])
    assert [failure["index"] for failure in done.errors] == [1]


@pytest.mark.rule("LOOP-9")
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_no_iteration_runs_further_ahead_than_the_window(where: str) -> None:
    """The first iteration waits: the others come to an end beyond it, and then nothing moves."""
    held = asyncio.Event()
    furthest = 0

    async def first_waits(call_: ToolCall[Any]) -> Outcome:
        nonlocal furthest
        furthest = max(furthest, call_.inputs.body)
        if call_.inputs.body == 0:
            await held.wait()
        return ok()

    async def watch(local: LocalNode, active: ActiveExecution) -> None:
        del local
        before = -1
        while before != active.execution.seq or furthest < 900:
            before = active.execution.seq
            for _ in range(50):
                await asyncio.sleep(0)
        assert furthest == 999
        held.set()

    made = looped(
        list(range(1500)),
        call("work", body="{{ iter.index }}"),
        mode="parallel",
        exec=where,
        flight=7,
    )
    ran = made.answers("work", first_waits).act(watch)
    assert ran.one(e.LoopDone).done == 1500
    assert furthest == 1499


@pytest.mark.rule("LOOP-9", "LOOP-6")
def test_a_long_loop_leaves_its_results_in_chunks() -> None:
    made = scenario(
        step("start", call("fetch"), arcs=[arc("run", list="{{ event.result }}")]),
        step(
            "run",
            noop("work", otherwise(set_prev="{{ iter.n }}")),
            loop=loop("{{ args.list }}", mode="parallel", flight=500),
            arcs=[
                arc(
                    "after",
                    total="{{ event.loop.total }}",
                    last="{{ event.loop.results[-1] }}",
                    length="{{ event.result | length }}",
                )
            ],
        ),
        step("after", call("last", body="{{ args }}")),
    )
    ran = made.answers("fetch", ok(list(range(25_000)))).run()
    done = ran.one(e.LoopDone)
    assert done.results.schema_hint == "chunks[25000]"
    assert ran.inputs("last") == [{"total": 25_000, "last": 24_999, "length": 25_000}]


@pytest.mark.rule("LOOP-10")
@each_way
def test_who_ends_a_loop(mode: str, where: str) -> None:
    """The end is in the row of the last iteration's report, or in one of its own."""
    made = looped([1, 2], call("work"), mode=mode, exec=where)
    ran = made.run()
    (row,) = [row for row in ran.rows if b'"loop.done"' in row.events]
    assert row.events.count(b'"loop.done"') == 1
    assert ran.status == "completed"
    assert len(ran.of(e.LoopDone)) == 1


@pytest.mark.rule("LOOP-4", "NEXT-8")
@each_way
def test_a_cancelled_loop_ends_in_one_failure(mode: str, where: str) -> None:
    silence = Silence()

    async def cancel(local: LocalNode, active: ActiveExecution) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        local.server.receive(active, r.CancelExecution())

    made = looped(list(range(20)), call("work"), mode=mode, exec=where, flight=3)
    ran = made.answers("work", silence).act(cancel)
    assert silence.cancelled == (1 if mode == "sequential" else 3)
    assert ran.one(e.StepFailed).error["kind"] == "cancelled"
    assert ran.of(e.LoopDone) == []
    assert ran.status == "cancelled"
    assert ran.names[-3:-1] == ["step.failed", "workflow.finished"]


@pytest.mark.rule("LOOP-3")
def test_the_names_of_a_loop() -> None:
    ran = looped([1, 2], call("work", when("iter.n == 2", "fail")), on_failure="continue").run()
    names = {name_of(event) for event in ran.events if name_of(event).startswith("loop")}
    assert names == {
        "loop.started",
        "loop.iteration.started",
        "loop.iteration.done",
        "loop.iteration.failed",
        "loop.done",
    }
