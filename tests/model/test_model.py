"""T17: the engine does what the reference model says, on playbooks made by chance."""

import os

import pytest
from tests.model.comparing import compare

SEEDS = int(os.environ.get("NOETL_MODEL", "240"))
KEPT = {
    1336: "after a wait, parallel iterations of a nested loop saw what others of it had written",
    3197: "a place was asked for again after its run, and kept for nobody",
    6206: "a token that was one too many under a limit did not stop the others (fail_fast)",
    3564: "a nested iteration put back what ctx had before another one wrote",
    11354: "the model asked for admission again of a token that waited for its place",
    13094: "the model gave a signal to a wait of a run that had been stopped",
}
"""Seeds that differed once; `test_found.py` has the smallest playbook of each."""
BLOCK = 40
"""`make model` reads many more; these are few enough for every change."""


@pytest.mark.rule("NEXT-7", "NEXT-5", "NEXT-6", "ADM-3", "TASK-3", "LOOP-5", "SCOPE-6", "WAIT-4")
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_the_engine_does_what_the_model_says(first: int) -> None:
    for seed in range(first, first + BLOCK):
        found = compare(seed)
        assert not found.difference, f"{found.difference}\npython -m tests.model {seed}"


@pytest.mark.rule("SCOPE-4", "LOOP-7", "LIMIT-3")
@pytest.mark.parametrize("seed", KEPT)
def test_what_differed_once_agrees(seed: int) -> None:
    assert not compare(seed).difference, f"{KEPT[seed]}\npython -m tests.model {seed}"
