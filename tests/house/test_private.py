"""One function makes what NoETL keeps, and one starts it: others would forget who is around."""

import re

from tests.house.tree import SOURCE

MAKES = re.compile(r"\.mkdir\(|\bmakedirs\(|\bO_CREAT\b|\.touch\(")
FOR_TASKS = (
    "tools/container/",
    "tools/process/",
    "tools/quantum/",
    "tools/paths.py",
    "cli/init.py",
)
"""What a task or a user asked for lies where they say, or in a scratch folder."""


def test_folders_and_files_are_made_by_one_module() -> None:
    found = [
        f"{name}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        if (name := path.relative_to(SOURCE).as_posix()) != "private.py"
        if not name.startswith(FOR_TASKS)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if MAKES.search(line)
    ]
    assert found == []


def test_one_function_says_how_the_program_starts_itself() -> None:
    """Python looks for modules in the folder that it is called in, unless it is told not to."""
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in sorted(SOURCE.rglob("*.py"))
        if '"-m", "noetl"' in path.read_text("utf-8")
    ]
    assert found == ["tools/children.py"]
