"""
Random playbooks of the language that the reference model reads, and random answers of their tools.

Every number comes from the seed. The shapes are drawn so that rules meet each other often: few
keys, few values, many arcs.
"""

from random import Random
from typing import Any

from tests.support.steps import (
    HEAD,
    Tree,
    allow,
    arc,
    call,
    loop,
    nested,
    noop,
    otherwise,
    refuse,
    step,
    task,
    when,
)
from tests.support.waiting import waits

from noetl.messages.outcome import Outcome, failed, ok

KEYS = ("k0", "k1", "k2")
ANY = ("count", "first", "last")
"""Reducers that take whatever is written."""
OF_NUMBERS = {"total": "sum", "least": "min", "most": "max", "rows": "append"}
"""Keys that nothing but numbers is written to, and only where they are reduced."""
SIGNALS = ("go", "stop")
GUARDS = (
    "ctx.k0 == 1",
    "ctx.k1 != 2",
    "not ctx.k1",
    "args.a",
    "args.a == 2 or ctx.k0 == 1",
    "event.name == 'step.failed'",
    "event.name != 'step.failed'",
    "event.name in ['step.failed', 'loop.done']",
    "event.result == 1",
    "event.error.kind == 'http'",
    "event.loop.failed > 0",
    "event.loop.total == 0",
    "ctx.k0 > 0",
    "(ctx.k2 | default(1)) == 1",
)
FAULTY = "ctx.k0 < 'x'"
"""A guard that cannot be evaluated once ctx.k0 is a number (TPL-3)."""
ASKED = ("ctx.k0", "ctx.k0 == 1", "ctx.k1 == 1 or ctx.k0 == 2", "args.a == 1", "ctx.k1 != 1")
ARGS: tuple[Tree, ...] = (
    {},
    {"a": 1},
    {"a": 2, "b": "x"},
    {"a": "{{ ctx.k0 | default(0) }}"},
    {"b": "{{ event.name }}"},
    {"a": "{{ args.a | default(7) }}"},
)
VALUES = (
    1,
    2,
    "{{ outcome.result }}",
    "{{ outcome.result | default(0) }}",
    "{{ _attempt }}",
    "{{ (ctx.k0 | default(0)) if ctx.k0 != 'same' else 0 }}",
)


class Author:
    """Writes one playbook."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.labels = 0
        self.shared: dict[str, str] = {}
        self.around: list[Tree] = []
        """The loops around the pipeline that is being written."""

    def chance(self, one_in: int) -> bool:
        return self.random.randrange(one_in) == 0

    def pick(self, choices: Any) -> Any:
        return self.random.choice(list(choices))

    def document(self) -> Tree:
        executor = self.executor()
        names = [f"s{number}" for number in range(self.random.randint(1, 7))]
        routes = [self.routes(number, names) for number in range(len(names))]
        steps = [self.step(number, names, routes) for number in range(len(names))]
        if "final_step" in executor["spec"]:
            steps.append(step("last", *self.pipeline({}, depth=1)))
        steps.append(step("never", noop("never", otherwise(set_ctx=dict.fromkeys(KEYS, 0)))))
        return {
            **HEAD,
            "executor": executor,
            "workload": {"w": 1, "rows": [1, 2]},
            "workflow": steps,
        }

    def executor(self) -> Tree:
        policy: Tree = {"limits": {"max_step_runs": 25, "max_task_runs": 9}}
        if self.chance(6):
            policy["fail_fast"] = True
        if self.chance(4):
            self.shared = self.reducer(KEYS)
            policy["reduce"] = self.shared
        spec: Tree = {"policy": policy}
        if self.chance(4):
            spec["final_step"] = "last"
        return {"spec": spec}

    def reducer(self, keys: Any) -> dict[str, str]:
        special = [key for key in OF_NUMBERS if key not in self.shared]
        if self.chance(2):
            key = self.pick(special)
            return {key: OF_NUMBERS[key]}
        return {self.pick(keys): self.pick(ANY)}

    # ── arcs ──

    def routes(self, number: int, names: list[str]) -> list[Tree]:
        forward, back = names[number + 1 :], names[1 : number + 1]
        arcs = []
        for _ in range(self.random.randint(0 if number else 1, 3)):
            to = back if back and self.chance(5) else forward
            if to:
                arcs.append(arc(self.pick(to), self.guard(), **self.arguments()))
        return arcs

    def guard(self) -> str | bool | None:
        if self.chance(40):
            return FAULTY
        found: str | bool | None = self.pick([None, None, True, *self.random.choices(GUARDS, k=2)])
        return found

    def arguments(self) -> Tree:
        if self.chance(40):
            return {"a": "{{ ctx.k1 }}"}
        found: Tree = self.pick(ARGS)
        return found

    # ── steps ──

    def step(self, number: int, names: list[str], routes: list[list[Tree]]) -> Tree:
        name, arcs = names[number], routes[number]
        spec: Tree = {}
        sources = [
            names[at] for at in range(len(names)) if any(a["step"] == name for a in routes[at])
        ]
        if number and sources and self.chance(2):
            modes = ["all", "all", "any", *range(1, len(sources) + 1)]
            self.random.shuffle(sources)
            spec["join"] = {"from": sources, "mode": self.pick(modes)}
        if self.chance(5):
            spec["admit"] = self.admission()
        if number and self.chance(12):
            spec["limit"] = {"at_once": 1}
        shape = self.pick(["route", "plain", "plain", "loop", "loop"])
        tasks: list[Tree] = []
        if shape == "loop":
            spec["loop"] = self.loop()
        if shape != "route" or not arcs:
            tasks = self.pipeline(spec.get("loop", {}), depth=0)
        mode = self.pick(["exclusive", "inclusive", "inclusive"]) if arcs else None
        literal = "all" if arcs and self.chance(12) else None
        return step(name, *tasks, arcs=arcs or None, mode=mode, on_failure=literal, **spec)

    def admission(self) -> Tree:
        asked = FAULTY if self.chance(12) else self.pick(ASKED)
        rules = [allow(asked, self.chance(2))]
        if self.chance(2):
            rules.append(allow(self.pick(ASKED), self.chance(2)))
        if self.chance(2):
            rules.append(refuse())
        found: Tree = {"rules": rules}
        if self.chance(3):
            found["mode"] = "inclusive"
        if self.chance(4):
            found["on_deny"] = "drop"
        return found

    def loop(self) -> Tree:
        policy: Tree = {}
        if self.chance(2):
            policy["exec"] = self.pick(["local", "distributed"])
        if self.chance(2):
            policy["on_failure"] = "continue"
        if self.chance(3):
            policy["reduce"] = self.reducer([key for key in KEYS if key not in self.shared])
        elements: Any = [self.random.randint(0, 3) for _ in range(self.random.randint(0, 4))]
        if self.chance(8):
            elements = self.pick(["{{ workload.rows }}", "{{ workload.w }}", "{{ ctx.k0 }}"])
        mode = self.pick(["sequential", "parallel", "parallel"])
        return loop(elements, mode=mode, flight=self.random.randint(1, 3), **policy)

    # ── tasks ──

    def pipeline(self, looped: Tree, depth: int) -> list[Tree]:
        labels = [self.label() for _ in range(self.random.randint(1, 3))]
        self.around.append(looped)
        tasks = [self.task(label, labels, looped, depth) for label in labels]
        self.around.pop()
        return tasks

    def label(self) -> str:
        self.labels += 1
        return f"t{self.labels}"

    def task(self, label: str, labels: list[str], looped: Tree, depth: int) -> Tree:
        rules = tuple(self.rules(labels, bool(looped)))
        draw = self.random.randrange(20)
        if draw < 2 and depth < 2:
            inner = self.loop()
            inner["iterator"] = f"m{depth}"
            return nested(label, inner, *self.pipeline(inner, depth + 1), rules=rules)
        if draw < 4:
            return self.wait(label, rules)
        if draw < 7:
            return noop(label, *rules)
        if draw < 9:
            return task(label, "transform", *rules, value=self.value(looped))
        body = {"body": self.value(looped)} if self.chance(2) else {}
        return call(label, *rules, **body)

    def value(self, looped: Tree) -> Any:
        values = [
            "{{ ctx.k0 | default(5) }}",
            "{{ _prev }}",
            "{{ workload.w + 1 }}",
            "n{{ _task }}",
        ]
        if self.chance(10):
            values = ["{{ ctx.k2 }}"]
        if looped:
            values += [f"{{{{ iter.{looped['iterator']} }}}}", "{{ iter.index }}"]
        return self.pick(values)

    def wait(self, label: str, rules: tuple[Tree, ...]) -> Tree:
        forms: list[Tree] = [
            {"seconds": 0},
            {"until": "2020-01-01T00:00:00Z"},
            {"signal": "go"},
            {"signal": "go", "when": "{{ signal.data == 1 }}", "timeout": 0.004},
            {"signal": "stop", "timeout": 0.002},
            {"any": {"a": {"signal": "go"}, "b": {"seconds": 0.003}}},
            {"any": {"a": {"signal": "go"}, "b": {"signal": "stop"}}, "timeout": 0.003},
        ]
        form = dict(self.pick(forms))
        return waits(label, *rules, **form)

    def rules(self, labels: list[str], looped: bool) -> list[Tree]:
        if self.chance(3):
            return []
        rules = [self.rule(labels, looped) for _ in range(self.random.randint(0, 2))]
        if self.chance(2) or not rules:
            rules.append(
                otherwise(self.pick(["continue", "continue", "break", "fail"]), **self.sets(looped))
            )
        return rules

    def rule(self, labels: list[str], looped: bool) -> Tree:
        guards = [
            "outcome.status == 'error'",
            "outcome.status == 'error'",
            "outcome.result == 1",
            "outcome.result == 2",
            "outcome.exhausted",
            "outcome.error.kind == 'http'",
            "_attempt < 2",
            "iter.j != 1",
            "ctx.k0 == 1",
        ]
        guard = FAULTY if self.chance(50) else self.pick(guards)
        do = self.pick(["continue", "retry", "retry", "jump", "break", "fail"])
        more = self.sets(looped)
        if do == "retry":
            more["attempts"] = self.random.randint(1, 3)
            if self.chance(2):
                more |= {
                    "delay": self.pick([0, 0.2]),
                    "backoff": self.pick(["none", "linear", "exponential"]),
                }
            if self.chance(4):
                more |= {"delay": 0.3, "max_delay": 0.5}
        if do == "jump":
            more["to"] = self.pick(labels)
            more["set_iter"] = {"j": 1}
        if do == "fail" and self.chance(3):
            more["message"] = "said {{ _attempt }}"
        return when(guard, do, **more)

    def sets(self, looped: bool) -> Tree:
        found: Tree = {}
        if self.chance(2):
            deep = sum(map(bool, self.around)) > 1
            mostly_same = deep or (looped and not self.chance(4))
            found["set_ctx"] = {self.pick(KEYS): 1 if mostly_same else self.pick(VALUES)}
            special = self.special()
            if special and self.chance(2):
                found["set_ctx"] = {self.pick(special): self.pick([1, 2, 3, "{{ _attempt }}"])}
            elif self.chance(30):
                found["set_ctx"] = {"k0": "{{ outcome.result.nope }}"}
        if self.chance(6):
            found["set_iter"] = {"j": 1}
        if self.chance(6):
            found["set_prev"] = self.pick([7, "{{ _prev }}"])
        return found

    def special(self) -> list[str]:
        """Keys of numbers that are reduced here."""
        reduced = [one.get("spec", {}).get("policy", {}).get("reduce", {}) for one in self.around]
        return [key for one in [*reduced, self.shared] for key in one if key in OF_NUMBERS]


def answer(seed: str) -> Outcome:
    """What a tool gives to one call."""
    random = Random(seed)
    if random.random() < 0.25:
        return failed("http", "no luck", retryable=True)
    return ok(random.choice([0, 1, 1, 2]))
