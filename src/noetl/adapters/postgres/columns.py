"""Values as PostgreSQL can keep them, and rows as it is sent them: one array for each column."""

from typing import Any


def storable(value: Any) -> Any:
    """Text without what PostgreSQL cannot keep in one: U+0000 and halves of surrogate pairs."""
    if not isinstance(value, str) or (value.isascii() and "\0" not in value):
        return value
    return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def transposed(rows: list[tuple[Any, ...]], width: int) -> list[Any]:
    """One array for each column."""
    return list(zip(*rows, strict=True)) if rows else [()] * width
