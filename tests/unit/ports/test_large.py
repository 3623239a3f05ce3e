"""Large values are read and written in steps, and come out as if at once."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.messages.codec import encode
from noetl.messages.reference import Reference
from noetl.ports import large

LEAVES = st.none() | st.integers(-9, 9) | st.floats(-1, 1) | st.text('a,]}["\\ {', max_size=9)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=60,
)


@given(VALUES, st.sampled_from([1, 3, 10]))
def test_a_value_is_the_same_read_in_steps(value: Any, step: int) -> None:
    text = msgspec.json.encode(value)
    spaced = msgspec.json.format(text, indent=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "STEP", step)
        assert large.decoded(text) == value
        assert large.decoded(spaced) == value


@given(VALUES)
def test_a_value_is_the_same_written_in_steps(value: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "LARGE", 1)
        patch.setattr(large, "ROWS", 2)
        assert asyncio.run(large.encoded(value)) == encode(value)


@pytest.mark.parametrize(
    "value", [Reference("files", "e1/a", 1, "a"), {"$ref": 1}, {"$refs": [], "$value": 1}]
)
def test_references_are_written_as_they_are(value: Any) -> None:
    rows = [{"a": value}] * 3000
    assert asyncio.run(large.encoded(rows)) == encode(rows)


@pytest.mark.parametrize("text", ["[%s,]", "[%s", "[%s,,1]", "[%s}", "[%s]]", "[%s] 1"])
def test_what_is_no_json_stays_none(text: str) -> None:
    broken = (text % ",".join(["1"] * 400_000)).encode()
    with pytest.raises(msgspec.DecodeError):
        large.decoded(broken)
