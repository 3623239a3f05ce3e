"""Whatever a playbook produces, no event is larger than the limit, and nothing is changed by it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import Ran, Scenario, ok, scenario
from tests.support.searching import examples
from tests.support.steps import Tree, arc, call, loop, nested, otherwise, playbook, step

from noetl.errors import NoetlError
from noetl.messages.codec import encode_events
from noetl.messages.fitting import ENVELOPE, INLINE

LIMITS = [600, 20_000, 200_000, 1_048_576]


def sizes(limit: int) -> st.SearchStrategy[int]:
    """Around what is never inline, around the limit, and around halves of it."""
    edges = [0, 40, 390, 410, limit // 3, limit // 2, limit - 300, limit, limit + 1, 2 * limit]
    edges += [INLINE - 10, INLINE + 10] if limit >= INLINE else []
    return st.sampled_from(edges)


def values(limit: int) -> st.SearchStrategy[Any]:
    text = st.tuples(st.sampled_from("aé\x01"), sizes(limit)).map(lambda made: made[0] * made[1])
    rows = sizes(limit).map(lambda size: [{"id": n} for n in range(min(size // 12, 20_000))])
    return st.one_of(text, rows, st.dictionaries(st.sampled_from("pqr"), text, max_size=3))


KEEP = otherwise(
    set_ctx={"a": "{{ outcome.result }}", "b": "{{ workload.big }}", "all": "{{ outcome.result }}"},
    set_iter={"x": "{{ outcome.result }}"},
    set_prev="{{ [outcome.result, workload.more] }}",
)


def steps_of() -> list[Tree]:
    """Every place in which an event holds a value."""
    args: dict[str, Any] = {"rows": "{{ event.result }}", "a": "{{ ctx.a }}", "n": 1}
    return [
        step("start", call("get", KEEP), arcs=[arc("left", **args), arc("right", **args)],
             mode="inclusive"),
        step("left", call("one", otherwise(set_ctx={"left": "{{ outcome.result }}"})),
             arcs=[arc("meet", "ctx.a is defined", a="{{ event.result }}", b="{{ ctx.b }}")]),
        step("right", nested("in", loop("{{ [ctx.a, ctx.b] }}", iterator="m"), call("two")),
             arcs=[arc("meet", c="{{ event.result }}")]),
        step("meet", call("see", body="{{ [args, ctx] }}"),
             join={"from": ["left", "right"], "mode": "all"},
             arcs=[arc("each", rows="{{ [args.a, args.b, ctx.a] }}")]),
        step("each", call("three", otherwise(set_ctx={"sum": "{{ outcome.result }}"})),
             loop=loop("{{ args.rows }}", mode="parallel", reduce={"sum": "append"}),
             arcs=[arc("end", all="{{ event.loop }}")]),
        step("end", call("last", body="{{ [args.all.results, ctx.sum] }}")),
    ]  # fmt: skip


def told(limit: int, answers: list[Any]) -> Scenario:
    limits = {"kind": "local", "spec": {"policy": {"limits": {"max_payload_bytes": limit}}}}
    made = scenario(*steps_of(), executor=limits, workload={"big": "", "more": ""})
    for label, answer in zip(("get", "one", "two", "three", "last"), answers, strict=True):
        made.answers(label, ok(answer))
    return made


def check(ran: Ran, limit: int) -> None:
    assert ran.status == "completed", ran.execution.error
    for event in ran.events:
        assert len(encode_events([event])) <= limit + ENVELOPE, event


@pytest.mark.rule("EVT-4", "RES-1", "RES-2", "EVT-5")
@examples(60)
@given(data=st.data(), limit=st.sampled_from(LIMITS))
def test_no_event_is_larger_than_the_limit(data: st.DataObject, limit: int) -> None:
    """A scenario verifies its log: what is decided again is what was decided."""
    answers = [data.draw(values(limit)) for _ in range(5)]
    big, more = data.draw(values(limit)), data.draw(values(limit))
    ran = told(limit, answers).run({"big": big, "more": more}, {"begun": more})
    check(ran, limit)
    get, one, two, three, _ = answers
    (seen,) = ran.inputs("see")
    assert seen[0]["a"] == one
    assert seen[0]["b"] == big
    assert seen[0]["c"] == [two, two]
    assert seen[1]["a"] == seen[1]["all"] == get
    assert seen[1]["begun"] == more
    assert ran.inputs("last") == [[[three] * 3, [three] * 3]]


@pytest.mark.rule("EVT-4", "RES-1", "WRK-1")
@pytest.mark.parametrize("size", [530_000, 800_000, 1_048_000, 2_000_000])
def test_a_large_value_runs_once_at_a_server(tmp_path: Path, size: int) -> None:
    """Embedded and at a server the same: it is stored once, and the log refers to it."""
    text = playbook(*steps_of(), workload={"big": "", "more": ""})
    large = "x" * size

    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["get"] = tools.answers["three"] = [ok(large)]
        await cluster.server()
        cluster.worker(tools)
        execution_id = await cluster.start(text, {"big": large})
        execution = await cluster.end_of(execution_id)
        assert execution.status == "completed"
        assert [call.label for call in tools.calls].count("get") == 1
        written = [encode_events([event]) for event in await cluster.events(execution_id)]
        assert max(map(len, written)) <= INLINE
        assert not any(b"x" * 1000 in event for event in written)

    clustered(test, tmp_path)


MANY = {f"key{number:05}": "x" * 200 for number in range(6000)}
"""More than the limit in all, and nothing in it that is worth a reference."""
WRITES = step("start", call("get", otherwise(set_ctx=MANY)), arcs=[arc("end")])
END = step("end", call("last"))


def refused_once(error: Any, calls: list[Any]) -> None:
    assert error["kind"] == "result" or error["cause"]["kind"] == "result", error
    assert "above the limit of 1,048,576" in str(error)
    assert [call.label for call in calls] == ["get"]


@pytest.mark.rule("EVT-4")
def test_thousands_of_small_values_fail_the_run_once_in_one_process() -> None:
    ran = scenario(WRITES, END).run()
    assert ran.status == "failed"
    refused_once(ran.error, ran.calls)
    assert max(len(encode_events([event])) for event in ran.events) < INLINE


@pytest.mark.rule("EVT-4", "WRK-1")
def test_thousands_of_small_values_fail_the_run_once_at_a_server(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        await cluster.server()
        cluster.worker(tools)
        execution = await cluster.run(playbook(WRITES, END))
        assert execution.status == "failed"
        refused_once(execution.error, tools.calls)

    clustered(test, tmp_path)


@pytest.mark.rule("EVT-4", "NEXT-4")
@pytest.mark.parametrize(
    ("steps", "roots"),
    [
        ([step("start", call("get"), arcs=[arc("end", **MANY)]), END], {}),
        ([step("start", call("get"))], {"workload": MANY}),
    ],
    ids=["args of an arc", "workload"],
)
def test_thousands_of_small_values_of_a_playbook_fail_its_execution(
    steps: list[Tree], roots: Tree
) -> None:
    ran = scenario(*steps, **roots).run()
    assert ran.status == "failed"
    assert "above the limit of 1,048,576" in str(ran.execution.error)
    assert max(len(encode_events([event])) for event in ran.events) < INLINE


@pytest.mark.rule("EVT-4", "SRV-2")
def test_a_request_of_thousands_of_small_values_is_refused(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        with pytest.raises(NoetlError, match="above the limit of 1,048,576"):
            await cluster.start(playbook(step("start", call("get"))), MANY)
        assert not server.server.owned
        assert not cluster.root.tables.rows

    clustered(test, tmp_path)
