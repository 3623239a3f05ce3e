"""ARCHITECTURE.md names what there is: its paths, its names, and the floors of the packages."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

from tests.house.tree import ROOT, SOURCE, modules, tree_of

PAGE = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PROSE = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
QUOTED = re.findall(r"`([^`\n]+)`", PROSE)
PATH = re.compile(r"[\w.*/-]+/|[\w.*/-]+\.(?:py|md|toml|sql|jsonl)")
NAME = re.compile(r"[A-Z]\w*(?:\.\w+)?|\w+_\w+")
IN_FILE = re.compile(r"((?:`[\w.]+`(?:, | and )?)+) in\s`([\w./]+\.py)`")
ANYWHERE = {"noetl.toml", "registers.py", "registers.sql", "storage.py"}
"""Files that a user has, or that each adapter has."""


def found(path: str) -> list[Path]:
    return [hit for base in (ROOT, SOURCE) for hit in base.glob(path)]


def names_in(tree: ast.AST) -> set[str]:
    """What a module defines: names, and `Class.member`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
            names |= {f"{node.name}.{name}" for name in names_in_body(node)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


def names_in_body(node: ast.ClassDef) -> set[str]:
    fields = {below.target for below in node.body if isinstance(below, ast.AnnAssign)}
    functions = {
        below.name
        for below in node.body
        if isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return functions | {field.id for field in fields if isinstance(field, ast.Name)}


@cache
def all_names() -> frozenset[str]:
    return frozenset().union(*(names_in(tree_of(path)) for path in modules()))


def test_every_path_exists() -> None:
    paths = {text for text in QUOTED if PATH.fullmatch(text)} - ANYWHERE
    assert len(paths) > 80
    assert [path for path in sorted(paths) if not found(path)] == []


def test_every_name_exists() -> None:
    named = {text for text in QUOTED if NAME.fullmatch(text) and not PATH.fullmatch(text)}
    assert len(named) > 40
    assert sorted(named - all_names()) == []


def test_every_name_stands_in_the_file_that_the_page_says() -> None:
    places = [
        (name, path)
        for names, path in IN_FILE.findall(PROSE)
        for name in re.findall(r"`([\w.]+)`", names)
    ]
    assert len(places) > 40
    wrong = [
        f"{name} in {path}"
        for name, path in places
        for file in found(path)
        if name not in names_in(tree_of(file))
    ]
    assert wrong == []


def test_floors_are_those_of_the_import_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    kept = [
        (str(len(layers) - number), package.strip().removeprefix("noetl."))
        for number, layer in enumerate(layers)
        for package in layer.split("|")
    ]
    assert re.findall(r"^\| (\d+) \| `(\w+)[/.]", PAGE, flags=re.MULTILINE) == kept
