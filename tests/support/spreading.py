"""Tests that mostly wait are spread over the run, so that none is left to run alone at its end."""

from itertools import groupby

import pytest

WAITING = (
    "tests/faults/",
    "tests/simulation/",
    "tests/system/test_fleet",
    "tests/system/test_kill_resume",
    "tests/system/test_lost_key",
    "tests/system/test_stalls",
    "tests/property/",
    "tests/conformance/test_key_planted",
    "tests/ui/",
    "tests/unit/bench/",
)
"""Where tests take seconds: they wait for processes, for leases to run out or for many examples."""
BEFORE = 0.9
"""The part of the run in which they begin."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Files of slow tests stand between the others at even distances.

    Processes of the run are given neighbouring tests: each gets as many slow files as the others.
    A file stays together, since its tests share what it sets up.
    """
    slow = [item for item in items if item.nodeid.startswith(WAITING)]
    quick = [item for item in items if not item.nodeid.startswith(WAITING)]
    files = [list(tests) for _, tests in groupby(slow, key=lambda item: item.path)]
    if not quick or not files:
        return
    distance = max(1, int(len(quick) * BEFORE / len(files)))
    items.clear()
    for number, tests in enumerate(files):
        items += tests
        items += quick[number * distance : (number + 1) * distance]
    items += quick[len(files) * distance :]
