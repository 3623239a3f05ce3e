"""
The whole system, disturbed at every point where a process can die (T3, T9, T18).

A death takes everything that is not committed; the next process goes on. `NOETL_TEST_SEED=n`
runs one seed again, `NOETL_TEST_SEEDS=n` runs more of them.
"""

import os
from functools import cache
from pathlib import Path

import pytest
from tests.support.deaths import Came, Simulation, told
from tests.support.disturbed import ENDS, PLAYBOOKS, child

SEEDS = 50
"""Per playbook; thirteen playbooks."""


def seeds() -> list[int]:
    one = os.environ.get("NOETL_TEST_SEED")
    return [int(one)] if one else list(range(int(os.environ.get("NOETL_TEST_SEEDS", SEEDS))))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("simulated")
    (path / "child.yaml").write_text(child())
    return path


@cache
def undisturbed(name: str, folder: Path) -> list[Came]:
    """What a playbook comes to if nothing happens to it."""
    simulation = Simulation(PLAYBOOKS[name](), folder, 0)
    came = simulation.run(lives=0)
    simulation.check()
    (parent,) = [one for one in came if one.path == f"tests/{name}"]
    assert (parent.status, parent.result["data"]) == ENDS[name]
    return came


@pytest.mark.rule("TASK-9", "EVT-3", "EVT-5")
@pytest.mark.parametrize("name", PLAYBOOKS)
def test_any_number_of_deaths_leads_to_the_same_end(name: str, folder: Path) -> None:
    text, expected, deaths = PLAYBOOKS[name](), undisturbed(name, folder), 0
    for seed in seeds():
        with told(seed):
            simulation = Simulation(text, folder, seed, jumps=seed % 5 == 0)
            assert simulation.run() == expected
            simulation.check()
            deaths += simulation.deaths
    assert deaths >= len(seeds()) // 5, "hardly anything was disturbed"
