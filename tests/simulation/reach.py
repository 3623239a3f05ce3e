"""
Which `except` and which refusal of server and worker does some seed reach?

A point is named by its file, its function and its text, so that the list in `reached.txt` stays
true when lines move. `make simulate-reach` runs seeds, and writes what they reached.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import noetl

SOURCE = Path(noetl.__file__).parent
PACKAGES = ("server", "worker")
LIST = Path(__file__).with_name("reached.txt")
TAKEN = ("recorded", "known")
"""Verdicts that refuse nothing."""


class Point(NamedTuple):
    """A place in the source, and the line that runs when it is reached."""

    name: str
    file: str
    line: int


def points() -> list[Point]:
    found: list[Point] = []
    for package in PACKAGES:
        for file in sorted((SOURCE / package).rglob("*.py")):
            found += _in_file(file)
    return found


def _in_file(file: Path) -> Iterator[Point]:
    seen: Counter[str] = Counter()
    tree = ast.parse(file.read_text())
    for where, node in _walk(tree, ""):
        said, line = _refusal(node)
        if said:
            name = f"{file.relative_to(SOURCE)} {where}: {said}"
            seen[name] += 1
            number = f" #{seen[name]}" if seen[name] > 1 else ""
            yield Point(name + number, str(file), line)


def _walk(node: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    for below in ast.iter_child_nodes(node):
        named = isinstance(below, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inside = f"{where}.{below.name}".lstrip(".") if named else where  # type: ignore[attr-defined]
        yield where, below
        yield from _walk(below, inside)


def _refusal(node: ast.AST) -> tuple[str, int]:
    """What it refuses or catches, in short; nothing where it does neither."""
    match node:
        case ast.ExceptHandler():
            caught = "" if node.type is None else f" {ast.unparse(node.type)}"
            return f"except{caught}", node.body[0].lineno
        case ast.Raise(exc=ast.AST() as fault):
            what = fault.func if isinstance(fault, ast.Call) else fault
            return f"raise {ast.unparse(what)}", node.lineno
        case ast.Call(func=ast.Name(id="Verdict"), args=[ast.Constant(value=str(state)), *_]):
            return ("", 0) if state in TAKEN else (f"Verdict {state}", node.lineno)
        case ast.Return(value=ast.Name(id="REFUSED")):
            return "return REFUSED", node.lineno
    return "", 0


class Tracer:
    """Notes which of the points were reached while it is on."""

    def __init__(self, wanted: Iterable[Point]) -> None:
        self._lines: dict[str, dict[int, list[str]]] = {}
        for point in wanted:
            self._lines.setdefault(point.file, {}).setdefault(point.line, []).append(point.name)
        self._codes: dict[Any, dict[int, list[str]] | None] = {}
        self.reached: set[str] = set()

    def __enter__(self) -> "Tracer":
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _called(self, frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        if code not in self._codes:
            lines = self._lines.get(code.co_filename, {})
            inside = {line for _, _, line in code.co_lines() if line is not None}
            self._codes[code] = {n: lines[n] for n in lines if n in inside} or None
        return None if self._codes[code] is None else self._line

    def _line(self, frame: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            names = (self._codes[frame.f_code] or {}).get(frame.f_lineno)
            if names:
                self.reached.update(names)
        return self._line


def listed() -> dict[str, str]:
    """Point → `reached`, or why no seed reaches it."""
    found = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, why = line.partition(" | ")
            found[name] = why
    return found


def write(reached: set[str]) -> list[str]:
    """Keep the list; what was reached once stays reached. The answer is what has no reason yet."""
    known = listed() if LIST.exists() else {}
    lines = ["# Written by `make simulate-reach`: points of server and worker that seeds reach."]
    lines.append("# One that no seed reaches has its reason here, written by hand.")
    without = []
    for point in points():
        why = "reached" if point.name in reached else known.get(point.name, "")
        if not why:
            without.append(point.name)
        lines.append(f"{point.name} | {why}")
    LIST.write_text("\n".join(lines) + "\n")
    return without
