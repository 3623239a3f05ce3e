"""
The whole system, disturbed at every point where a process can die (T3, T9, T18).

A death takes everything that is not committed; the next process goes on. `NOETL_TEST_SEED=n`
runs one seed again, `NOETL_TEST_SEEDS=n` runs more of them.
"""

import json
import os
from functools import cache
from pathlib import Path

import pytest
from tests.support.deaths import Came, Simulation, told
from tests.support.disturbed import ENDS, PLAYBOOKS, child
from tests.support.trial import sized

from noetl.messages import requests as r

SEEDS = sized(12, 60)
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


@pytest.mark.fault("T18")
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


@pytest.mark.fault("T10", "T18")
@pytest.mark.rule("EVT-3")
@pytest.mark.parametrize("name", PLAYBOOKS)
def test_reports_that_come_again_or_late_change_nothing(name: str, folder: Path) -> None:
    text, expected = PLAYBOOKS[name](), undisturbed(name, folder)
    for seed in seeds()[: sized(5, 20)]:
        with told(seed):
            simulation = Simulation(text, folder, seed, echoes=True)
            assert simulation.run(lives=seed % 3) == expected
            simulation.check()
            assert simulation.world.echoes > 0


LIMIT = 100_000.0


def with_limit(text: str) -> str:
    """The playbook with a limit to its time, which no simulation comes near."""
    tree = json.loads(text)
    executor = tree.setdefault("executor", {"kind": "local"})
    limits = executor.setdefault("spec", {}).setdefault("policy", {}).setdefault("limits", {})
    limits["timeout"] = LIMIT
    return json.dumps(tree)


ORDERS: dict[str, list[r.Input]] = {
    "cancel": [r.CancelExecution(reason="enough")],
    "pause": [r.PauseExecution(), r.ResumeExecution()],
    "pause and cancel": [r.PauseExecution(), r.CancelExecution()],
    "time": [r.TimeIsUp(seconds=LIMIT)],
    "all": [
        r.PauseExecution(),
        r.ResumeExecution(),
        r.TimeIsUp(seconds=LIMIT),
        r.CancelExecution(),
    ],
}
STOPPED = {"completed", "failed", "cancelled"}


@pytest.mark.rule("NEXT-8")
@pytest.mark.parametrize("orders", ORDERS.values(), ids=ORDERS)
@pytest.mark.parametrize("name", PLAYBOOKS)
def test_orders_at_any_moment_lead_to_one_end(
    name: str, orders: list[r.Input], folder: Path
) -> None:
    text, expected, ends = with_limit(PLAYBOOKS[name]()), undisturbed(name, folder), set()
    for seed in seeds()[: sized(4, 16)]:
        with told(seed):
            simulation = Simulation(text, folder, seed)
            came = simulation.run(lives=seed % 4, orders=orders)
            simulation.check(stopped=True)
            assert {one.status for one in came} <= STOPPED
            if orders == ORDERS["pause"]:
                assert came == expected
            ends |= {one.status for one in came if one.path == f"tests/{name}"}
    assert orders != ORDERS["cancel"] or "cancelled" in ends, "no order came in time"
