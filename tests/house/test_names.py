"""Names say what a thing is (GLOSSARY.md): no word in them that says nothing."""

import ast
import re
from collections.abc import Iterator

import pytest
from tests.house.tree import SOURCE, Function, modules, name_of, tree_of

EMPTY_WORDS = {
    "manager",
    "helper",
    "util",
    "processor",
    "common",
    "misc",
    "abstract",
    "impl",
    "obj",
}
EMPTY_STARTS = ("do_", "handle_", "perform_", "get_")

# A name, and why it must be so.
ALLOWED: dict[str, str] = {
    "get_code": "Python asks a loader of modules for the code by this name",
    "get_command": "click asks its groups for a command by this name",
}

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> list[str]:
    return [word.lower() for word in WORD.findall(name)]


def says_nothing(name: str) -> bool:
    """Whether a word of the name, or the start of it, is on the list."""
    if name.startswith("__") and name.endswith("__"):
        return False  # Python's own
    words = words_of(name)
    return name.lstrip("_").startswith(EMPTY_STARTS) or any(
        word in EMPTY_WORDS or word.removesuffix("s") in EMPTY_WORDS for word in words
    )


def names() -> Iterator[tuple[str, str]]:
    """Every name of a file, folder, class or function of the package, with its place."""
    for path in modules():
        if not path.is_relative_to(SOURCE):
            continue
        place = name_of(path)
        for part in path.relative_to(SOURCE).with_suffix("").parts:
            yield part, place
        for node in ast.walk(tree_of(path)):
            if isinstance(node, Function | ast.ClassDef):
                yield node.name, f"{place}:{node.lineno}"


def test_names_say_something() -> None:
    empty = [f"{name} at {place}" for name, place in names() if says_nothing(name)]
    assert [name for name in empty if name.split(" ")[0] not in ALLOWED] == []


def test_exceptions_are_still_needed() -> None:
    used = {name for name, _ in names()}
    assert [name for name in ALLOWED if name not in used] == []


@pytest.mark.parametrize(
    ("name", "empty"),
    [
        ("TokenManager", True),
        ("utils", True),
        ("HTTPHelper", True),
        ("_get_step", True),
        ("row_data", False),
        ("HTTPHandler", False),
        ("database", False),
        ("Executor", False),
        ("forget", False),
        ("process", False),
        ("__getitem__", False),
        ("utility", False),
    ],
)
def test_a_word_is_judged_whole(name: str, empty: bool) -> None:
    assert says_nothing(name) is empty
