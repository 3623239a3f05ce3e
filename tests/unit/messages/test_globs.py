"""Globs of readers: what they mean, and that few of them are kept."""

import fnmatch
from pathlib import Path

import pytest

import noetl
from noetl.messages import globs
from noetl.messages.globs import MOST_KEPT, matches


@pytest.mark.parametrize(
    ("glob", "name", "fits"),
    [
        ("shop/*", "shop/load/all", True),
        ("shop/?oad", "shop/load", True),
        ("shop/[a-l]*", "shop/load", True),
        ("shop/[!a-l]*", "shop/load", False),
        ("SHOP/*", "shop/load", False),
        ("*", "", True),
        ("a*", "b\na", False),
        ("[z-a]", "z", False),
        ("[", "[", True),
    ],
)
def test_what_a_glob_means(glob: str, name: str, fits: bool) -> None:
    assert matches(name, glob) is fits
    assert fnmatch.fnmatchcase(name, glob) is fits


def test_few_are_kept_however_many_are_asked_for() -> None:
    for number in range(2 * MOST_KEPT):
        assert not matches("shop/load", f"{number}*")
    assert globs._matcher.cache_info().currsize <= MOST_KEPT


def test_no_other_module_asks_python() -> None:
    folder = Path(noetl.__file__).parent
    using = {file.name for file in folder.rglob("*.py") if "fnmatch" in file.read_text()}
    assert using == {"globs.py"}
