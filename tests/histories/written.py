"""Executions whose logs are kept for later releases: what the language has, each once (T19)."""

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import msgspec
from tests.support.cluster import until
from tests.support.restarted import restarted
from tests.support.scenario import Scenario, error, ok, scenario
from tests.support.steps import (
    Tree,
    allow,
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    refuse,
    sets,
    step,
    when,
)
from tests.support.waiting import waits

from noetl.control.waits_held import pending
from noetl.messages.requests import SendSignal, StartExecution
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution
from noetl.server.replay import frozen, replay

COUNTED = "{{ (ctx.n | default(0)) + 1 }}"


def waiting() -> Scenario:
    again = when("outcome.status == 'error'", "retry", attempts=2)
    made = scenario(
        step("start", waits("rest", seconds=0), arcs=[arc("ask")]),
        step(
            "ask",
            waits("late", again, when("outcome.exhausted"), signal="no", timeout=0.002),
            arcs=[arc("x")],
        ),
        step("x", waits("go", any={"a": {"signal": "go"}, "b": {"seconds": 600}})),
    )

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        await local.signal("x1", SendSignal(signal="other", data=[1]))
        await until(lambda: any(wait.task == "go" for wait in pending(active.execution)))
        await local.order("x1", "pause")
        await local.order("x1", "resume")
        await local.signal("x1", SendSignal(signal="go", data={"n": 1}))

    made.act(story)
    return made


def nesting() -> Scenario:
    inner = nested("inner", loop([1, 2], iterator="m", mode="parallel"), sets("add", total=1))
    failing = call("ask", otherwise(set_ctx={"same": 1}))
    made = scenario(
        step(
            "start",
            inner,
            failing,
            loop=loop([1, 2, 3], mode="parallel", on_failure="continue", reduce={"total": "sum"}),
            arcs=[arc("next", rows="{{ event.loop.results }}")],
        ),
        step("next", noop("rest"), loop=loop("{{ args.rows }}", exec="distributed")),
    ).answers("ask", ok(1), error("http"), ok(2))
    made.run()
    return made


def limited() -> Scenario:
    made = scenario(
        step("start", arcs=[arc("turn"), arc("turn"), arc("turn")], mode="inclusive"),
        step("turn", call("ask"), limit={"at_once": 1, "key": "{{ args.k | default('k') }}"}),
    )
    made.run()
    return made


def cached() -> Scenario:
    asking: Tree = {"ask": {"kind": "http", "url": "x", "spec": {"cache": {"key": "k", "ttl": 60}}}}
    made = scenario(step("start", asking, loop=loop([1, 2])))
    made.run()
    return made


def referring() -> Scenario:
    made = scenario(
        step(
            "start",
            call("ask", otherwise(set_ctx={"big": "{{ outcome.result }}"})),
            arcs=[arc("b")],
        ),
        step(
            "b", sets("look", first="{{ ctx.big[0] }}"), loop=loop("{{ ctx.big }}", mode="parallel")
        ),
        executor={"spec": {"policy": {"results": {"reference_first": True}}}},
    ).answers("ask", ok(["x", "y", "z"]))
    made.run()
    return made


def meeting() -> Scenario:
    gate = {"rules": [allow("ctx.n > 1"), refuse()]}
    made = scenario(
        step("start", arcs=[arc("a", n=1), arc("b"), arc("gated")], mode="inclusive"),
        step("a", call("left"), arcs=[arc("meet", who="a")]),
        step("b", call("right"), arcs=[arc("meet", "event.name == 'step.failed'", who="b")]),
        step(
            "meet",
            sets("count", n=COUNTED),
            join={"from": ["a", "b"]},
            arcs=[arc("a", "ctx.n < 2")],
        ),
        step("gated", noop("rest"), admit=gate),
        step("last", call("tidy")),
        executor={"spec": {"final_step": "last", "policy": {"reduce": {"seen": "append"}}}},
    ).answers("right", error("http"))
    made.run()
    return made


def stopping() -> Scenario:
    made = scenario(
        step("start", call("fail"), arcs=[arc("b", "event.error.kind == 'no'")]),
        step("b", noop("rest")),
        executor={"spec": {"policy": {"fail_fast": True}}},
    ).answers("fail", error("http"))
    made.run()
    return made


def triggered() -> Scenario:
    made = scenario(step("start", call("ask")))
    plain = made.request

    def request(payload: Any, ctx: Any) -> StartExecution:
        return msgspec.structs.replace(plain(payload, ctx), trigger="trigger/t/1", sender="t")

    made.request = request  # type: ignore[method-assign]
    made.run()
    return made


def restarting() -> Scenario:
    made = scenario(
        step("start", sets("write", n=1), arcs=[arc("b")]),
        step("b", call("ask"), loop=loop([1, 2], on_failure="continue"), arcs=[arc("c")]),
        step("c", call("last")),
    ).answers("last", error("http"), ok(1))
    restarted(made, "c")
    return made


WRITTEN: dict[str, Callable[[], Scenario]] = {
    "waits": waiting,
    "nested loops": nesting,
    "limits": limited,
    "cache": cached,
    "references": referring,
    "joins, cycles, admission, a final step": meeting,
    "fail fast": stopping,
    "a trigger": triggered,
    "a restart": restarting,
}


def kept(name: str, made: Scenario) -> list[Tree]:
    """The executions of a scenario, as `test_evt_old_logs.py` reads them."""
    return [
        asyncio.run(one(name if found == "x1" else f"{name}, after", made, found))
        for found in made.home.tables.decisions
    ]


async def one(name: str, made: Scenario, execution_id: str) -> Tree:
    rows = made.home.tables.decisions[execution_id]
    half = rows[len(rows) // 2].last

    async def snapshot(until: int) -> tuple[int, str]:
        state, _ = await replay(
            made.home.log, execution_id, made.plan, made.results.fetch, until=until
        )
        return state.seq, frozen(state).decode()

    return {
        "name": name,
        "id": execution_id,
        "playbook": made.text,
        "rows": [[row.first, row.last, row.at, row.events.decode()] for row in rows],
        "bodies": {key: base64.b64encode(body).decode() for key, body in made.objects.kept.items()},
        "snapshot": await snapshot(half),
        "end": await snapshot(rows[-1].last),
    }
