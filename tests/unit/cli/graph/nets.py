"""Small playbook models, built by hand, for the tests of drawing."""

from typing import Any

from noetl.playbook.finding import Place
from noetl.playbook.model import (
    Admission,
    AdmitRule,
    Arc,
    Executor,
    Join,
    Loop,
    Playbook,
    Router,
    Rule,
    Step,
    Task,
    TaskSpec,
    Then,
)

HERE = Place("", 1, 1)


def arc(step: str, when: bool | str | None = None) -> Arc:
    return Arc(place=HERE, step=step, when=when)


def router(*arcs: Arc, mode: Any = "exclusive") -> Router:
    return Router(place=HERE, arcs=arcs, mode=mode)


def task(label: str, kind: str = "noop", *rules: Rule) -> Task:
    return Task(place=HERE, label=label, kind=kind, spec=TaskSpec(rules=rules or None))


def rule(do: Any, **more: Any) -> Rule:
    return Rule(place=HERE, when="{{ outcome.status == 'error' }}", then=Then(do=do, **more))


def step(name: str, *arcs: Arc, mode: Any = "exclusive", **more: Any) -> Step:
    return Step(place=HERE, name=name, router=router(*arcs, mode=mode) if arcs else None, **more)


def playbook(*steps: Step, name: str = "net", **executor: Any) -> Playbook:
    return Playbook(
        place=HERE,
        name=name,
        path=f"tests/{name}",
        metadata={},
        steps=steps,
        executor=Executor(**executor),
    )


def loop(items: Any = "{{ workload.pages }}", **more: Any) -> Loop:
    return Loop(place=HERE, items=items, iterator="page", **more)


def admission(*rules: tuple[bool | str | None, bool], **more: Any) -> Admission:
    return Admission(
        place=HERE,
        rules=tuple(AdmitRule(place=HERE, when=when, allow=allow) for when, allow in rules),
        **more,
    )


def join(*sources: str, mode: Any = "all") -> Join:
    return Join(place=HERE, sources=sources, mode=mode)


FAILED = "{{ event.name == 'step.failed' }}"


def orders() -> Playbook:
    """Twelve steps with branches, a cycle, a loop, a gate, a join, failures and a final step."""
    return playbook(
        step("start", arc("fetch_orders"), tasks=(task("token", "secrets"),)),
        step(
            "fetch_orders",
            arc("check", "{{ event.name == 'loop.done' and event.loop.failed == 0 }}"),
            arc("repair", FAILED),
            loop=loop(mode="parallel", max_in_flight=8),
            tasks=(
                task("fetch", "http", rule("retry", attempts=5), rule("jump", to="fetch")),
                task("keep", "postgres"),
            ),
        ),
        step(
            "check",
            arc("fetch_orders", "{{ ctx.more and ctx.rounds < 5 }}"),
            arc("split", "{{ ctx.rows > 0 }}"),
            arc("nothing_new"),
            tasks=(task("count", "duckdb"),),
        ),
        step(
            "repair",
            arc("fetch_orders", "{{ ctx.repaired }}"),
            arc("alert", FAILED),
            tasks=(task("fix", "python"),),
        ),
        step(
            "split",
            arc("invoices"),
            arc("parcels"),
            arc("split", "{{ ctx.again }}"),
            mode="inclusive",
        ),
        step("invoices", arc("meet"), arc("alert", FAILED), tasks=(task("bill", "playbook"),)),
        step(
            "parcels",
            arc("meet"),
            arc("alert", FAILED),
            admission=admission(("{{ ctx.rows < 10000 }}", True), (None, False)),
            tasks=(task("label", "container"), task("book", "http", rule("retry", attempts=3))),
        ),
        step(
            "meet",
            arc("report"),
            join=join("invoices", "parcels"),
            tasks=(task("join", "transform"),),
        ),
        step("nothing_new", arc("report")),
        step("report", arc("alert", FAILED), tasks=(task("mail", "http"),)),
        step("alert", tasks=(task("page", "http"),)),
        step("tidy", tasks=(task("close", "postgres"),)),
        name="orders",
        final_step="tidy",
    )


def large(count: int = 200) -> Playbook:
    """A long net: branches every third step, failures to one step, a few ways back."""
    steps = []
    for n in range(count - 1):
        arcs = [arc(f"step_{n + 1}", "{{ ctx.next }}")] if n + 1 < count - 1 else []
        if n % 3 == 0 and n + 2 < count - 1:
            arcs.append(arc(f"step_{n + 2}", "{{ ctx.skip }}"))
        if n % 25 == 24:
            arcs.append(arc(f"step_{n - 10}", "{{ ctx.again }}"))
        if n % 2:
            arcs.append(arc("failed", FAILED))
        steps.append(step(f"step_{n}", *arcs, tasks=(task("work", "http"),)))
    return playbook(*steps, step("failed", tasks=(task("tell", "http"),)), name="large")
