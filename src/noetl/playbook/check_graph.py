"""Do steps and arcs form a sound net? (VAL-1, VAL-3, DOC-5, NEXT-6)"""

from collections.abc import Iterator

from noetl.playbook.model import Arc, Playbook, Step
from noetl.playbook.reader import Reader


def arcs_of(playbook: Playbook) -> Iterator[tuple[Step, Arc]]:
    """Every arc with the step that it leaves."""
    for step in playbook.steps:
        for arc in step.router.arcs if step.router else ():
            yield step, arc


def step_names(playbook: Playbook) -> tuple[str, ...]:
    """The names of the steps, in document order."""
    return tuple(step.name for step in playbook.steps if step.name)


def entry_of(playbook: Playbook) -> str | None:
    """DOC-5: the named entry, else `start`, else the first."""
    names = step_names(playbook)
    if playbook.executor.entry_step in names:
        return playbook.executor.entry_step
    return "start" if "start" in names else (names[0] if names else None)


def check_step_names(reader: Reader, playbook: Playbook) -> None:
    """VAL-1: step names are unique."""
    first: dict[str, int] = {}
    for step in playbook.steps:
        if step.name in first and step.name:
            reader.report(
                "duplicate-step",
                reader.places[f"{step.place.path}.step"],
                f"the step name '{step.name}' is taken already, on line {first[step.name]}",
                "rename one of the two steps; arcs go by name",
            )
        first.setdefault(step.name, step.place.line)


def check_arcs(reader: Reader, playbook: Playbook) -> None:
    """VAL-1: an arc leads to a step that exists."""
    names = step_names(playbook)
    known = frozenset(names)
    for _, arc in arcs_of(playbook):
        if arc.step not in known:
            reader.report(
                "unknown-step",
                reader.places[f"{arc.place.path}.step"],
                f"the arc leads to step '{arc.step}', which does not exist",
                reader.suggest(arc.step, names, f"add the step: - step: {arc.step}"),
            )


def check_entry(reader: Reader, playbook: Playbook) -> None:
    """DOC-5: the entry step exists."""
    entry = playbook.executor.entry_step
    names = step_names(playbook)
    if entry is not None and entry not in names:
        reader.report(
            "unknown-entry",
            reader.places["executor.spec.entry_step"],
            f"the entry step '{entry}' does not exist",
            reader.suggest(entry, names, "name a step of the workflow, or leave it out"),
        )


def check_final(reader: Reader, playbook: Playbook) -> None:
    """NEXT-6: the final step exists, nothing leads to it, and it leads nowhere."""
    final = playbook.executor.final_step
    if final is None:
        return
    names = step_names(playbook)
    at = reader.places["executor.spec.final_step"]
    if final not in names:
        reader.report(
            "unknown-final",
            at,
            f"the final step '{final}' does not exist",
            reader.suggest(final, names, "name a step of the workflow, or leave it out"),
        )
    elif final == entry_of(playbook):
        reader.report(
            "final-entry",
            at,
            f"the final step '{final}' is the entry step too",
            "name another entry by entry_step; the final step runs once, at the end",
        )
    for step, arc in arcs_of(playbook):
        if arc.step == final:
            reader.report(
                "arc-to-final",
                reader.places[f"{arc.place.path}.step"],
                f"the arc from '{step.name}' leads to the final step '{final}'",
                "remove the arc: the final step runs by itself when all else has ended",
            )
    for step in playbook.steps:
        if step.name == final and step.router is not None:
            reader.report(
                "final-next",
                reader.places[step.router.place.path],
                f"the final step '{final}' has a 'next'",
                "remove it: the execution ends after the final step",
            )


def check_reach(reader: Reader, playbook: Playbook) -> None:
    """VAL-3: every step can be reached. Where an error stands, arcs may be missing: no verdict."""
    if any(finding.severity == "error" for finding in reader.findings):
        return
    leads: dict[str, list[str]] = {}
    for step, arc in arcs_of(playbook):
        leads.setdefault(step.name, []).append(arc.step)
    reached: set[str] = set()
    waiting = [name for name in (entry_of(playbook), playbook.executor.final_step) if name]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(leads.get(name, ()))
    for step in playbook.steps:
        if step.name not in reached:
            reader.report(
                "unreachable-step",
                reader.places[f"{step.place.path}.step"],
                f"no arc leads from the entry step to '{step.name}': it never runs",
                f"add an arc: next: {{ arcs: [ {{ step: {step.name} }} ] }}, or remove the step",
            )
