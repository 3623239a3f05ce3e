"""One function makes what NoETL keeps: nothing else makes a folder, or a file with a mode."""

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
