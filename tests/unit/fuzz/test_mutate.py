"""Chance is repeatable, and the target tells a broken promise from a clear answer."""

from random import Random

import pytest
from fuzz.__main__ import by_chance
from fuzz.fuzz_playbook import check_input
from fuzz.mutate import CHANGES, spoilt

SEEDS = [b"a: 1\nb: [1, 2]\n", b""]


def test_the_same_seed_gives_the_same_input() -> None:
    inputs = [spoilt(Random(f"1.{run}"), SEEDS) for run in range(50)]
    assert inputs == [spoilt(Random(f"1.{run}"), SEEDS) for run in range(50)]
    assert len(set(inputs)) > 40


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("text", SEEDS)
def test_every_change_takes_any_text(change: object, text: bytes) -> None:
    assert callable(change)
    for seed in range(20):
        assert isinstance(change(Random(seed), text), bytes)


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"\x01{{ 1", b"\x01{{ nothing }}", b"\x011 < 'a'"]
)
def test_a_clear_answer_passes(content: bytes) -> None:
    check_input(content)


def test_a_broken_promise_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(_: bytes) -> None:
        raise KeyError("x")

    monkeypatch.setattr("fuzz.fuzz_playbook.load", fault)
    with pytest.raises(KeyError):
        check_input(b"a: 1")


def test_a_short_run_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert by_chance(400, seed=1) == 0
    assert capsys.readouterr().out == "400 inputs of seed 1: each gave a clear answer\n"


def test_a_fault_is_shown_with_its_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(content: bytes) -> None:
        raise KeyError(len(content))

    monkeypatch.setattr("fuzz.__main__.check_input", fault)
    assert by_chance(3, seed=1) == 1
    out = capsys.readouterr().out
    assert "run 0 of seed 1 failed with this input:\nb'" in out
    assert out.endswith("3 inputs of seed 1: 1 kinds of fault\n")
