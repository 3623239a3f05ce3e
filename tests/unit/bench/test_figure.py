"""A figure compares medians and says how far the measurements lay apart."""

from pathlib import Path

import pytest
import yaml
from bench.__main__ import main, row
from bench.baseline import Kept, keep, read, verdict
from bench.figure import Figure, spread
from bench.generate import generate

from noetl.expression.syntax import is_template
from noetl.playbook.load import load


def test_a_figure_compares_medians() -> None:
    figure = Figure.of("x", [3.0, 1.0, 2.0], [4.0, 4.0, 400.0], 0.5, "ms")
    assert (figure.ours, figure.reference, figure.ratio) == (2.0, 4.0, 0.5)
    assert (figure.met, figure.repeats, figure.unit) == (True, 3, "ms")


@pytest.mark.parametrize(
    ("target", "at_most", "met"),
    [(0.5, True, True), (0.49, True, False), (0.5, False, True), (0.51, False, False)],
)
def test_the_target_bounds_the_ratio(target: float, at_most: bool, met: bool) -> None:
    assert Figure.of("x", [1.0], [2.0], target, "s", at_most=at_most).met is met


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ([5.0], 0.0),
        ([2.0, 2.0, 2.0], 0.0),
        ([1.0, 2.0, 3.0], 0.5),
        ([1.0, 3.0], 0.5),
        ([1.0, 2.0, 3.0] * 100, 0.0),
    ],
)
def test_spread_is_the_relative_interquartile_range(measured: list[float], expected: float) -> None:
    assert spread(measured) == pytest.approx(expected)


def test_a_missed_target_stands_out_in_the_table() -> None:
    assert " NO " in row(Figure.of("x", [9.0], [1.0], 2.0, "ms"), {})
    assert " yes " in row(Figure.of("x", [1.0], [1.0], 2.0, "ms"), {})


@pytest.mark.parametrize(
    ("measured", "at_most", "kept", "expected"),
    [
        ([2.0], True, Kept("b", "x", 1.8, 0.0), ("1.8", "FELL")),
        ([2.0], True, Kept("b", "x", 1.8, 0.2), ("1.8", "")),
        ([1.9, 2.0, 2.5], True, Kept("b", "x", 1.8, 0.0), ("1.8", "")),
        ([2.0], True, Kept("b", "x", 1.95, 0.0), ("1.95", "")),
        ([2.0], True, Kept("b", "x", 9.0, 0.0), ("9", "")),
        ([2.0], False, Kept("b", "x", 9.0, 0.5), ("9", "FELL")),
        ([2.0], False, Kept("b", "x", 1.0, 0.0), ("1", "")),
        ([2.0], True, Kept("b", "y", 1.0, 0.0), ("", "new")),
    ],
)
def test_what_fell_by_more_than_the_spread_is_marked(
    measured: list[float], at_most: bool, kept: Kept, expected: tuple[str, str]
) -> None:
    figure = Figure.of("x", measured, [1.0], 5.0, "s", at_most=at_most)
    assert verdict(figure, {kept.figure: kept}) == expected


def test_a_bench_that_is_kept_replaces_its_lines_alone(tmp_path: Path) -> None:
    file = tmp_path / "baseline.jsonl"
    x, y, z = (Figure.of(name, [3.0], [2.0], 2.0, "ms") for name in "xyz")
    keep({"one": [x, y], "two": [z]}, file)
    keep({"one": [Figure.of("x", [5.0], [2.0], 2.0, "ms")]}, file)
    assert read(file) == {"z": Kept("two", "z", 1.5, 0.0), "x": Kept("one", "x", 2.5, 0.0)}


def test_a_small_run_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.size.SMALL", True)
    assert main(["--keep", "guards"]) == 3
    assert capsys.readouterr().out == "a tenth says nothing that is worth keeping\n"


def test_an_unknown_bench_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 3
    assert capsys.readouterr().out.startswith("no such bench: nothing; there are: startup, ")


def test_the_generated_playbook_is_valid_and_long() -> None:
    text = generate(1_000)
    assert 1_000 <= text.count("\n") < 1_200
    assert [found for found in load(text).findings if found.severity == "error"] == []


def test_another_salt_gives_other_templates() -> None:
    shared = templates(generate(500)) & templates(generate(500, salt=1))
    assert len(shared) <= 6
    assert len(templates(generate(500))) > 60


def templates(text: str) -> set[str]:
    events = yaml.parse(text, yaml.CSafeLoader)
    scalars = (event.value for event in events if isinstance(event, yaml.ScalarEvent))
    return {value for value in scalars if is_template(value)}
