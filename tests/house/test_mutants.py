"""The table of planted faults cannot rot: each fits the source as it stands."""

from pathlib import Path

import pytest
from tests.mutants.mutant import Mutant
from tests.mutants.table import FOR_THE_SIMULATION, MUTANTS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.why.replace(" ", "-"))
def test_a_fault_can_be_planted(mutant: Mutant) -> None:
    text = (ROOT / "src" / "noetl" / mutant.file).read_text()
    assert text.count(mutant.before) == 1, "its text is there exactly once: change it with the code"
    assert mutant.after not in ("", mutant.before)
    assert [test for test in mutant.tests if not (ROOT / test).exists()] == []


def test_there_are_enough_faults() -> None:
    assert len(MUTANTS) >= 60
    assert {mutant.file.split("/")[0] for mutant in MUTANTS} >= {
        "control",
        "pipeline",
        "server",
        "worker",
        "adapters",
    }
    assert set(FOR_THE_SIMULATION) <= {mutant.before for mutant in MUTANTS}
