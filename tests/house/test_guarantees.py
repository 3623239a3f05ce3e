"""Every fault of the table of guarantees has its tests, and every test is in the table."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.house.tree import ROOT, functions_of, tree_of

PAGE = ROOT / "docs" / "operate" / "guarantees.md"
FAULTS = [f"T{number}" for number in range(1, 27)]
ROW = re.compile(r"^\| (T\d+) \|", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@cache
def marked() -> dict[str, set[tuple[str, str]]]:
    """Number of a fault → the tests that carry it."""
    found: dict[str, set[tuple[str, str]]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for function in functions_of(tree_of(path)):
            for number in numbers_of(function):
                name = str(Path(path).relative_to(ROOT))
                found.setdefault(number, set()).add((name, function.name))
    return found


def numbers_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    return [
        str(ast.literal_eval(given))
        for decorator in function.decorator_list
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault"
        for given in decorator.args
    ]


def rows() -> dict[str, set[tuple[str, str]]]:
    """Number of a fault → the tests that its row names."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if ROW.match(line)]
    return {line.split("|")[1].strip(): set(TEST.findall(line)) for line in lines}


def test_every_fault_has_a_test() -> None:
    carried = marked()
    assert [number for number in FAULTS if number not in carried] == []


def test_no_test_carries_a_number_that_there_is_not() -> None:
    assert sorted(set(marked()) - set(FAULTS)) == []


def test_the_table_names_each_fault_once_and_in_order() -> None:
    assert ROW.findall(PAGE.read_text("utf-8")) == FAULTS


def test_each_row_names_tests_that_carry_its_number() -> None:
    carried = marked()
    shown = rows()
    assert [number for number in FAULTS if not shown[number]] == []
    assert {number: shown[number] - carried[number] for number in FAULTS} == {
        number: set() for number in FAULTS
    }


def test_every_test_that_the_page_names_exists() -> None:
    named = set(TEST.findall(PAGE.read_text("utf-8")))
    there = {
        (file, function.name)
        for file in {file for file, _ in named}
        if (ROOT / file).is_file()
        for function in functions_of(tree_of(ROOT / file))
    }
    assert sorted(named - there) == []
