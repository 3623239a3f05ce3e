"""A figure compares medians and says how far the measurements lay apart."""

import pytest
import yaml
from bench.__main__ import main, row
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
    [([5.0], 0.0), ([2.0, 2.0, 2.0], 0.0), ([1.0, 2.0, 3.0], 0.5), ([1.0, 3.0], 0.5)],
)
def test_spread_is_the_relative_interquartile_range(measured: list[float], expected: float) -> None:
    assert spread(measured) == pytest.approx(expected)


def test_a_missed_target_stands_out_in_the_table() -> None:
    assert " NO " in row(Figure.of("x", [9.0], [1.0], 2.0, "ms"))
    assert " yes " in row(Figure.of("x", [1.0], [1.0], 2.0, "ms"))


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
