"""Do concurrent branches lose writes to `ctx`? (SCOPE-6)"""

from collections.abc import Iterable, Iterator

import msgspec

from noetl.expression.reads import reads
from noetl.playbook.check_graph import arcs_of
from noetl.playbook.model import Playbook, Rule, Step, Task
from noetl.playbook.reader import Reader

_RESULT = ("outcome", "result")
MOST_WAYS = 300_000  # arcs times steps: a warning is not worth the time that more would take
_HINT = (
    "reduce it: executor: {{ spec: {{ policy: {{ reduce: {{ {key}: sum }} }} }} }}, and write "
    "what is added: set_ctx: {{ {key}: 1 }}"
)


def check_reduced(reader: Reader, playbook: Playbook) -> None:
    """A key has one reducer: the executor's, or those of loops."""
    loops = [(step.loop, "loop.spec") for step in playbook.steps if step.loop is not None]
    tasks = [task for step in playbook.steps for task in _all_tasks(step.tasks)]
    loops += [(task.inner.loop, "spec") for task in tasks if task.inner is not None]
    for loop, spec in loops:
        for key in loop.reduce:
            if key in playbook.executor.reduce:
                path = loop.place.path.removesuffix(".loop")
                reader.report(
                    "reduced-twice",
                    reader.places.get(f"{path}.{spec}.policy.reduce") or reader.places[path],
                    f"the executor reduces '{key}' for the whole execution already",
                    "remove one of the two reducers",
                )


class CtxWrite(msgspec.Struct, frozen=True):
    """A rule that writes a key of `ctx`, and whether it reads it for that."""

    step: Step
    rule: Rule
    key: str
    adds: bool
    at_once: bool
    """Whether iterations of a parallel loop write it."""


def check_races(reader: Reader, playbook: Playbook) -> None:
    """A read-modify-write in branches, or iterations, that run at once."""
    writes = [one for one in _writes(playbook) if one.key not in playbook.executor.reduce]
    # A step with admission may be the critical section that makes it right.
    adding = [one for one in writes if one.adds and one.step.admission is None]
    if not adding:
        return
    forks = list(_forks(playbook))
    writers: dict[str, set[str]] = {}
    for one in writes:
        writers.setdefault(one.key, set()).add(one.step.name)
    for one in adding:
        others = writers[one.key]
        if one.at_once or any(_meet(fork, one.step.name, others) for fork in forks):
            then = "else.then" if one.rule.when is None else "then"
            reader.report(
                "racing-write",
                reader.places[f"{one.rule.place.path}.{then}.set_ctx"],
                f"'ctx.{one.key}' is read and written by what runs at once: writes get lost",
                _HINT.format(key=one.key),
            )


def _writes(playbook: Playbook) -> Iterator[CtxWrite]:
    carried: dict[str, set[str]] = {}
    for _, arc in arcs_of(playbook):
        carried.setdefault(arc.step, set()).update(arc.args)
    for step in playbook.steps:
        loops = () if step.loop is None else (step.loop,)
        parallel = any(loop.mode == "parallel" for loop in loops)
        reduced = frozenset(key for loop in loops for key in loop.reduce)
        brought = frozenset(carried.get(step.name, ()))
        yield from _task_writes(step, step.tasks, reduced, parallel, brought)


def _task_writes(
    step: Step,
    tasks: Iterable[Task],
    reduced: frozenset[str],
    at_once: bool,
    carried: frozenset[str],
) -> Iterator[CtxWrite]:
    for task in tasks:
        for rule in task.spec.rules or ():
            for key, value in rule.then.set_ctx.items():
                if key not in reduced:
                    yield CtxWrite(step, rule, key, _adds(task, key, value, carried), at_once)
        if task.inner is not None:
            loop = task.inner.loop
            inside = at_once or loop.mode == "parallel"
            inner = reduced | loop.reduce.keys()
            yield from _task_writes(step, task.inner.tasks, inner, inside, carried)


def _adds(task: Task, key: str, value: object, carried: frozenset[str]) -> bool:
    """Whether what is written was made from the key: by the rule, or by the task itself."""
    own = {("ctx", key)} if key in carried else {("ctx", key), (key,)}  # args come first (TPL-2)
    read = reads(value)
    made = _RESULT in read and own & reads(task.inputs)
    return bool(own & read or made)


def _all_tasks(tasks: Iterable[Task]) -> Iterator[Task]:
    for task in tasks:
        yield task
        if task.inner is not None:
            yield from _all_tasks(task.inner.tasks)


def _forks(playbook: Playbook) -> Iterator[list[set[str]]]:
    """For each router that may fire several arcs: what each arc leads to before a join."""
    leads = {
        step.name: [arc.step for arc in step.router.arcs] if step.router is not None else []
        for step in playbook.steps
    }
    joins = {step.name for step in playbook.steps if step.join is not None}
    routers = [step.router for step in playbook.steps if step.router is not None]
    forking = [one.arcs for one in routers if one.mode == "inclusive" and len(one.arcs) > 1]
    if sum(map(len, forking)) * len(leads) > MOST_WAYS:
        return
    for arcs in forking:
        yield [reached(arc.step, leads, joins) for arc in arcs]


def reached(start: str, leads: dict[str, list[str]], joins: set[str]) -> set[str]:
    """The steps that a token may come to from a step on, before it waits at a join."""
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in joins:
            found.add(name)
            waiting += leads.get(name, ())
    return found


def _meet(fork: list[set[str]], step: str, others: set[str]) -> bool:
    """Whether one arc of the fork leads to the step, and another to a step that writes too."""
    mine = [number for number, branch in enumerate(fork) if step in branch]
    theirs = {number for number, branch in enumerate(fork) if branch & others}
    return any(theirs - {number} for number in mine)
