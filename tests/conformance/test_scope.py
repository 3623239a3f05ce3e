"""SCOPE: what a template sees, who may change it, and when others see the change."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.crash import crash_everywhere
from tests.support.scenario import Gate, Scenario, error, ok, scenario
from tests.support.steps import Tree, arc, call, loop, noop, otherwise, playbook, sets, step, when

from noetl.errors import PlaybookRejected
from noetl.messages import events as e
from noetl.node.local import LocalNode
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.server.active import ActiveExecution


@pytest.mark.rule("SCOPE-1")
def test_ctx_is_recorded_as_patches() -> None:
    ran = scenario(
        step("start", sets("one", a=1, b=2), sets("two", b=3), arcs=[arc("more")]),
        step("more", sets("three", c="{{ ctx.b }}")),
    ).run(ctx={"z": 0})
    patches = [event.patch for event in ran.of(e.CtxPatched)]
    assert patches == [{"a": 1, "b": 2}, {"b": 3}, {"c": 3}]
    assert ran.ctx == {"z": 0, "a": 1, "b": 3, "c": 3}


@pytest.mark.rule("SCOPE-1", "EVT-1")
def test_a_patch_names_the_task_run_that_wrote_it() -> None:
    ran = scenario(step("start", sets("one", a=1))).run()
    patch, done = ran.one(e.CtxPatched), ran.one(e.TaskDone)
    assert (patch.step, patch.step_run_id) == ("start", done.step_run_id)
    assert patch.task_run_id == done.task_run_id
    assert ran.names[ran.names.index("task.done") + 1] == "ctx.patched"


@pytest.mark.rule("SCOPE-1", "DOC-3")
def test_the_workload_is_data_and_never_changes() -> None:
    sees = "{{ [workload.greeting, workload.who] }}"
    ran = scenario(
        step("start", sets("write", who="ctx", workload="x"), arcs=[arc("more", who="args")]),
        step("more", call("see", body=sees)),
        workload={"who": "all", "greeting": "hello {{ workload.who }}"},
    ).run({"who": "{{ 7*7 }}", "more": 1})
    assert ran.inputs("see") == [["hello {{ 7*7 }}", "{{ 7*7 }}"]]
    assert ran.execution.workload == {"who": "{{ 7*7 }}", "greeting": "hello {{ 7*7 }}", "more": 1}


@pytest.mark.rule("SCOPE-1", "TPL-2")
def test_bare_names_are_looked_up_from_the_inside() -> None:
    ran = scenario(
        step("start", sets("write", c="ctx", d="ctx"), arcs=[arc("more", d="args")]),
        step(
            "more",
            noop("note", otherwise(set_iter={"b": "iter", "c": "iter", "d": "iter"})),
            call("see", body="{{ [a, b, c, d] }}"),
        ),
        workload={"a": "workload", "b": "workload", "c": "workload", "d": "workload"},
    ).run()
    assert ran.inputs("see") == [["workload", "iter", "ctx", "args"]]


@pytest.mark.rule("SCOPE-1", "SCOPE-2")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_iter_belongs_to_one_iteration(mode: str) -> None:
    ran = scenario(
        step(
            "start",
            call("see", body="{{ iter.mine | default('fresh') }}"),
            noop("write", otherwise(set_iter={"mine": "{{ iter.index }}"})),
            call("again", body="{{ [iter.n, iter.index, iter.mine] }}"),
            loop=loop(["a", "b"], mode=mode),
        )
    ).run()
    assert ran.inputs("see") == ["fresh", "fresh"]
    assert sorted(ran.inputs("again")) == [["a", 0, 0], ["b", 1, 1]]
    assert ran.ctx == {}


@pytest.mark.rule("SCOPE-2")
def test_outside_a_loop_iter_is_the_runs_own_scratch_space() -> None:
    rules = [
        when("iter.page | default(1) < 3", "jump", to="page", set_iter={"page": NEXT_PAGE}),
        otherwise(),
    ]
    ran = scenario(
        step(
            "start", call("page", *rules, body="{{ iter.page | default(1) }}"), arcs=[arc("more")]
        ),
        step("more", call("see", body="{{ iter }}")),
    ).run()
    assert ran.inputs("page") == [1, 2, 3]
    assert ran.inputs("see") == [{}], "empty at the start of every run"


NEXT_PAGE = "{{ iter.page | default(1) + 1 }}"
PREV: dict[str, tuple[list[Tree], Any]] = {
    "at the start it is null": ([], None),
    "a result": ([call("first")], "first"),
    "null after an error that was continued": ([call("first"), call("bad", otherwise())], None),
    "noop passes it through": ([call("first"), noop("pause")], "first"),
    "set_prev replaces it": (
        [call("first", otherwise(set_prev="{{ [outcome.result] }}"))],
        ["first"],
    ),
    "set_prev may be null": ([call("first", otherwise(set_prev=None))], None),
}


@pytest.mark.rule("SCOPE-3")
@pytest.mark.parametrize(("tasks", "prev"), PREV.values(), ids=PREV)
def test_prev(tasks: list[Tree], prev: Any) -> None:
    ran = (
        scenario(step("start", *tasks, call("see", body="{{ [_prev, _task, _attempt] }}")))
        .answers("bad", error("http"))
        .run()
    )
    assert ran.inputs("see") == [[prev, "see", 1]]


@pytest.mark.rule("SCOPE-3")
@pytest.mark.parametrize(("tasks", "prev"), PREV.values(), ids=PREV)
def test_a_result_is_prev_at_the_end(tasks: list[Tree], prev: Any) -> None:
    made = scenario(step("start", *(tasks or [noop("only")]), arcs=[]))
    ran = made.answers("bad", error("http")).run()
    assert ran.one(e.StepDone).result == prev
    assert ran.result == prev


@pytest.mark.rule("SCOPE-4")
def test_a_run_sees_ctx_as_of_its_schedule_and_its_own_writes() -> None:
    gate = Gate()

    async def other_first(local: LocalNode, active: ActiveExecution) -> None:
        del local
        slow, quick = await gate.held(2)
        await gate.let_go(quick)
        assert active.execution.ctx["x"] == "other's"
        await gate.let_go(slow)

    ran = (
        scenario(
            step("start", sets("seed", x="old"), arcs=[arc("a"), arc("b")], mode="inclusive"),
            step(
                "a",
                call("wait_a"),
                call("see", body="{{ [ctx.x, ctx.mine | default(0)] }}"),
                noop("write", otherwise(set_ctx={"mine": 1})),
                call("again", body="{{ [ctx.x, ctx.mine] }}"),
            ),
            step("b", call("wait_b", otherwise(set_ctx={"x": "other's"}))),
        )
        .answers("wait_a", gate)
        .answers("wait_b", gate)
        .act(other_first)
    )
    assert ran.inputs("see") == [["old", 0]]
    assert ran.inputs("again") == [["old", 1]]
    assert ran.ctx == {"x": "other's", "mine": 1}


@pytest.mark.rule("SCOPE-4")
def test_the_last_writer_in_log_order_wins() -> None:
    gate = Gate()

    async def b_then_a(local: LocalNode, active: ActiveExecution) -> None:
        del local, active
        a, b = await gate.held(2)
        await gate.let_go(b)
        await gate.let_go(a)

    ran = (
        scenario(
            step("start", arcs=[arc("a"), arc("b")], mode="inclusive"),
            step("a", call("ask_a", otherwise(set_ctx={"x": "a"}))),
            step("b", call("ask_b", otherwise(set_ctx={"x": "b"}))),
        )
        .answers("ask_a", gate)
        .answers("ask_b", gate)
        .act(b_then_a)
    )
    assert [event.patch["x"] for event in ran.of(e.CtxPatched)] == ["b", "a"]
    assert ran.ctx == {"x": "a"}


@pytest.mark.rule("SCOPE-4", "SCOPE-3")
def test_a_fleet_sees_what_one_process_sees(tmp_path: Path) -> None:
    see = "{{ [ctx.n, ctx.last | default('none'), _prev] }}"
    text = playbook(
        step("start", sets("seed", n=0), arcs=[arc("each"), arc("aside")], mode="inclusive"),
        step("aside", sets("other", aside=1)),
        step(
            "each",
            call("look", otherwise(set_ctx={"last": "{{ iter.n }}"}), body=see),
            call("again", body=see),
            loop=loop([1, 2, 3]),
        ),
    )
    made = scenario(step("start", noop("x")))
    made.text, made.plan = text, make_plan(load_valid(text), text)
    one = made.run()

    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        await cluster.server()
        cluster.worker(tools)
        many = await cluster.run(text)
        assert (many.status, many.ctx) == (one.status, one.ctx)
        seen = [call_.inputs.body for call_ in tools.calls]
        assert seen == [call_.inputs.body for call_ in one.calls]

    clustered(test, tmp_path)


@pytest.mark.rule("SCOPE-4")
def test_ctx_starts_empty_unless_the_request_has_one() -> None:
    made = scenario(step("start", call("see", body="{{ ctx }}")))
    assert made.run().inputs("see") == [{}]
    given = scenario(step("start", call("see", body="{{ ctx }}"))).run(ctx={"a": [1]})
    assert given.inputs("see") == [{"a": [1]}]


@pytest.mark.rule("SCOPE-5", "TASK-5")
@pytest.mark.parametrize("where", ["ctx", "iter"])
def test_a_set_replaces_whole_values_under_plain_names(where: str) -> None:
    first: Tree = {f"set_{where}": {"a": {"x": 1}, "b": 1}}
    second: Tree = {f"set_{where}": {"a": {"y": 2}, "c": 3}}
    ran = (
        scenario(
            step(
                "start",
                noop("one", otherwise(**first)),
                noop("two", otherwise(**second)),
                call("see", body=f"{{{{ {where} }}}}"),
            )
        )
        .answers("see", ok())
        .run()
    )
    assert ran.inputs("see") == [{"a": {"y": 2}, "b": 1, "c": 3}]


@pytest.mark.rule("SCOPE-5", "VAL-2")
@pytest.mark.parametrize("where", ["set_ctx", "set_iter"])
def test_a_path_is_no_name(where: str) -> None:
    orders: Tree = {where: {"a.b": 1}}
    with pytest.raises(PlaybookRejected) as rejected:
        scenario(step("start", noop("one", otherwise(**orders))))
    assert "a.b" in rejected.value.findings[0].message


# ── reduced keys of the whole execution ──────────────────────────────────────────────────────


def folding(*steps: Tree, **reduce: str) -> Scenario:
    return scenario(*steps, executor={"spec": {"policy": {"reduce": reduce}}})


@pytest.mark.rule("SCOPE-6")
def test_branches_that_run_at_once_lose_no_write() -> None:
    names = ["a", "b", "c"]
    branches = [step(name, call("work"), sets("add", n=1, seen=name)) for name in names]
    fork = step("start", arcs=[arc(name) for name in names], mode="inclusive")
    ran = folding(fork, *branches, n="sum", seen="append").run(ctx={"n": 10})
    assert ran.ctx["n"] == 13
    assert sorted(ran.ctx["seen"]) == names
    assert [event.patch["n"] for event in ran.of(e.CtxPatched)] == [11, 12, 13]


@pytest.mark.rule("SCOPE-6", "LOOP-5")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_iterations_may_write_a_reduced_key(mode: str) -> None:
    add = sets("add", n="{{ iter.n }}")
    ran = folding(step("start", call("work"), add, loop=loop([1, 2, 3], mode=mode)), n="sum").run()
    assert (ran.status, ran.ctx) == ("completed", {"n": 6})


@pytest.mark.rule("SCOPE-6", "SCOPE-4")
def test_a_run_sees_a_reduced_key_as_it_was_when_it_began() -> None:
    see = call("see", body="{{ ctx.n | default('nothing') }}")
    ran = folding(
        step("start", sets("add", n=1), see, sets("more", n=2), arcs=[arc("after")]),
        step("after", call("last", body="{{ ctx.n }}")),
        n="sum",
    ).run()
    assert (ran.inputs("see"), ran.inputs("last"), ran.ctx) == (["nothing"], [3], {"n": 3})


@pytest.mark.rule("SCOPE-6")
def test_a_write_that_its_reducer_cannot_take_fails_the_step() -> None:
    ran = folding(
        step("start", sets("one", n=1), sets("two", n="text"), call("never")), n="sum"
    ).run()
    assert (ran.status, ran.error["kind"], ran.labels(), ran.ctx) == (
        "failed",
        "ctx_conflict",
        [],
        {"n": 1},
    )


@pytest.mark.rule("SCOPE-6", "TASK-9")
def test_a_reduced_key_counts_each_write_once_whatever_dies() -> None:
    def make() -> Scenario:
        see = call("see", body="{{ ctx.n | default('nothing') }}")
        return folding(
            step("start", sets("one", n=1), see, sets("more", n=2), arcs=[arc("after")]),
            step("after", sets("add", n="{{ iter.n }}"), loop=loop([4, 8], mode="parallel")),
            n="sum",
        )

    whole = make().run()
    assert whole.ctx == {"n": 15}
    for cut in crash_everywhere(make):
        assert (cut.status, cut.ctx, cut.twice) == ("completed", {"n": 15}, 0), cut.where
        assert {call.inputs.body for call in cut.calls} == {"nothing"}, cut.where
