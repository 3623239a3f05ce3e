"""The playbooks that are measured."""

from tests.support.steps import arc, call, loop, noop, playbook, step, task

from bench.size import sized

CHAIN = sized(100)
"""Steps of the chain."""
ITERATIONS = sized(10_000, small=200)


def _head(name: str) -> dict[str, str]:
    return {"name": name, "path": f"bench/{name}"}


def chain() -> str:
    """Steps that a worker runs: of the kinds that need one, the cheapest."""
    steps = [
        step(
            f"s{number}",
            task("t", "transform", value="{{ _prev }}"),
            arcs=[arc(f"s{number + 1}")] if number < CHAIN - 1 else None,
        )
        for number in range(CHAIN)
    ]
    return playbook(*steps, metadata=_head("chain"))


def five() -> str:
    """As the peers' workflows: five steps that do nothing."""
    steps = [step(f"s{n}", noop("t"), arcs=[arc(f"s{n + 1}")] if n < 4 else None) for n in range(5)]
    return playbook(*steps, metadata=_head("five"))


def five_on_workers(url: str) -> str:
    """The same on workers: each step asks a server of the bench."""
    steps = [
        step(f"s{n}", call("t", url=url), arcs=[arc(f"s{n + 1}")] if n < 4 else None)
        for n in range(5)
    ]
    return playbook(*steps, metadata=_head("worked"))


def many() -> str:
    looped = loop(f"{{{{ range({ITERATIONS}) | list }}}}", mode="parallel", flight=100)
    return playbook(step("many", noop("t"), loop=looped), metadata=_head("many"))


def empty() -> str:
    """An execution whose request is all there is to it."""
    return playbook(step("one", noop("t")), metadata=_head("one"))
