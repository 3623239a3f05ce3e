"""The statements of the .sql files, by name, and the migrations in their order."""

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def load(text: str) -> dict[str, str]:
    """The statements of a file: each begins with `-- name: <name>`."""
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], (part.strip() for part in parts[2::2]), strict=True))


SQL = load((FOLDER / "statements.sql").read_text("utf-8")) | load(
    (FOLDER / "registers.sql").read_text("utf-8")
)
MIGRATIONS = [
    path.read_text("utf-8") for path in sorted((FOLDER / "migrations").glob("[0-9]*.sql"))
]
"""The n-th leads from format n - 1 to format n; one that was released never changes."""
