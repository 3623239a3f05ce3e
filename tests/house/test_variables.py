"""Variables of ours are read in one place, which keeps those that open something from tasks."""

import ast

from tests.house.tree import ROOT, tree_of

ONE = "src/noetl/tools/environment.py"
SOURCES = sorted(path for path in (ROOT / "src" / "noetl").rglob("*.py"))
FREE = {
    "src/noetl/cli/browser.py": "whether there is a screen",
    "src/noetl/node/local.py": "the name of whoever runs it",
    "src/noetl/cli/terminal.py": "NO_COLOR and TERM",
    "src/noetl/cli/running/ending.py": "TERM",
    "src/noetl/cli/main.py": "the shell's own word for completion",
    "src/noetl/tools/sql/duck_processes.py": "HOME and TZ, which DuckDB reads",
    "src/noetl/tools/process/inside/kept.py": "inside a child, which has none of ours",
    "src/noetl/tools/python/libs.py": "what installers of packages read",
    "src/noetl/adapters/objects/gcs.py": "the emulator of Google's library",
    "src/noetl/keychain/keychain.py": "what a playbook may name: never ours",
    "src/noetl/tools/container/tool.py": "what a container engine reads",
}
"""File → what it reads of `os.environ` that is not ours."""


def reads(tree: ast.AST) -> bool:
    """Whether `os.environ`, `os.getenv` or their like is used."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("environ", "environb", "getenv", "getenvb")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
        for node in ast.walk(tree)
    )


def ours(tree: ast.AST) -> list[str]:
    """Names of ours that an expression holds which reads the environment."""
    return sorted(
        {
            below.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Call | ast.Subscript | ast.Compare) and reads(node)
            for below in ast.walk(node)
            if isinstance(below, ast.Constant)
            and isinstance(below.value, str)
            and below.value.startswith("NOETL_")
        }
    )


def test_the_environment_is_read_where_it_is_known_to_be() -> None:
    found = {str(path.relative_to(ROOT)) for path in SOURCES if reads(tree_of(path))}
    assert found - {ONE} == set(FREE)


def test_no_variable_of_ours_is_read_elsewhere() -> None:
    assert {file: ours(tree_of(ROOT / file)) for file in FREE} == {file: [] for file in FREE}


def test_nobody_imports_it_by_name() -> None:
    imports = [
        f"{path.relative_to(ROOT)}: {alias.name}"
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ImportFrom) and node.module == "os"
        for alias in node.names
        if alias.name in ("environ", "environb", "getenv")
    ]
    assert imports == []
