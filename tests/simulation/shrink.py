"""A failing scenario made smaller: fewer happenings, a calmer network, smaller playbooks."""

from collections.abc import Iterator

from msgspec.structs import replace
from tests.simulation.audit import Violation
from tests.simulation.scenario import CHANCES, Scenario, drawn
from tests.simulation.world import run


def failure(scenario: Scenario) -> Violation | None:
    try:
        run(scenario)
    except Violation as violation:
        return violation
    return None


def shrunk(scenario: Scenario, tries: int = 200) -> Scenario:
    """The smallest that still fails, whatever it fails with, after at most so many tries."""
    found = True
    while found and tries > 0:
        found = False
        for smaller in _smaller(scenario):
            tries -= 1
            if tries < 0:
                break
            if failure(smaller) is not None:
                scenario, found = smaller, True
                break
    return scenario


def _smaller(scenario: Scenario) -> Iterator[Scenario]:
    """The big steps first."""
    setup = drawn(scenario)
    everything = range(len(drawn(replace(scenario, without=())).happenings))
    left = [number for number in everything if number not in scenario.without]
    for length in (len(left), len(left) // 2, 1):
        for start in range(0, len(left), max(1, length)):
            gone = left[start : start + max(1, length)]
            yield replace(scenario, without=tuple(sorted({*scenario.without, *gone})))
    for name in CHANCES:
        if setup.chances[name]:
            yield replace(scenario, calm=(*scenario.calm, name))
    if setup.executions > 1:
        yield replace(scenario, executions=setup.executions - 1)
    if setup.size > 1:
        yield replace(scenario, size=setup.size - 1)
