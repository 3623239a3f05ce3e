"""Values come back as they went: data that looks like a reference, references in keyed tables."""

from typing import Any

import msgspec
import pytest

from noetl.messages.codec import decode, decode_events, encode, encode_events
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


NO_TEXTS: list[Any] = [["x"], 5, None, {}]
NO_SIZES: list[Any] = ["big", -1, 1.5, True, 2**60, None]
LATER = {"result": "later"}


def with_fields(**fields: Any) -> dict[str, Any]:
    return {"$ref": TRUE.fields() | fields}


@pytest.mark.rule("RES-1")
@pytest.mark.parametrize(
    "value",
    [
        *(with_fields(key=key) for key in NO_TEXTS),
        *(with_fields(size=size) for size in NO_SIZES),
        *(with_fields(checksum=5), with_fields(store=[]), with_fields(schema_hint=5)),
        *(with_fields(range={}), with_fields(more=1), with_fields(sealed="x"), {"$ref": [1]}),
        *({"$secret": {"id": 5, "sealed": "x"}}, {"$secret": {"id": "x", "sealed": ["x"]}}),
        *({"$secret": {"id": "x"}}, {"$secret": "x"}),
    ],
)
def test_what_is_not_written_as_references_are_is_data(value: Any) -> None:
    """Whoever reports it: views, exports and decisions count with the fields of a reference."""
    text = msgspec.json.encode({"name": "step.done", "step": "s", "step_run_id": "1.0"} | LATER)
    (read,) = decode_events(b"[" + text.replace(b'"later"', msgspec.json.encode(value)) + b"]")
    assert read.result == value  # type: ignore[attr-defined]
    assert decode_events(encode_events([read])) == [read]
    assert decode(msgspec.json.encode([value])) == [value]
