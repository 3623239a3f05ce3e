"""Values come back as they went: data that looks like a reference, references in keyed tables."""

from typing import Any

import msgspec
import pytest

from noetl.messages.codec import decode, encode
from noetl.messages.reference import Reference

TRUE = Reference("files", f"x1/{'0' * 64}", 5, "0" * 64)
FALSE = {"$ref": {"store": "files"}}


class Table(msgspec.Struct):
    """Like the table of a loop's iterations."""

    rows: dict[int, Any]


@pytest.mark.rule("RES-1")
@pytest.mark.parametrize(
    "value",
    [
        TRUE,
        [TRUE, FALSE],
        {"true": TRUE, "false": FALSE},
        FALSE,
        {"$refs": ["$ref"], "$value": 1},
        {"$refs": [], "$value": FALSE},
        {"$refs": TRUE, "$value": FALSE},
    ],
)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize("rows", [{1: TRUE}, {1: TRUE, 2: FALSE}, {1: FALSE}, {1: 2}])
def test_numbers_as_keys_stay_numbers(rows: dict[int, Any]) -> None:
    assert decode(encode(Table(rows)), Table) == Table(rows)
