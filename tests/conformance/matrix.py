"""
Which rule is proven by which tests: reads the marks statically and writes docs/conformance.md.

`python -m tests.conformance.matrix` writes the page; test_matrix.py compares it. Marks are read
from the syntax tree, so that the page needs neither a test run nor importable tests.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from tests.house.tree import parsed

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "tests" / "conformance" / "rules.toml"
PAGE = ROOT / "docs" / "conformance.md"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of rules.toml."""

    id: str
    says: str
    ext: Literal["no", "part", "whole"] = "no"
    left_out: str = ""
    """What of its sentence no test says yet, and why; empty where all of it is tested."""


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules that share a prefix; `due` means that each of them needs a test now."""

    title: str
    due: bool
    rules: tuple[Rule, ...]


class Mark(msgspec.Struct, frozen=True, order=True):
    """One rule id on one test. `rule` is None where the id is no literal text."""

    rule: str | None
    file: str
    test: str
    line: int


def read_families(source: Path = RULES) -> dict[str, Family]:
    return msgspec.convert(tomllib.loads(source.read_text("utf-8")), dict[str, Family])


def read_marks(root: Path = ROOT) -> list[Mark]:
    """Every mark below tests/, sorted by file and line."""
    found: list[Mark] = []
    for source in sorted((root / "tests").rglob("*.py")):
        name = source.relative_to(root).as_posix()
        found += marks_in(source.read_text("utf-8"), name)
    return sorted(found, key=lambda mark: (mark.file, mark.line, mark.test, mark.rule or ""))


def marks_in(text: str, file: str) -> Iterator[Mark]:
    """The marks of one module, each given to the tests that carry it."""
    tree = parsed(text)
    short = _short_names(tree)
    for statement in tree.body:
        calls = list(_calls(statement, short))
        if not calls:
            continue
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _each(calls, [statement.name], file)
            case ast.ClassDef():
                yield from _in_class(statement, short, file)
            case ast.Assign() | ast.AnnAssign():
                yield from _each(calls, _users(tree, statement), file)
            case _:
                yield from _each(calls, [""], file)


def _in_class(owner: ast.ClassDef, short: set[str], file: str) -> Iterator[Mark]:
    """A mark inside a method is the method's; any other mark of the class is the class's own."""
    methods = [
        part for part in owner.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for method in methods:
        yield from _each(list(_calls(method, short)), [f"{owner.name}::{method.name}"], file)
    others: list[ast.AST] = [part for part in owner.body if part not in methods]
    for other in [*others, *owner.decorator_list]:
        yield from _each(list(_calls(other, short)), [owner.name], file)


def _each(calls: list[ast.Call], tests: list[str], file: str) -> Iterator[Mark]:
    for call in calls:
        for argument in call.args:
            literal = argument.value if isinstance(argument, ast.Constant) else None
            rule = literal if isinstance(literal, str) else None
            for test in tests:
                yield Mark(rule=rule, file=file, test=test, line=call.lineno)


def _calls(tree: ast.AST, short: set[str]) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_mark(node.func, short):
            yield node


def _is_mark(function: ast.expr, short: set[str]) -> bool:
    if isinstance(function, ast.Name):
        return function.id in short
    return ast.unparse(function) in {"pytest.mark.rule", "mark.rule"}


def _short_names(tree: ast.Module) -> set[str]:
    """Names that a module gives to the mark itself, such as `rule = pytest.mark.rule`."""
    return {
        target.id
        for statement in tree.body
        if isinstance(statement, ast.Assign) and _is_mark(statement.value, set())
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def _users(tree: ast.Module, table: ast.Assign | ast.AnnAssign) -> list[str]:
    """The tests whose decorators name a table of cases; the whole file where there are none."""
    targets = table.targets if isinstance(table, ast.Assign) else [table.target]
    names = {target.id for target in targets if isinstance(target, ast.Name)}
    users = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(names & _names(decorator) for decorator in function.decorator_list)
    ]
    return users or [""]


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def render(families: Mapping[str, Family], marks: list[Mark]) -> str:
    """The page: a table per family, and a count on top."""
    tested = {mark.rule for mark in marks}
    rules = [rule for family in families.values() for rule in family.rules]
    counted = [rule for rule in rules if rule.id in tested]
    part = sum(bool(rule.left_out) for rule in counted)
    told = f", {part} of them in part" if part else ""
    lines = [
        "# Conformance",
        "",
        "Written by `make docs`; do not edit. Each rule is explained in the",
        "[specification](reference/specification.md). *ext* marks what goes beyond the sources.",
        "A rule is *tested* when all of its sentences are; what is left out stands beside it.",
        "",
        f"{len(counted)} of {len(rules)} rules are tested{told}.",
    ]
    for family, content in families.items():
        lines += ["", f"## {family}: {content.title.lower()}", ""]
        if not content.due:
            lines += ["Not built yet.", ""]
        lines += ["| rule | says | state | tests |", "|---|---|---|---|"]
        lines += [_row(rule, marks) for rule in content.rules]
    return "\n".join(lines) + "\n"


def _row(rule: Rule, marks: list[Mark]) -> str:
    tests = dict.fromkeys((mark.file, mark.test) for mark in marks if mark.rule == rule.id)
    extends = {"no": "", "part": " *(ext in part)*", "whole": " *(ext)*"}[rule.ext]
    links = "<br>".join(_link(file, test) for file, test in tests)
    state = "not yet" if not tests else f"in part: {rule.left_out}" if rule.left_out else "tested"
    anchor = f"reference/specification.md#{rule.id.lower()}"
    return f"| [{rule.id}]({anchor}) | {rule.says}{extends} | {state} | {links} |"


def _link(file: str, test: str) -> str:
    name = file.removeprefix("tests/") + (f"::{test}" if test else "")
    return f"[{name}](../{file})"


def main() -> None:
    PAGE.write_text(render(read_families(), read_marks()), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
