"""Which loops have a list that cannot be made by adding each result to the last? (DIA-UP)"""

import re
from typing import Final

from noetl.playbook.check_races import reached
from noetl.playbook.dialects.draft import (
    Draft,
    arcs_of,
    below_path,
    own_tasks,
    rules_of,
    then_of,
)
from noetl.playbook.dialects.eval_vars import steps_on_circles
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.pipeline import as_iterator
from noetl.playbook.dialects.places import Known, places
from noetl.playbook.dialects.tree import Mapping, TreeSlot
from noetl.playbook.dialects.writes import is_catch_all, only_errors

_EVERY_ERROR: Final = re.compile(r"\{\{\s*(?:output|outcome)\.status\s*==\s*['\"]error['\"]\s*\}\}")
MOST_WAYS: Final = 300_000  # arcs times steps: what more would take is not worth it


def loops_with_lists(draft: Draft, _: Mapping) -> None:
    """
    A loop whose list is read becomes an iterator task, where a reducer would make another list.

    It folds onto what `ctx` has (LOOP-5): a second run of the step would add to the list of the
    first one. And it folds writes: an iteration that went on after an error has none, and those
    behind it would move up.
    """
    loops = {step.text("step") or "": step for step in draft.steps() if "loop" in step}
    if not loops or draft.case:
        return
    read = loops.keys() & _read_elsewhere(draft)
    again = _run_again(draft, read) if read else set()
    for name in sorted(read):
        if name in again or _may_go_on(own_tasks(loops[name])):
            as_iterator(draft, loops[name])


def _may_go_on(tasks: list[TreeSlot]) -> bool:
    """Whether a pipeline may come to its end by an error."""
    for number, task in enumerate(tasks, 1):
        assert isinstance(task.node, Mapping)
        rules, last = rules_of(task.node), number == len(tasks)
        ends = ("continue", "break") if last else ("break",)
        for rule in rules:
            then = then_of(rule) or Mapping()
            if only_errors(rule) and (then.text("do") or "continue") in ends:
                return True
        taken = any(is_catch_all(rule) or _takes_errors(rule) for rule in rules)
        if last and rules and not taken and task.node.text("kind") != "noop":
            return True
    return False


def _takes_errors(rule: Mapping) -> bool:
    return bool(_EVERY_ERROR.fullmatch((rule.text("when") or "").strip()))


def _read_elsewhere(draft: Draft) -> set[str]:
    """Names that only a step can have, but for those of a step that its own router reads."""
    known = Known(draft)
    return {
        name
        for slot, place in places(draft)
        for name in {str(path[0]) for path in paths_read(slot.text)}
        if not known.defines(name, place)
        and (place.kind != "router" or place.step is None or place.step.text("step") != name)
    }


def _run_again(draft: Draft, names: set[str]) -> set[str]:
    """Steps on circles, and those that several arcs of one router lead to at once."""
    steps = {step.text("step") or "": step for step in draft.steps()}
    leads = {
        name: [arc.text("step") or "" for arc in arcs_of(step)] for name, step in steps.items()
    }
    joins = {name for name, step in steps.items() if below_path(step, "spec", "join") is not None}
    forks = [leads[name] for name, step in steps.items() if _fires_all(step)]
    if sum(map(len, forks)) * len(steps) > MOST_WAYS:
        return names  # an iterator is right for those that run once, too
    again = steps_on_circles(draft)
    for targets in forks:
        ways = [reached(target, leads, joins) for target in targets]
        for number, way in enumerate(ways):
            again.update(*(way & other for other in ways[number + 1 :]))
    return again


def _fires_all(step: Mapping) -> bool:
    spec = below_path(step, "next", "spec")
    return spec is not None and spec.text("mode") == "inclusive"
