"""
Playbooks of the whole language, made by chance: steps, loops of every kind, joins, admission,
policies, children, waits and limits.
"""

import json
import math
from random import Random
from typing import Any

from tests.simulation.audit import planned
from tests.support.steps import (
    Tree,
    allow,
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    playbook,
    refuse,
    step,
    task,
    when,
)

from noetl.errors import PlaybookRejected
from noetl.playbook import load as loading

KEYS = ("k0", "k1")
GUARDS: tuple[str | bool | None, ...] = (
    None,
    None,
    None,
    True,
    "ctx.k0 is defined",
    "args.a is defined",
    "event.name == 'step.failed'",
    "event.name != 'step.failed'",
)
ADMITS: tuple[Any, ...] = (
    [allow("ctx.k0 is defined"), refuse()],
    {"on_deny": "drop", "rules": [refuse("ctx.k0 is defined"), allow(None)]},
    {
        "mode": "inclusive",
        "rules": [allow("ctx.k0 is undefined"), refuse("ctx.k1 is defined"), allow(None)],
    },
)
ARGS: tuple[Tree, ...] = ({}, {"a": 1}, {"a": "{{ ctx.k0 | default(0) }}"})
SIGNAL = "go"
LARGEST_REPORT = 700_000


class Writer:
    """Writes one playbook."""

    def __init__(self, chance: Random, name: str, size: int, children: list[str]) -> None:
        self._chance = chance
        self._name = name
        self._size = size
        self._children = children
        self._labels = 0
        self.payload = chance.choice((1_048_576, 1_048_576, 600, 2_000))
        """`max_payload_bytes`: values are made around it."""

    def text(self) -> str:
        chance = self._chance
        count = chance.randint(1, self._size)
        names = [f"s{number}" for number in range(count)]
        routes = [self._routes(number, names) for number in range(count)]
        steps = [self._step(number, names, routes) for number in range(count)]
        limits = {"max_step_runs": 20, "max_task_runs": 12, "max_payload_bytes": self.payload}
        if chance.random() < 0.1:
            limits["timeout"] = chance.choice((5, 30))
        policy: Tree = {"limits": limits}
        if chance.random() < 0.2:
            policy["fail_fast"] = True
        spec: Tree = {"policy": policy}
        if chance.random() < 0.2:
            over = chance.choice(("queue", "queue", "refuse", "cancel_old"))
            spec["limit"] = {"at_once": chance.randint(1, 2), "over": over}
        if chance.random() < 0.15:
            spec["final_step"] = "last"
            steps.append(step("last", self._call()))
        head = {"name": self._name, "path": f"tests/{self._name}"}
        roots: Tree = {"metadata": head, "executor": {"kind": "local", "spec": spec}}
        if "workbook" in str(steps):
            (shared,) = self._call().values()
            roots["workbook"] = {"tasks": {"shared": shared}}
        return playbook(*steps, **roots)

    def _routes(self, number: int, names: list[str]) -> list[Tree]:
        """Arcs forward mostly; what goes back is bounded by the limit on step runs."""
        chance = self._chance
        forward, back = names[number + 1 :], names[1 : number + 1]
        arcs = []
        for _ in range(chance.randint(0 if number else 1, 3)):
            pool = back if back and chance.random() < 0.15 else forward
            if pool:
                arcs.append(arc(chance.choice(pool), chance.choice(GUARDS), **chance.choice(ARGS)))
        return arcs

    def _step(self, number: int, names: list[str], routes: list[list[Tree]]) -> Tree:
        chance, arcs = self._chance, routes[number]
        sources = [
            name for name, to in zip(names, routes, strict=True) if _leads(to, names[number])
        ]
        spec: Tree = {}
        if number and len(sources) > 1 and chance.random() < 0.5:
            modes = ["all", "any", *range(1, len(sources) + 1)]
            spec["join"] = {"from": sources, "mode": chance.choice(modes)}
        if number and chance.random() < 0.2:
            spec["admit"] = chance.choice(ADMITS)
        if chance.random() < 0.1:
            spec["limit"] = {"at_once": chance.randint(1, 2)}
        if chance.random() < 0.1:
            spec["timeout"] = chance.choice((3, 20))
        if chance.random() < 0.3:
            spec["loop"] = self._loop()
        parallel = spec.get("loop", {}).get("spec", {}).get("mode") == "parallel"
        tasks = [self._task(parallel) for _ in range(chance.randint(1, 3))]
        if arcs and "loop" not in spec and chance.random() < 0.15:
            tasks = []
        mode = chance.choice(("exclusive", "inclusive", "inclusive")) if arcs else None
        return step(names[number], *tasks, arcs=arcs or None, mode=mode, **spec)

    def _loop(self) -> Tree:
        chance = self._chance
        policy: Tree = {"exec": chance.choice(("local", "distributed"))}
        if chance.random() < 0.5:
            policy["on_failure"] = "continue"
        if chance.random() < 0.3:
            policy["reduce"] = {"k1": chance.choice(("append", "count", "last"))}
        elements = list(range(chance.choice((0, 1, 2, 3, 3, 5, 9))))
        mode = chance.choice(("sequential", "parallel"))
        return loop(elements, mode=mode, flight=chance.randint(1, 4), **policy)

    # ── tasks ────────────────────────────────────────────────────────────────────────────────

    def _task(self, parallel: bool) -> Tree:
        chance = self._chance
        luck = chance.random()
        if luck < 0.6:
            return self._call(*self._rules(parallel))
        if luck < 0.64:
            return task(self._label(), "workbook", *self._rules(parallel), name="shared")
        if luck < 0.72:
            return noop(self._label(), *self._rules(parallel))
        if luck < 0.82:
            inner = loop(list(range(chance.randint(0, 3))), iterator="m", mode="parallel", flight=2)
            return nested(self._label(), inner, self._call())
        if luck < 0.92 or not self._children:
            return task(self._label(), "wait", **self._awaited())
        path, wait = chance.choice(self._children), chance.random() < 0.8
        return task(self._label(), "playbook", path=path, wait=wait)

    def _label(self) -> str:
        self._labels += 1
        return f"t{self._labels}"

    def _call(self, *rules: Tree) -> Tree:
        """What it asks of the simulated tool is in its body."""
        chance = self._chance
        body: Tree = {"seconds": chance.choice((0, 0.01, 0.3, 1, 2, 5)), "size": self._bytes()}
        if chance.random() < 0.3:
            body["fails"] = chance.choice((0.2, 0.5, 1.0))
        timeout = chance.choice((1, 5)) if chance.random() < 0.1 else None
        made = call(self._label(), *rules, body=body, timeout=timeout)
        if chance.random() < 0.05:
            (inside,) = made.values()
            inside.setdefault("spec", {})["cache"] = {"key": f"{body['size']}", "ttl": 60}
        return made

    def _bytes(self) -> int:
        chance = self._chance
        if self.payload < 10_000 and chance.random() < 0.4:
            return max(1, self.payload + chance.randint(-400, 400))
        if chance.random() < 0.003:
            return LARGEST_REPORT + chance.randint(-400, 400)
        return chance.choice((1, 20, 200))

    def _rules(self, parallel: bool) -> list[Tree]:
        chance = self._chance
        key = chance.choice(KEYS)
        value = "same" if parallel else "{{ outcome.result }}"
        failed = "outcome.status == 'error'"
        choices: tuple[list[Tree], ...] = (
            [],
            [],
            [when(failed, "retry", attempts=2), otherwise()],
            [when(failed, "retry", attempts=3, delay=chance.choice((0.5, 3, 7)))],
            [otherwise(set_ctx={key: value})],
            [otherwise(set_ctx={key: "{{ outcome.result }}"})],
            [when(failed, "break", set_prev=7), otherwise()],
            [when(failed, "fail", set_ctx={key: 2})],
            [
                when("iter.j is undefined", "jump", to=f"t{self._labels + 1}", set_iter={"j": 1}),
                otherwise(),
            ],
            [when("outcome.status == 'ok'"), otherwise("fail")],
        )
        return chance.choice(choices)

    def _awaited(self) -> Tree:
        chance = self._chance
        seconds = chance.choice((0.1, 2, 7))
        shapes: tuple[Tree, ...] = (
            {"seconds": seconds},
            {"signal": SIGNAL, "timeout": 9},
            {"approval": "May it go on?", "timeout": 9},
            {"any": {"told": {"signal": SIGNAL}, "late": {"seconds": 8}}},
            {"any": {"asked": {"approval": "So?"}, "late": {"seconds": 6}}},
        )
        return chance.choice(shapes)


def schedule(path: str, every: int, overlap: str) -> str:
    """The text of a trigger that starts a playbook again and again."""
    return json.dumps(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Trigger",
            "metadata": {"name": "often", "path": "tests/often"},
            "spec": {
                "playbook": path,
                "on": {"schedule": {"every": every, "overlap": overlap, "catch_up": "last"}},
            },
        }
    )


def _leads(arcs: list[Tree], to: str) -> bool:
    return any(one["step"] == to for one in arcs)


def written(chance: Random, name: str, size: int, children: list[str]) -> str:
    """A playbook that the checks accept."""
    for attempt in range(20):
        smaller = max(1, size - math.floor(attempt / 4))
        text = Writer(chance, name, smaller, children).text()
        try:
            loading.load_valid(text)
            planned(text)  # the servers will ask for it
        except PlaybookRejected:
            continue
        return text
    head = {"name": name, "path": f"tests/{name}"}
    return playbook(step("s0", noop("t1")), metadata=head)
