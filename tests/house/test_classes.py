"""One thing has one name, classes stay small, and a module is worth its file."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.house.tree import SOURCE, Function, modules, name_of, tree_of

MOST_METHODS = 20
CRUMB = 40
"""Lines below which a module with one reader belongs to that reader."""

# A class, and why it may have more methods.
LARGE_CLASSES: dict[str, str] = {
    "ExpressionReader": "one method per rule of the grammar",
    "Trace": "one method per event",
    "PlainShow": "one method per event",
    "Progress": "one method per event",
    "Reader": "one method per type that a key of a playbook may have",
}

# A folder or a module, and why its short files stand by themselves.
SMALL_FILES: dict[str, str] = {
    "adapters": "one file per port, the same in each adapter",
    "keychain/providers": "one file per provider",
    "pipeline/backoff.py": "the arithmetic of pauses, beside the policy that uses it",
    "playbook/workload.py": "how a payload is laid over a workload is the playbook's to say",
}


def sources() -> list[Path]:
    return [path for path in modules() if path.is_relative_to(SOURCE)]


def classes() -> list[tuple[ast.ClassDef, Path]]:
    return [
        (node, path)
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    ]


def test_a_class_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for node, path in classes():
        places[node.name].append(name_of(path))
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_classes_have_few_methods() -> None:
    large = {
        node.name: methods
        for node, _ in classes()
        if (methods := sum(isinstance(below, Function) for below in node.body)) > MOST_METHODS
    }
    assert large.keys() <= LARGE_CLASSES.keys(), f"the counts are {large}"


def module_of(path: Path) -> str:
    return "noetl." + path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", ".")


def readers() -> dict[str, set[Path]]:
    """Who imports each module; a table that names it as text reads it too."""
    named = re.compile(r"\bnoetl(?:\.\w+)+")
    found: dict[str, set[Path]] = defaultdict(set)
    for path in sources():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                found[node.module].add(path)
                for alias in node.names:
                    found[f"{node.module}.{alias.name}"].add(path)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(path)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                for name in named.findall(node.value):
                    found[name] |= {path, SOURCE}
    return found


def test_a_module_is_worth_its_file() -> None:
    read_by = readers()
    crumbs = [
        name_of(path)
        for path in sources()
        if len(path.read_text("utf-8").splitlines()) < CRUMB
        and len(read_by[module_of(path)]) == 1
        and not path.relative_to(SOURCE).as_posix().startswith(tuple(SMALL_FILES))
    ]
    assert crumbs == [], "put it where it is read"


def test_every_excuse_is_needed() -> None:
    names = {node.name for node, _ in classes()}
    assert LARGE_CLASSES.keys() - names == set()
    assert [name for name in SMALL_FILES if not (SOURCE / name).exists()] == []
