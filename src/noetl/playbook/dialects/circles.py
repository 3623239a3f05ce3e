"""Which steps can run again, because arcs lead in circles?"""

from noetl.playbook.dialects.draft import Draft, arcs_of

Arcs = dict[str, set[str]]


def steps_on_circles(draft: Draft) -> set[str]:
    """The steps on circles, and those between two: an arc of a circle leads in, and one out."""
    arcs = {
        step.text("step") or "": {arc.text("step") or "" for arc in arcs_of(step)}
        for step in draft.steps()
    }
    return set(_without_ends(_turned(_without_ends(arcs))))


def _turned(arcs: Arcs) -> Arcs:
    """The same arcs, the other way round."""
    turned: Arcs = {name: set() for name in arcs}
    for name, targets in arcs.items():
        for target in targets & arcs.keys():
            turned[target].add(name)
    return turned


def _without_ends(arcs: Arcs) -> Arcs:
    """What is left when steps without an arc to what is left are taken away."""
    into = _turned(arcs)
    left = {name: targets & arcs.keys() for name, targets in arcs.items()}
    ends = [name for name, targets in left.items() if not targets]
    while ends:
        gone = ends.pop()
        del left[gone]
        for source in into[gone] & left.keys():
            left[source].discard(gone)
            if not left[source]:
                ends.append(source)
    return left
