"""No coroutine of a server reads a playbook itself: a large one would stop everybody (SRV)."""

import ast

from tests.house.tree import SOURCE, name_of

READS = frozenset(
    {
        *("load_kept", "load_valid", "load_document", "examine", "make_plan", "read_yaml"),
        *("migrate", "migrated_from", "plan_from", "plan_of_new", "inputs_from", "is_trigger"),
        *("parse_trigger", "outlined", "outlined_text", "drawn"),
    }
)
"""Functions that read or plan a whole text: `read_off_loop` or `DRAFTS.read` calls them."""
PLANES = ("api", "node", "server", "ports")


def called_in(coroutine: ast.AsyncFunctionDef) -> list[ast.Call]:
    """By a plain name; a parameter of that name is something else."""
    given = {one.arg for one in (*coroutine.args.args, *coroutine.args.kwonlyargs)}
    return [
        call
        for call in ast.walk(coroutine)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id in READS - given
    ]


def test_no_coroutine_reads_a_playbook_itself() -> None:
    found = [
        f"{name_of(path)}:{call.lineno}"
        for plane in PLANES
        for path in sorted((SOURCE / plane).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.AsyncFunctionDef)
        for call in called_in(node)
    ]
    assert found == []
