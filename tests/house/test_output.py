"""Whatever the program prints for people goes through one door."""

import re

from tests.house.tree import SOURCE, name_of

DOORS = {
    "src/noetl/cli/output.py": 3,  # lines for people, JSON, and whole products
    "src/noetl/cli/main.py": 2,  # the last words of a command, and their JSON
    "src/noetl/cli/background/voice.py": 1,  # the log of a server or a worker
    "src/noetl/cli/lazy.py": 1,  # help
    "src/noetl/cli/export.py": 1,  # the exported bytes
    "src/noetl/cli/running/ending.py": 1,  # JSON
    "src/noetl/cli/tokens.py": 1,  # a new token, for programs
}
"""Who prints by himself, and how often."""


def test_lines_for_people_are_printed_by_print_line() -> None:
    """Data in a line could steer the terminal: `print_line` escapes what would."""
    printed = {
        name_of(path): len(re.findall(r"click\.(?:echo|secho)|(?<!\.)\bprint\(", text))
        for path in sorted((SOURCE / "cli").rglob("*.py"))
        if (text := path.read_text("utf-8"))
    }
    assert {name: number for name, number in printed.items() if number} == DOORS
