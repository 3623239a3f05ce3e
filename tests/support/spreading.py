"""Tests that mostly wait are spread over the run, so that none is left to run alone at its end."""

from itertools import chain, groupby

import pytest

WAITING = (
    "tests/faults/",
    "tests/simulation/",
    "tests/system/test_fleet",
    "tests/system/test_kill_resume",
    "tests/system/test_lost_key",
    "tests/system/test_stalls",
    "tests/system/test_wheel",
    "tests/property/",
    "tests/conformance/test_key_planted",
    "tests/ui/",
    "tests/unit/bench/",
)
"""Where tests take seconds: they wait for processes, for leases to run out or for many examples."""
BEFORE = 0.9
"""The part of the run in which they begin."""
STORIES = "tests/ui/"
TOGETHER = 15
"""Files of stories that follow each other: they share a browser and a server with its worker."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Files of slow tests stand between the others at even distances.

    Processes of the run are given neighbouring tests: each gets as many slow files as the others.
    A file stays together, since its tests share what it sets up, and so do some files of stories.
    """
    slow = [item for item in items if item.nodeid.startswith(WAITING)]
    quick = [item for item in items if not item.nodeid.startswith(WAITING)]
    files = together([list(tests) for _, tests in groupby(slow, key=lambda item: item.path)])
    if not quick or not files:
        return
    distance = max(1, int(len(quick) * BEFORE / len(files)))
    items.clear()
    for number, tests in enumerate(files):
        items += tests
        items += quick[number * distance : (number + 1) * distance]
    items += quick[len(files) * distance :]


def together(files: list[list[pytest.Item]]) -> list[list[pytest.Item]]:
    """Some files of stories as if they were one."""
    stories = [tests for tests in files if tests[0].nodeid.startswith(STORIES)]
    others = [tests for tests in files if not tests[0].nodeid.startswith(STORIES)]
    starts = range(0, len(stories), TOGETHER)
    parts = [list(chain(*stories[at : at + TOGETHER])) for at in starts]
    distance = max(1, len(others) // max(1, len(parts)))
    for number, part in enumerate(parts):
        others.insert(number * (distance + 1), part)
    return others
