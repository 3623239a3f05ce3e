"""RES, EVT-4: what is too large for the log, and how it comes back."""

from typing import Any

import pytest
from tests.support.scenario import Ran, Scenario, error, ok, scenario
from tests.support.steps import Tree, arc, call, loop, nested, noop, otherwise, step, when

from noetl.messages import events as e
from noetl.messages.codec import decode, encode_events
from noetl.messages.outcome import failed
from noetl.messages.reference import Reference

LIMIT = 2000
BIG = "x" * 3000
ROWS = [{"id": number, "text": "y" * 10} for number in range(200)]


def small(*steps: Tree, limit: int = LIMIT, **policy: Any) -> Scenario:
    """A playbook whose log takes no values over `limit` bytes."""
    limits = {"limits": {"max_payload_bytes": limit}}
    return scenario(*steps, executor={"spec": {"policy": {**limits, **policy}}})


def largest(ran: Ran) -> int:
    """The size of the largest event, its envelope aside."""
    return max(len(encode_events([event])) for event in ran.events)


@pytest.mark.rule("RES-1", "EVT-4")
@pytest.mark.parametrize(
    ("value", "hint"),
    [(BIG, None), (ROWS, "list[200]"), ({"rows": ROWS}, "object"), ("é" * 1500, None)],
    ids=["text", "list", "mapping", "characters of two bytes"],
)
def test_a_large_result_leaves_the_log(value: Any, hint: str | None) -> None:
    ran = small(step("start", call("fetch"))).answers("fetch", ok(value)).run()
    reference = ran.one(e.TaskDone).outcome["result"]
    assert isinstance(reference, Reference)
    assert reference.schema_hint == hint
    body = ran.bodies[reference.key]
    assert reference.size == len(body)
    assert decode(body) == value
    assert ran.one(e.StepDone).result == reference
    assert largest(ran) < LIMIT


@pytest.mark.rule("RES-1", "EVT-4")
@pytest.mark.parametrize("size", [LIMIT - 300, LIMIT + 1])
def test_the_limit(size: int) -> None:
    ran = small(step("start", call("fetch"))).answers("fetch", ok("x" * size)).run()
    outside = isinstance(ran.one(e.TaskDone).outcome["result"], Reference)
    assert outside is (size > LIMIT)


ODD: dict[str, Any] = {
    "many small before few large": [*[BIG * 3] * 3, *[0] * 9000],
    "few large before many small": [*[0] * 9000, *[BIG * 3] * 3],
    "characters of four bytes": "\U0001f600" * 600,
    "characters that are escaped": "\x01" * 700,
    "long numbers": [0.1 + 0.2] * 300,
    "long keys": {"k" * 500 + str(number): None for number in range(5)},
    "deep": [[[[["z" * 100] * 5] * 5] * 5]],
}


@pytest.mark.rule("EVT-4")
@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_nothing_large_slips_through(value: Any) -> None:
    keep = otherwise(set_ctx={"kept": "{{ outcome.result }}"}, set_prev="{{ outcome.result }}")
    ran = (
        small(
            step("start", call("fetch", keep), arcs=[arc("more", value="{{ event.result }}")]),
            step("more", call("see", body="{{ args.value }}"), arcs=[]),
        )
        .answers("fetch", ok(value))
        .run()
    )
    assert ran.status == "completed"
    assert ran.inputs("see") == [value]
    assert largest(ran) < 2 * LIMIT


PARTS: dict[str, Tree] = {
    "set_ctx": {"set_ctx": {"a": "{{ 'a' * 1500 }}", "b": "{{ 'b' * 1400 }}", "c": 1}},
    "set_iter": {"set_iter": {"a": "{{ 'a' * 3000 }}"}},
    "set_prev": {"set_prev": "{{ 'a' * 3000 }}"},
}


@pytest.mark.rule("EVT-4")
@pytest.mark.parametrize("sets_", PARTS.values(), ids=PARTS)
def test_the_largest_values_of_a_write_leave_the_log(sets_: Tree) -> None:
    see = "{{ [(ctx.a | default('')) | length, (iter.a | default('')) | length] }}"
    never = when(False, set_iter={"a": "", "b": ""})
    ran = small(
        step("start", noop("write", never, otherwise(**sets_)), call("see", body=see), noop("end"))
    ).run()
    assert ran.status == "completed"
    assert largest(ran) < 1.3 * LIMIT
    lengths = {"set_ctx": [1500, 0], "set_iter": [0, 3000], "set_prev": [0, 0]}
    assert ran.inputs("see") == [lengths[next(iter(sets_))]]


@pytest.mark.rule("EVT-4")
def test_only_as_much_as_needed_leaves_the_log() -> None:
    write = PARTS["set_ctx"]
    ran = small(step("start", noop("write", otherwise(**write)))).run()
    patch = ran.one(e.CtxPatched).patch
    assert isinstance(patch["a"], Reference)
    assert patch["b"] == "b" * 1400
    assert patch["c"] == 1


@pytest.mark.rule("EVT-4", "NEXT-4")
def test_large_args_leave_the_log() -> None:
    ran = small(
        step("start", noop("s"), arcs=[arc("more", big="{{ 'z' * 3000 }}", n=1)]),
        step("more", call("see", body="{{ [args.big | length, args.n] }}")),
    ).run()
    args = ran.of(e.TokenCreated)[1].args
    assert isinstance(args["big"], Reference)
    assert args["n"] == 1
    assert ran.inputs("see") == [[3000, 1]]


@pytest.mark.rule("EVT-4", "OUT-4")
@pytest.mark.parametrize(
    "outcome",
    [
        error("http", "m" * 5000),
        failed("http", "short", body="b" * 5000),
        failed("http", "short", cause={"kind": "exit", "message": "m" * 5000}),
    ],
    ids=["message", "field", "cause"],
)
@pytest.mark.parametrize(
    "rules",
    [(), (otherwise("retry", attempts=1),), (when("outcome.error.kind == 'http'", "fail"),)],
)
def test_a_large_error_is_still_an_error(outcome: Any, rules: tuple[Tree, ...]) -> None:
    ran = small(step("start", call("fetch", *rules))).answers("fetch", outcome).run()
    assert ran.status == "failed"
    inner = ran.error["cause"] if ran.error["kind"] == "retry_exhausted" else ran.error
    assert inner["kind"] == "http"
    assert inner["retryable"] is False
    assert isinstance(inner["message"], str)
    assert largest(ran) < 2 * LIMIT


@pytest.mark.rule("EVT-4", "DOC-3")
def test_a_large_payload_leaves_the_log() -> None:
    ran = small(step("start", call("see", body="{{ workload.rows[199].id }}"))).run({"rows": ROWS})
    assert isinstance(ran.events[0].payload["rows"], Reference)  # type: ignore[attr-defined]
    assert isinstance(ran.one(e.RequestEvaluated).workload["rows"], Reference)
    assert ran.inputs("see") == [199]


@pytest.mark.rule("RES-1")
def test_reference_first_keeps_every_result_outside() -> None:
    ran = small(
        step("start", call("fetch"), call("see", body="{{ _prev }}"), noop("end")),
        results={"reference_first": True},
    )
    done = ran.answers("fetch", ok({"n": 1})).answers("see", ok()).run()
    first, second, third = done.of(e.TaskDone)
    assert isinstance(first.outcome["result"], Reference)
    assert second.outcome["result"] is None
    assert third.outcome["result"] is None
    assert done.inputs("see") == [{"n": 1}]


GUARDS = ["event.result.rows[0].id == 0", "event.result.rows | length == 200", "ctx.kept.rows"]


@pytest.mark.rule("RES-2", "NEXT-2")
@pytest.mark.parametrize("guard", GUARDS)
def test_guards_see_the_value(guard: str) -> None:
    keep = otherwise(set_ctx={"kept": "{{ outcome.result }}"})
    ran = (
        small(
            step("start", call("fetch", keep), arcs=[arc("more", guard)]),
            step("more", call("see", body="{{ ctx.kept.rows[7].id }}")),
        )
        .answers("fetch", ok({"rows": ROWS}))
        .run()
    )
    assert ran.inputs("see") == [7]
    assert isinstance(ran.execution.ctx["kept"], Reference), "what is passed on is not copied"


@pytest.mark.rule("RES-2")
def test_rules_and_tools_see_the_value() -> None:
    rules = [when("outcome.result[3].id == 3", set_ctx={"n": "{{ outcome.result | length }}"})]
    ran = (
        small(step("start", call("fetch", *rules), call("use", body={"all": "{{ _prev }}"})))
        .answers("fetch", ok(ROWS))
        .run()
    )
    assert ran.ctx == {"n": 200}
    assert ran.inputs("use") == [{"all": ROWS}]


LOOKALIKE = {"$ref": {"store": "memory", "key": "x1/" + "0" * 64, "size": 1, "checksum": "0" * 64}}


@pytest.mark.rule("RES-1", "RES-2")
@pytest.mark.parametrize("more", ["", BIG], ids=["in the log", "outside"])
def test_data_that_looks_like_a_reference_is_data(more: str) -> None:
    value = {"a": LOOKALIKE, "b": [LOOKALIKE], "more": more, "$refs": [["a"]], "$value": 1}
    keep = otherwise(set_ctx={"kept": "{{ outcome.result }}"})
    ran = (
        small(
            step("start", call("fetch", keep), arcs=[arc("after", value="{{ event.result }}")]),
            step("after", call("see", body="{{ [ctx.kept, args.value] }}")),
        )
        .answers("fetch", ok(value))
        .run()
    )
    assert ran.inputs("see") == [[value, value]]


@pytest.mark.rule("RES-2", "LOOP-6")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_large_results_of_iterations(mode: str) -> None:
    ran = (
        small(
            step(
                "start",
                call("fetch"),
                loop=loop([1, 2, 3], mode=mode),
                arcs=[
                    arc("more", first="{{ event.result[0].rows[5].id }}", all="{{ event.result }}")
                ],
            ),
            step(
                "more",
                call("see", body="{{ args.first }}"),
                call("use", body="{{ args.all }}"),
            ),
        )
        .answers("fetch", ok({"rows": ROWS}))
        .run()
    )
    assert ran.inputs("see") == [5]
    assert ran.inputs("use") == [[{"rows": ROWS}] * 3]
    assert largest(ran) < LIMIT


@pytest.mark.rule("RES-2", "LOOP-1", "LOOP-7")
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
def test_a_large_collection(mode: str) -> None:
    """The collection of a loop and of a nested one is the result of a task."""
    inner = nested("each", loop("{{ ctx.rows }}", iterator="m"), noop("n"))
    ran = (
        small(
            step(
                "start",
                call("fetch", otherwise(set_ctx={"rows": "{{ outcome.result }}"})),
                inner,
                arcs=[arc("run", list="{{ ctx.rows }}")],
            ),
            step(
                "run",
                call("work", body="{{ iter.n.id }}"),
                loop=loop("{{ args.list }}", mode=mode),
                arcs=[],
            ),
        )
        .answers("fetch", ok(ROWS))
        .run()
    )
    assert ran.status == "completed"
    assert sorted(ran.inputs("work")) == list(range(200))
    assert isinstance(ran.one(e.LoopStarted, step="run").items, Reference)
    assert largest(ran) < LIMIT


LOST: dict[str, tuple[list[Tree], str]] = {
    "an input": ([call("use", body="{{ _prev[0] }}")], "result"),
    "a whole input": ([call("use", body="{{ _prev }}")], "result"),
    "a rule": ([noop("judge", when("_prev[0].id == 0"))], "result"),
    "a nested loop": ([nested("each", loop("{{ _prev }}"), noop("n"))], "result"),
}


def losing(text: str) -> Any:
    """An answer after which the store has lost, or damaged, all that it held."""

    def spoil(made: Scenario) -> Any:
        def answer(call_: Any) -> Any:
            del call_
            for key in made.objects.kept:
                made.objects.kept[key] = text.encode()
            return ok("spoilt")

        return answer

    return spoil


@pytest.mark.rule("RES-4", "RES-2")
@pytest.mark.parametrize(("tasks", "kind"), LOST.values(), ids=LOST)
def test_a_damaged_body_is_an_error_with_its_reference(tasks: list[Tree], kind: str) -> None:
    rule = otherwise(set_prev="{{ ctx.kept }}")
    made = small(
        step(
            "start",
            call("fetch", otherwise(set_ctx={"kept": "{{ outcome.result }}"})),
            arcs=[arc("more")],
        ),
        step("more", call("spoil", rule), *tasks),
    )
    made.answers("fetch", ok(ROWS)).answers("spoil", losing("[]")(made))
    ran = made.run()
    assert ran.status == "failed"
    assert ran.error["kind"] == kind
    assert "memory:x1/" in ran.error["message"]


@pytest.mark.rule("RES-4", "NEXT-2", "LOOP-1")
@pytest.mark.parametrize("where", ["guard", "collection"])
def test_a_damaged_body_on_the_server_fails_the_execution(where: str) -> None:
    follow: Tree = (
        step("more", noop("x"), loop=loop("{{ ctx.kept[:1] }}"))
        if where == "collection"
        else step("more", noop("x"))
    )
    guard = "ctx.kept[0].id == 0" if where == "guard" else True
    made = small(
        step(
            "start",
            call("fetch", otherwise(set_ctx={"kept": "{{ outcome.result }}"})),
            call("spoil"),
            arcs=[arc("more", guard)],
        ),
        follow,
    )
    made.answers("fetch", ok(ROWS)).answers("spoil", losing("[]")(made))
    ran = made.run()
    assert ran.status == "failed"
    assert ran.error["kind"] == "template"
    assert "memory:x1/" in ran.error["message"]


@pytest.mark.rule("RES-3")
def test_a_sink_is_an_ordinary_task_and_its_reference_plain_data() -> None:
    stored = {"$ref": {"store": "s3", "key": "rows.parquet"}}
    ran = (
        small(
            step(
                "start",
                call("fetch"),
                call("sink", body="{{ _prev }}"),
                call("see", body="{{ _prev }}"),
            )
        )
        .answers("fetch", ok(ROWS))
        .answers("sink", ok(stored))
        .run()
    )
    assert ran.inputs("sink") == [ROWS]
    assert ran.inputs("see") == [stored]
