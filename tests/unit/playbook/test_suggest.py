"""Names that are near, and lists as a person writes them."""

import pytest

from noetl.expression.meant import LONGEST_NAME, closest
from noetl.playbook.suggest import did_you_mean, listed, some

KNOWN = ("start", "validate_results", "cleanup", "GET")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("strat", "start"),
        ("validate_result", "validate_results"),
        ("clean_up", "cleanup"),
        ("START", "start"),
        ("get", "GET"),
        ("start", "start"),
        ("elsewhere", None),
        ("", None),
        ("x" * 100_000, None),
    ],
)
def test_closest(name: str, near: str | None) -> None:
    assert closest(name, KNOWN) == near


def test_the_hint_falls_back() -> None:
    assert did_you_mean("strat", KNOWN, "name a step") == "did you mean 'start'?"
    assert did_you_mean("elsewhere", KNOWN, "name a step") == "name a step"


@pytest.mark.parametrize(
    ("names", "text"),
    [((), ""), (("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c"), "a, b or c")],
)
def test_listed(names: tuple[str, ...], text: str) -> None:
    assert listed(names) == text


def test_a_long_list_is_cut() -> None:
    assert some(("a", "b")) == "a, b"
    assert some(str(n) for n in range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert some(str(n) for n in range(13)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"


def test_what_is_too_long_to_be_a_name_is_compared_with_none() -> None:
    long = "a" * (LONGEST_NAME + 1)
    assert closest(long[1:], [long[1:].upper()]) == long[1:].upper()
    assert closest(long, [long.upper()]) is None
