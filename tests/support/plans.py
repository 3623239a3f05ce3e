"""Playbooks made by chance: steps, arcs, guards, joins, loops, retries, jumps, failures."""

from typing import Any

from hypothesis import strategies as st
from tests.support.steps import (
    Tree,
    allow,
    arc,
    call,
    loop,
    noop,
    otherwise,
    playbook,
    refuse,
    step,
    when,
)

from noetl.playbook.load import load_valid
from noetl.playbook.plan import Plan, make_plan

KEYS = ["k0", "k1"]
GUARDS: list[str | bool | None] = [
    None,
    None,
    True,
    "ctx.k0 == 1",
    "ctx.k1 is undefined",
    "args.a",
    "event.name == 'step.failed'",
    "event.name != 'StepFailed'",
    "event.result == 1",
]
ADMITS: list[Any] = [
    [allow("ctx.k0"), refuse()],
    [allow("ctx.k1 == 1 or ctx.k0 == 2"), refuse()],
    {"on_deny": "drop", "rules": [refuse("ctx.k0 == 1")]},
    {"mode": "inclusive", "rules": [allow("ctx.k0"), refuse("ctx.k1 == 2")]},
]


ARGS: list[Tree] = [{}, {"a": 1}, {"a": "{{ ctx.k0 | default(0) }}"}]


def rules_of(label: str, key: str, *, parallel: bool) -> list[list[Tree]]:
    """Policies to choose from. Parallel iterations mostly write what cannot collide."""
    value = "same" if parallel else "{{ outcome.result }}"
    return [
        [],
        [],
        [when("outcome.status == 'error'", "retry", attempts=2), otherwise()],
        [when("outcome.status == 'error'", "retry", attempts=3, delay=5)],
        [otherwise(set_ctx={key: value})],
        [otherwise(set_ctx={key: "{{ outcome.result }}"})],
        [when("outcome.result == 1", "break", set_prev=7), otherwise()],
        [when("outcome.result == 2", "fail", set_ctx={key: 2})],
        [when("iter.j is undefined", "jump", to=label, set_iter={"j": 1}), otherwise()],
        [when("outcome.status == 'ok'"), otherwise("fail")],
    ]


@st.composite
def steps_of(draw: st.DrawFn, *, looped: bool = True) -> list[Tree]:
    """The steps of a playbook, `s0` first."""
    count = draw(st.integers(1, 6))
    names = [f"s{number}" for number in range(count)]
    routes = [draw(routes_of(number, names)) for number in range(count)]
    found: list[Tree] = []
    for number, name in enumerate(names):
        arcs = routes[number]
        sources = [names[k] for k in range(count) if any(a["step"] == name for a in routes[k])]
        spec: dict[str, Any] = {}
        if number and len(sources) > 1 and draw(st.booleans()):
            modes = ["all", "any", *range(1, len(sources) + 1)]
            spec["join"] = {"from": sources, "mode": draw(st.sampled_from(modes))}
        if number and draw(st.integers(0, 3)) == 0:
            spec["admit"] = draw(st.sampled_from(ADMITS))
        mode = draw(st.sampled_from(["exclusive", "inclusive", "inclusive"]))
        shape = draw(st.sampled_from(["route", "plain", "plain", "loop" if looped else "plain"]))
        tasks: list[Tree] = []
        if shape == "loop":
            spec["loop"] = draw(loops())
        if shape != "route" or not arcs:
            parallel = spec.get("loop", {}).get("spec", {}).get("mode") == "parallel"
            tasks = draw(tasks_of(number, parallel=parallel))
        found.append(step(name, *tasks, arcs=arcs or None, mode=mode if arcs else None, **spec))
    return found


@st.composite
def routes_of(draw: st.DrawFn, number: int, names: list[str]) -> list[Tree]:
    """Arcs forward mostly; what goes back is bounded by the limit on step runs."""
    forward = names[number + 1 :]
    back = names[1 : number + 1]
    arcs = []
    for _ in range(draw(st.integers(0 if number else 1, 3))):
        pool = back if back and draw(st.integers(0, 4)) == 0 else forward
        if pool:
            args = draw(st.sampled_from(ARGS))
            arcs.append(arc(draw(st.sampled_from(pool)), draw(st.sampled_from(GUARDS)), **args))
    return arcs


@st.composite
def tasks_of(draw: st.DrawFn, number: int, *, parallel: bool) -> list[Tree]:
    tasks = []
    for position in range(draw(st.integers(1, 2))):
        label = f"t{number}{position}"
        key = draw(st.sampled_from(KEYS))
        rules = draw(st.sampled_from(rules_of(label, key, parallel=parallel)))
        make = draw(st.sampled_from([call, call, noop]))
        tasks.append(make(label, *rules))
    return tasks


@st.composite
def loops(draw: st.DrawFn) -> Tree:
    policy: dict[str, Any] = {"exec": draw(st.sampled_from(["local", "distributed"]))}
    if draw(st.booleans()):
        policy["on_failure"] = "continue"
    if draw(st.integers(0, 2)) == 0:
        policy["reduce"] = {"k1": draw(st.sampled_from(["sum", "append", "count", "last"]))}
    return loop(
        list(range(draw(st.integers(0, 4)))),
        mode=draw(st.sampled_from(["sequential", "parallel"])),
        flight=draw(st.integers(1, 3)),
        **policy,
    )


@st.composite
def executors(draw: st.DrawFn) -> Tree:
    policy: Tree = {"limits": {"max_step_runs": 20, "max_task_runs": 12}}
    if draw(st.integers(0, 4)) == 0:
        policy["fail_fast"] = True
    spec: Tree = {"policy": policy}
    if draw(st.integers(0, 3)) == 0:
        spec["final_step"] = "last"
    return {"spec": spec}


def planned(*steps: Tree, **roots: Any) -> Plan:
    """The plan of a playbook with these steps; raises PlaybookRejected."""
    text = playbook(*steps, **roots)
    return make_plan(load_valid(text), text)
