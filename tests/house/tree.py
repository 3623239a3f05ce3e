"""Which files the house rules look at, and what stands in them."""

import ast
import gc
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "noetl"
CODE_FOLDERS = ("src", "tests", "bench", "fuzz", "examples")
FOREIGN = {"__pycache__", "build", "dist", "node_modules"}
TEXT_SUFFIXES = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".sql",
    ".txt",
    ".json",
    ".lock",
    ".css",
} | {".ts", ".svelte", ".html"}
TEXT_NAMES = {"Makefile", "run", ".gitignore"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def name_of(path: Path) -> str:
    """The path from the root of the repository, as it is written in messages and allow-lists."""
    return path.relative_to(ROOT).as_posix()


def modules() -> list[Path]:
    """Every Python file of the project."""
    found = [path for folder in CODE_FOLDERS for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in found if not FOREIGN & set(path.parts))


def texts() -> list[Path]:
    """Every file of the project that people read, code included."""
    return sorted(path for path in _walk(ROOT) if _is_text(path))


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        hidden = path.name.startswith(".") and path.name not in {".ci", ".gitignore"}
        # uv.lock holds the address of a package index and is not kept (decision 0022).
        # What `make ui` built is in no version control either.
        if hidden or path.name in FOREIGN or path.name == "uv.lock" or path == SOURCE / "ui":
            continue
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def _is_text(path: Path) -> bool:
    return path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES


def pages() -> list[Path]:
    """Every Markdown page."""
    return [path for path in texts() if path.suffix == ".md"]


@cache
def tree_of(path: Path) -> ast.Module:
    """Made once in each process of a run: most rules look at all files, and change none."""
    tree = parsed(path.read_text("utf-8"), str(path))
    gc.freeze()  # millions of nodes that nobody throws away need not be looked through again
    return tree


def parsed(text: str, name: str = "<text>") -> ast.Module:
    """The tree of a text; a thread of another test that makes one too costs a second attempt."""
    try:
        return ast.parse(text, filename=name)
    except SystemError:  # "AST constructor recursion depth mismatch": one depth for all threads
        return ast.parse(text, filename=name)


def functions_of(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def lines_with(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Each place where the pattern occurs, as `file:line: text`."""
    return [
        f"{name_of(path)}:{number}: {line.strip()[:100]}"
        for path in paths
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if pattern.search(line)
    ]
