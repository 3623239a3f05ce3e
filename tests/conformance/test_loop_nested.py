"""LOOP: loops inside loops (LOOP-7), and crashes in the middle of them (TASK-9)."""

from itertools import product
from typing import Any

import pytest
from tests.support.crash import crash_everywhere
from tests.support.scenario import Ran, Scenario, ok, scenario
from tests.support.steps import Tree, arc, call, loop, nested, noop, otherwise, step, when

from noetl.messages import events as e
from noetl.messages.outcome import Outcome
from noetl.tools.tool import ToolCall

WAYS = list(product(["sequential", "parallel"], ["local", "distributed"]))
each_way = pytest.mark.parametrize(("mode", "where"), WAYS)


def echo(call_: ToolCall[Any]) -> Outcome:
    """Answers with what it was given."""
    return ok(call_.inputs.body)


def looped(elements: Any, *tasks: Tree, **spec: Any) -> Scenario:
    """A step `start` with a loop over `elements`."""
    return scenario(step("start", *tasks, loop=loop(elements, **{"iterator": "n", **spec})))


def nest(mode: str, outer: str, where: str, *inner: Tree, **policy: Any) -> Scenario:
    return scenario(
        step(
            "start",
            nested("each", loop("{{ iter.row }}", mode=mode, iterator="cell", **policy), *inner),
            loop=loop([[1, 2], [], [3]], iterator="row", mode=outer, exec=where),
        )
    )


OUTER = [(inner, *way) for inner, way in product(["sequential", "parallel"], WAYS)]


@pytest.mark.rule("LOOP-7", "SCOPE-2")
@pytest.mark.parametrize(("mode", "outer", "where"), OUTER)
def test_nested_loops_see_their_parent(mode: str, outer: str, where: str) -> None:
    body = "{{ [iter.cell, iter.index, iter.parent.row | length, iter.parent.index] }}"
    ran = nest(mode, outer, where, call("work", body=body)).answers("work", echo).run()
    assert ran.result == [[[1, 0, 2, 0], [2, 1, 2, 0]], [], [[3, 0, 1, 2]]]
    inner = [event for event in ran.of(e.LoopStarted) if event.parent_id is not None]
    ids = {event.task_run_id for event in ran.of(e.TaskDone, task="each")}
    assert {event.parent_id for event in inner} == ids
    assert len([event for event in ran.of(e.LoopDone) if event.parent_id]) == 3
    assert ran.of(e.NextEvaluated) == []


@pytest.mark.rule("LOOP-7", "SCOPE-2")
def test_a_third_level_sees_its_grandparent() -> None:
    deep = nested(
        "a",
        loop([1, 2], iterator="a"),
        nested(
            "b",
            loop([3], iterator="b"),
            call("work", body="{{ [iter.b, iter.parent.a, iter.parent.parent.n] }}"),
        ),
    )
    ran = looped([9], deep).answers("work", echo).run()
    assert ran.result == [[[[3, 1, 9]], [[3, 2, 9]]]]
    ids = [event.task_run_id for event in ran.of(e.TaskDone)]
    assert len(set(ids)) == len(ids)


@pytest.mark.rule("LOOP-7")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_nested_loop_fails_as_a_task(mode: str) -> None:
    bad = when("iter.cell == 2", "fail")
    ran = nest(mode, "sequential", "local", noop("work", bad)).run()
    assert ran.status == "failed"
    assert ran.error["cause"]["kind"] == "loop"
    assert ran.error["cause"]["index"] == 1
    assert ran.error["cause"]["cause"]["kind"] == "policy"


@pytest.mark.rule("LOOP-7", "LOOP-5")
@pytest.mark.parametrize(("mode", "outer", "where"), OUTER)
def test_nested_reducers_write_with_their_task(mode: str, outer: str, where: str) -> None:
    add = noop("work", otherwise(set_ctx={"sum": "{{ iter.cell }}"}))
    made = scenario(
        step(
            "start",
            nested("each", loop([1, 2, 3], mode=mode, iterator="cell", reduce={"sum": "sum"}), add),
            call("see", body="{{ ctx.sum }}"),
            loop=loop([0], iterator="row", mode=outer, exec=where),
        )
    )
    ran = made.run()
    assert ran.ctx == {"sum": 6}
    assert ran.inputs("see") == [6]


@pytest.mark.rule("LOOP-7", "SCOPE-4")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_who_sees_a_write_in_a_nested_loop(mode: str) -> None:
    look = call("look", body="{{ ctx.seen | default('nothing') }}")
    write = noop("write", otherwise(set_ctx={"seen": "x"}))
    made = scenario(
        step(
            "start",
            nested("each", loop([1, 2, 3], mode=mode, flight=1), look, write),
            call("after", body="{{ ctx.seen }}"),
        )
    )
    ran = made.run()
    others = "x" if mode == "sequential" else "nothing"
    assert ran.inputs("look") == ["nothing", others, others]
    assert ran.inputs("after") == ["x"]


@pytest.mark.rule("LOOP-7", "LOOP-5")
def test_nested_parallel_iterations_collide_too() -> None:
    write = noop("write", otherwise(set_ctx={"x": "{{ iter.n }}"}))
    made = scenario(step("start", nested("each", loop([1, 2], mode="parallel"), write)))
    ran = made.run()
    assert ran.error["cause"]["kind"] == "ctx_conflict"
    assert ran.ctx == {"x": 1}


@pytest.mark.rule("LOOP-7", "TASK-3", "EVT-0")
def test_a_nested_loop_that_is_retried_has_new_iterations() -> None:
    bad = when("ctx.tried is undefined", "fail", set_ctx={"tried": True})
    made = scenario(
        step(
            "start",
            nested(
                "each",
                loop([1, 2]),
                call("work", bad),
                rules=(when("_attempt == 1", "retry", attempts=2),),
            ),
        )
    )
    ran = made.run()
    assert ran.status == "completed"
    outcomes = [(event.task_run_id, event.attempt) for event in ran.of(e.TaskDone)]
    assert len(set(outcomes)) == len(outcomes) == 5
    assert len({event.iteration_id for event in ran.of(e.IterationStarted)}) == 3


CRASHES: dict[str, tuple[Any, list[Tree], dict[str, Any]]] = {
    "plain": ([1, 2], [call("one"), call("two")], {}),
    "writes": ([5, 5], [call("one", otherwise(set_ctx={"x": "{{ iter.n }}"}))], {}),
    "reduces": (
        [1, 2],
        [call("one", otherwise(set_ctx={"x": "{{ iter.n }}"})), call("two")],
        {"reduce": {"x": "sum"}},
    ),
    "fails": ([1, 2, 3], [call("one", when("iter.n == 2", "fail"))], {}),
    "goes on": ([1, 2, 3], [call("one", when("iter.n == 2", "fail"))], {"on_failure": "continue"}),
    "nested": (
        [[1, 2], [3]],
        [nested("in", loop("{{ iter.n }}", iterator="m", reduce={"t": "append"}), call("work"))],
        {},
    ),
    "nested writes": (
        [[1, 2]],
        [
            nested(
                "in",
                loop("{{ iter.n }}", iterator="m", reduce={"t": "append"}),
                call("work", otherwise(set_ctx={"t": "{{ iter.m }}"})),
                call("more"),
            )
        ],
        {},
    ),
}


@pytest.mark.rule("TASK-9", "LOOP-7", "EVT-5")
@each_way
@pytest.mark.parametrize(("elements", "tasks", "policy"), CRASHES.values(), ids=CRASHES)
@pytest.mark.unproven
def test_a_crash_between_any_two_events_changes_nothing(
    mode: str, where: str, elements: Any, tasks: list[Tree], policy: dict[str, Any]
) -> None:
    def make() -> Scenario:
        return looped(elements, *tasks, mode=mode, exec=where, flight=2, **policy)

    whole = make().run()
    for cut in crash_everywhere(make):
        assert cut.status == whole.status, cut.where
        assert cut.ctx == whole.ctx, cut.where
        assert cut.result == whole.result, cut.where
        assert sorted(cut.outcomes) == sorted(recorded(whole)), cut.where
        assert cut.twice == 0, f"{cut.where}: a recorded task ran again"


def recorded(ran: Ran) -> list[tuple[str, int]]:
    return [(event.task_run_id, event.attempt) for event in ran.of(e.TaskDone)]


REDUCED: dict[str, tuple[Any, Any, Any]] = {
    # reducer → what ctx had, what it comes to without and with that
    "sum": (100, 21, 121),
    "min": (4, 1, 1),
    "max": (4, 6, 6),
    "count": (10, 6, 16),
    "first": (9, 1, 9),
    "last": (9, 6, 6),
    "append": ([0], [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]),
    "extend": ([0], [1, 2, 3, 4, 5, 6], [0, 1, 2, 3, 4, 5, 6]),
    "merge": ({"0": 0}, {str(n): n for n in range(1, 7)}, {str(n): n for n in range(7)}),
}
WRITES = {"extend": "{{ [iter.m] }}", "merge": "{{ {iter.m | string: iter.m} }}"}


@pytest.mark.rule("LOOP-5", "LOOP-7")
@pytest.mark.parametrize(("mode", "where"), WAYS)
@pytest.mark.parametrize("how", REDUCED)
@pytest.mark.parametrize("depth", [1, 2])
def test_loops_that_reduce_one_key_count_every_write_once(
    how: str, depth: int, mode: str, where: str
) -> None:
    had, alone, onto = REDUCED[how]
    elements = "{{ iter.n }}" if depth == 1 else "{{ [iter.x] }}"
    write = noop("work", otherwise(set_ctx={"k": WRITES.get(how, "{{ iter.m }}")}))
    work = nested("in", loop(elements, iterator="m", reduce={"k": how}), write)
    if depth == 2:  # the middle loop goes over the elements, the inner one over each of them
        work = nested("mid", loop("{{ iter.n }}", iterator="x", reduce={"k": how}), work)
    for before, after in (({}, alone), ({"k": had}, onto)):
        made = looped([[1, 2], [3], [4, 5, 6]], work, mode=mode, exec=where, reduce={"k": how})
        assert made.run(ctx=before).ctx == {"k": after}


@pytest.mark.rule("LOOP-5", "LOOP-7")
def test_loops_that_reduce_one_key_differently_fold_it_twice() -> None:
    """The sum of each row begins with nothing; the greatest of them is compared with ctx."""
    add = noop("work", otherwise(set_ctx={"k": "{{ iter.m }}"}))
    inner = nested("in", loop("{{ iter.n }}", iterator="m", reduce={"k": "sum"}), add)
    made = looped([[1, 2], [30], [4, 5]], inner, reduce={"k": "max"})
    assert made.run(ctx={"k": 7}).ctx == {"k": 30}
    assert looped([[1, 2]], inner, reduce={"k": "max"}).run(ctx={"k": 7}).ctx == {"k": 7}


@pytest.mark.rule("LOOP-5", "LOOP-7")
@pytest.mark.parametrize("how", ["sum", "count", "append"])
def test_inner_iterations_that_fail_are_left_out_of_the_outer_loop(how: str) -> None:
    write = noop("work", otherwise(set_ctx={"k": "{{ iter.m }}"}))
    spoil = noop("judge", when("iter.m == 2", "fail"), otherwise())
    policy: dict[str, Any] = {"reduce": {"k": how}, "on_failure": "continue"}
    inner = nested("in", loop("{{ iter.n }}", iterator="m", **policy), write, spoil)
    ran = looped([[1, 2], [3]], inner, reduce={"k": how}).run()
    assert ran.ctx == {"k": {"sum": 4, "count": 2, "append": [1, 3]}[how]}


@pytest.mark.rule("LOOP-5", "LOOP-9")
@pytest.mark.parametrize(("mode", "where"), WAYS)
def test_what_reducers_gather_lies_in_chunks(mode: str, where: str) -> None:
    """Two loops in a row append to one key: the second begins with what lies outside already."""
    gather = noop(
        "work", otherwise(set_ctx={"rows": "{{ 'x' * 400 }}", "all": "{{ [iter.n] * 9 }}"})
    )
    reduce = {"rows": "append", "all": "extend"}
    each = loop(list(range(8)), mode=mode, exec=where, iterator="n", reduce=reduce)
    see = "{{ [ctx.rows | length, ctx.all | length, ctx.all[-1], ctx.rows[9] | length] }}"
    made = scenario(
        step("start", gather, loop=each, arcs=[arc("again")]),
        step("again", gather, loop=each, arcs=[arc("end")]),
        step("end", call("see", body=see)),
        executor={"spec": {"policy": {"limits": {"max_payload_bytes": 1000}}}},
    )
    ran = made.run()
    assert ran.inputs("see") == [[16, 144, 7, 400]]
    assert str(ran.ctx["rows"].schema_hint).startswith("chunks[16]")


@pytest.mark.rule("LOOP-5", "RES-2")
def test_merge_begins_with_what_lies_outside() -> None:
    add = noop("work", otherwise(set_ctx={"found": "{{ {iter.n: 1} }}"}))
    each = loop(["a", "b"], iterator="n", reduce={"found": "merge"})
    made = scenario(
        step("start", add, loop=each, arcs=[arc("end")]),
        step("end", call("see", body="{{ ctx.found }}")),
        executor={"spec": {"policy": {"limits": {"max_payload_bytes": 1000}}}},
    )
    had = {"begun": "x" * 2000}
    assert made.run(ctx={"found": had}).inputs("see") == [{**had, "a": 1, "b": 1}]


@pytest.mark.rule("LOOP-5", "RES-1")
@pytest.mark.parametrize("how", ["merge", "extend", "sum"])
@pytest.mark.parametrize("where", ["local", "distributed"])
def test_reducers_take_large_writes(how: str, where: str) -> None:
    """A value that is stored outside elsewhere is looked into here."""
    big = {
        "merge": {"{{ n }}": "x" * 200_000},
        "extend": ["x" * 90_000] * 2,
        "sum": ["y" * 150_000],
    }
    work = call("work", otherwise(set_ctx={"k": "{{ outcome.result }}"}))
    made = scenario(
        step("start", work, loop=loop([1, 2], exec=where, reduce={"k": how}), arcs=[arc("end")]),
        step("end", call("see", body="{{ ctx.k }}")),
    )
    ran = made.answers("work", ok(big[how])).run()
    assert ran.status == "completed"
    assert ran.inputs("see") == [big[how] if how == "merge" else [*big[how], *big[how]]]


@pytest.mark.rule("LOOP-7", "TASK-6")
def test_a_nested_loop_without_a_pipeline_comes_to_nothing() -> None:
    ran = scenario(step("start", nested("each", loop([1, 2])))).run()
    assert (ran.status, ran.result) == ("completed", [None, None])


@pytest.mark.rule("LOOP-7", "OUT-2")
def test_an_iterator_tells_how_many_iterations_ended_how() -> None:
    told = otherwise(set_ctx={"told": "{{ outcome.iterator }}"})
    work = call("work", when("iter.n == 2", "fail"))
    made = scenario(
        step("start", nested("each", loop([1, 2, 3], on_failure="continue"), work, rules=(told,)))
    )
    assert made.run().ctx == {"told": {"total": 3, "done": 2, "failed": 1}}


@pytest.mark.rule("LOOP-1", "TASK-6")
@each_way
def test_a_loop_without_a_pipeline_routes(mode: str, where: str) -> None:
    """A step needs `tool` or `next`: what loops over nothing comes to nothing, and goes on."""
    arcs = [arc("after", "event.name == 'loop.done'", loop="{{ event.loop }}")]
    ran = scenario(
        step("start", loop=loop([10, 20, 30], mode=mode, exec=where), arcs=arcs),
        step("after", call("last", body="{{ args }}")),
    ).run()
    assert ran.status == "completed"
    none: list[None] = [None, None, None]
    [told] = ran.inputs("last")
    assert told["loop"] == {"total": 3, "done": 3, "failed": 0, "results": none, "errors": []}
    assert ran.of(e.TaskStarted, step="start") == []
