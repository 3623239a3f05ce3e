"""Nothing grows past what one reads in one go, and every module says what it answers."""

import ast

from tests.house.tree import functions_of, modules, name_of, tree_of

MAX_FILE = 500
MAX_FUNCTION = 60
MOST_FILES = 300
MOST_FUNCTIONS = 35

# A file, or `file::function`, and why it may be longer: splitting it must hurt more.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def file_lengths() -> dict[str, int]:
    return {name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules()}


def function_lengths() -> dict[str, int]:
    return {
        f"{name_of(path)}::{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in modules()
        for function in functions_of(tree_of(path))
    }


def test_files_are_short() -> None:
    long = {name: lines for name, lines in file_lengths().items() if lines > MAX_FILE}
    assert long.keys() == LONG_FILES.keys(), f"the lengths are {long}"


def test_functions_are_short() -> None:
    long = {name: lines for name, lines in function_lengths().items() if lines > MAX_FUNCTION}
    assert long.keys() == LONG_FUNCTIONS.keys(), f"the lengths are {long}"


def test_most_of_the_package_is_shorter_still() -> None:
    """Nine of ten files and functions: taste is in the tail."""
    for lengths, bound in ((file_lengths(), MOST_FILES), (function_lengths(), MOST_FUNCTIONS)):
        ours = sorted(lines for name, lines in lengths.items() if name.startswith("src/"))
        assert ours[len(ours) * 9 // 10] <= bound


def test_modules_start_with_what_they_answer() -> None:
    trees = {name_of(path): tree_of(path) for path in modules()}
    silent = [name for name, tree in trees.items() if tree.body and not ast.get_docstring(tree)]
    assert silent == [], "start the module with one sentence that says what it answers"


def test_packages_export_nothing() -> None:
    """One name has one import path."""
    packages = {name_of(path): tree_of(path) for path in modules() if path.name == "__init__.py"}
    exporting = [
        name
        for name, tree in packages.items()
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body)
    ]
    assert exporting == []
