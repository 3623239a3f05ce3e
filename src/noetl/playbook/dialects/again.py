"""Which loops may run a second time, so that their results must not be added up? (DIA-UP)"""

from typing import Final

from noetl.playbook.dialects.draft import Draft, arcs_of, below_path
from noetl.playbook.dialects.eval_vars import steps_on_circles
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.pipeline import as_iterator
from noetl.playbook.dialects.places import Known, places
from noetl.playbook.dialects.tree import Mapping

MOST_WAYS: Final = 300_000  # arcs times steps: what more would take is not worth it


def loops_that_run_again(draft: Draft, _: Mapping) -> None:
    """
    A loop whose list is read, of a step that may run again, becomes an iterator task.

    A reducer folds onto what `ctx` has (LOOP-5): the second run would add to the list of the
    first one, where the name of a step stood for its last result.
    """
    loops = {step.text("step") or "": step for step in draft.steps() if "loop" in step}
    if not loops or draft.case:
        return
    read = loops.keys() & _read_elsewhere(draft)
    for name in _run_again(draft, read) if read else ():
        as_iterator(draft, loops[name])


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


def _run_again(draft: Draft, names: set[str]) -> list[str]:
    """Steps on circles, and those that several arcs of one router lead to at once."""
    steps = {step.text("step") or "": step for step in draft.steps()}
    leads = {
        name: [arc.text("step") or "" for arc in arcs_of(step)] for name, step in steps.items()
    }
    joins = {name for name, step in steps.items() if below_path(step, "spec", "join") is not None}
    forks = [leads[name] for name, step in steps.items() if _fires_all(step)]
    if sum(map(len, forks)) * len(steps) > MOST_WAYS:
        return sorted(names)  # an iterator is right for those that run once, too
    again = steps_on_circles(draft)
    for targets in forks:
        ways = [_reached(target, leads, joins) for target in targets]
        for number, way in enumerate(ways):
            again.update(*(way & other for other in ways[number + 1 :]))
    return sorted(names & again)


def _fires_all(step: Mapping) -> bool:
    spec = below_path(step, "next", "spec")
    return spec is not None and spec.text("mode") == "inclusive"


def _reached(start: str, leads: dict[str, list[str]], joins: set[str]) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in reached and name not in joins:
            reached.add(name)
            waiting += leads.get(name, ())
    return reached
