"""Can the tokens that a join waits for arrive? (NEXT-7)"""

from collections.abc import Mapping, Sequence

from noetl.playbook.check_graph import arcs_of, entry_of, step_names
from noetl.playbook.model import Join, Playbook, Step
from noetl.playbook.reader import Reader
from noetl.playbook.suggest import some


def check_joins(reader: Reader, playbook: Playbook) -> None:
    """Every rule about joins, step by step."""
    sources: dict[str, set[str]] = {}
    for source, arc in arcs_of(playbook):
        sources.setdefault(arc.step, set()).add(source.name)
    for step in playbook.steps:
        if step.join is not None and step.join.sources:
            _check_sources(reader, playbook, step, step.join, sources.get(step.name, set()))
            _check_count(reader, step.join)
            _check_entry(reader, playbook, step, step.join)
            _check_choice(reader, playbook, step, step.join)
    _check_arcs(reader, playbook)


def _check_sources(
    reader: Reader, playbook: Playbook, step: Step, join: Join, feeding: set[str]
) -> None:
    names = dict.fromkeys(step_names(playbook))
    seen: set[str] = set()
    elements = reader.elements(reader.places[f"{join.place.path}.from"])
    for source, at in zip(join.sources, elements, strict=True):
        if source not in names:
            reader.report(
                "join-source",
                at,
                f"the join waits for step '{source}', which does not exist",
                reader.suggest(source, names, f"steps: {some(names)}"),
            )
        elif source in seen:
            reader.report(
                "join-source",
                at,
                f"the join names step '{source}' twice",
                "name each step once; how many tokens are needed says mode",
            )
        elif source not in feeding:
            reader.report(
                "join-unfed",
                at,
                f"the join waits for step '{source}', which has no arc to '{step.name}'",
                f"add the arc to '{source}', or take it out of 'from'",
            )
        seen.add(source)


def _check_count(reader: Reader, join: Join) -> None:
    if isinstance(join.mode, int) and join.mode > len(join.sources):
        reader.report(
            "join-count",
            reader.places[f"{join.place.path}.mode"],
            f"the join waits for {join.mode} tokens, but has {len(join.sources)} sources",
            f"use all, any, or a number up to {len(join.sources)}",
        )


def _check_entry(reader: Reader, playbook: Playbook, step: Step, join: Join) -> None:
    if step.name == entry_of(playbook):
        reader.report(
            "join-arc",
            reader.places[join.place.path],
            f"'{step.name}' is the entry step: its first token comes from no step of 'from'",
            "put a step before it, or remove the join",
        )


def _check_choice(reader: Reader, playbook: Playbook, step: Step, join: Join) -> None:
    """Of several arcs of an exclusive router one fires: the other steps send no token."""
    feeds: dict[str, list[Step]] = {}
    for source, arc in arcs_of(playbook):
        feeds.setdefault(arc.step, []).append(source)
    branches: dict[str, list[str]] = {}
    for name in dict.fromkeys(join.sources):
        fed = feeds.get(name, [])
        router = fed[0].router if len(fed) == 1 else None
        chooses = router is not None and router.mode == "exclusive"
        if chooses and _runs_once(fed[0].name, entry_of(playbook), feeds):
            branches.setdefault(fed[0].name, []).append(name)
    needed = join.mode if isinstance(join.mode, int) else len(join.sources)
    missing = sum(len(names) - 1 for names in branches.values())
    if join.mode != "any" and len(join.sources) - missing < needed <= len(join.sources):
        chooser, names = max(branches.items(), key=lambda branch: len(branch[1]))
        reader.report(
            "join-exclusive",
            reader.places[join.place.path],
            f"'{step.name}' never runs: its join waits for {' and '.join(map(repr, names))}, "
            f"but '{chooser}' starts only one of them",
            f"let '{chooser}' start all that match: next: {{ spec: {{ mode: inclusive }}, … }}, "
            "or wait for one: mode: any",
        )


def _runs_once(name: str, entry: str | None, feeds: Mapping[str, Sequence[Step]]) -> bool:
    """Whether one token at the most comes to a step: one way leads there, from the entry."""
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        fed = feeds.get(name, ())
        if name == entry:
            return not fed
        if len(fed) != 1:
            return False
        name = fed[0].name
    return False


def _check_arcs(reader: Reader, playbook: Playbook) -> None:
    """An arc into a join comes from a step of its `from`."""
    joins = {
        step.name: frozenset(step.join.sources)
        for step in playbook.steps
        if step.join is not None and step.join.sources
    }
    for source, arc in arcs_of(playbook):
        if arc.step in joins and source.name not in joins[arc.step]:
            reader.report(
                "join-arc",
                reader.places[f"{arc.place.path}.step"],
                f"the arc from '{source.name}' leads into the join of '{arc.step}', "
                "which does not wait for it",
                f"add '{source.name}' to the join's 'from', or lead the arc elsewhere",
            )
