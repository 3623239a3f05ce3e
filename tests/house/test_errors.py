"""Every error of the log is made in one place, so that none lacks a field (OUT-1)."""

import ast

from tests.house.tree import modules, name_of, tree_of

MADE_IN = "src/noetl/messages/outcome.py"

# Files that make one by hand, and why they may.
BY_HAND = {
    "src/noetl/tools/process/inside/answer.py": "runs in the child, where there is no noetl",
}


def test_errors_are_made_by_make_error() -> None:
    found = {
        name_of(path)
        for path in modules()
        if name_of(path).startswith("src/")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Dict) and {"kind", "message"} <= keys_of(node)
    }
    assert found == {MADE_IN, *BY_HAND}, "use `make_error` of noetl.messages.outcome"


def keys_of(node: ast.Dict) -> set[str]:
    return {
        key.value
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
