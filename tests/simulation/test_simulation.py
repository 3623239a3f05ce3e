"""The program in a simulated world: every promise holds, whatever happens when (T18)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.simulation.audit import Auditor, Violation
from tests.simulation.reach import listed, points
from tests.simulation.scenario import Scenario, drawn
from tests.simulation.shrink import failure, shrunk
from tests.simulation.world import run
from tests.support.garbage import set_aside

CPU = 22
"""Seconds of CPU for new seeds, in all; `make simulate` runs more."""
KEPT = json.loads(Path(__file__).with_name("kept.json").read_text())
"""Scenarios that failed once, and what was wrong."""


@pytest.fixture(autouse=True, scope="module")
def as_before() -> Iterator[None]:
    """A world lets the collector see everything again when it ends."""
    yield
    set_aside()


def test_the_same_seed_is_the_same_story() -> None:
    first = [run(Scenario(seed=seed)) for seed in (1, 9, 19)]
    assert [run(Scenario(seed=seed)) for seed in (1, 9, 19)] == first
    assert len({ended.digest for ended in first}) == 3


@pytest.mark.fault("T18")
def test_what_failed_once_holds() -> None:
    for kept in KEPT:
        run(msgspec.convert(kept["scenario"], Scenario))


@pytest.mark.fault("T18")
def test_seeds() -> None:
    """As many as fit into the time that this test has."""
    words = ["--seeds", "100000", "--processes", "1", "--cpu", str(CPU), "--shrink", "1"]
    told = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_a_broken_promise_is_found_and_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an auditor that takes every effect for a violation."""

    def effect(auditor: Auditor, *_: object) -> None:
        auditor.check(False, "an effect")

    monkeypatch.setattr(Auditor, "effect", effect)
    seed = next(seed for seed in range(50) if failure(Scenario(seed=seed)) is not None)
    smaller = shrunk(Scenario(seed=seed), tries=30)
    with pytest.raises(Violation, match="an effect") as found:
        run(smaller)
    assert "VIOLATION" in found.value.trace
    assert len(drawn(smaller).happenings) <= len(drawn(Scenario(seed=seed)).happenings)
    assert f"--seed {seed}" in smaller.options()


def test_every_refusal_is_reached_or_has_a_reason() -> None:
    """`make simulate-reach` writes the list again."""
    known = listed()
    assert [point.name for point in points() if point.name not in known] == []
    assert sorted(known.keys() - {point.name for point in points()}) == []
    assert [name for name, why in known.items() if not why.strip()] == []
