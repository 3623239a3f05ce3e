"""The tables of planted faults cannot rot: each fits the source as it stands."""

from pathlib import Path

import pytest
from tests.house.test_guarantees import FAULTS, marked
from tests.mutants.mutant import Mutant
from tests.mutants.of_faults import OF_FAULTS
from tests.mutants.table import MUTANTS

ROOT = Path(__file__).parents[2]
ALL = (*MUTANTS, *(planted.mutant for planted in OF_FAULTS))


@pytest.mark.parametrize("mutant", ALL, ids=lambda mutant: mutant.why.replace(" ", "-"))
def test_a_fault_can_be_planted(mutant: Mutant) -> None:
    text = (ROOT / "src" / "noetl" / mutant.file).read_text()
    assert text.count(mutant.before) == 1, "its text is there exactly once: change it with the code"
    assert mutant.after != mutant.before
    assert [test for test in mutant.tests if not (ROOT / test.partition("::")[0]).exists()] == []


def test_there_are_enough_faults() -> None:
    assert len(MUTANTS) >= 60
    assert {mutant.file.split("/")[0] for mutant in MUTANTS} >= {
        "control",
        "pipeline",
        "server",
        "worker",
        "adapters",
    }


def test_each_fault_of_the_guarantees_is_planted_before_a_test_that_carries_its_number() -> None:
    assert [planted.number for planted in OF_FAULTS] == FAULTS
    named = {
        planted.number: {tuple(test.partition("[")[0].split("::")) for test in planted.mutant.tests}
        for planted in OF_FAULTS
    }
    assert {number: tests - marked()[number] for number, tests in named.items()} == {
        number: set() for number in FAULTS
    }
