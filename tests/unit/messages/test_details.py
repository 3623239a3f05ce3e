"""What of a JSON text takes long to read is counted, in whatever pieces it comes."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.messages.details import Details, TooDetailed

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a",\\[{}]:\n0'),
    lambda below: st.lists(below) | st.dictionaries(st.text(alphabet='",\\[{a'), below),
    max_leaves=20,
)


def values_in(value: object) -> int:
    """Commas, and beginnings of lists and mappings."""
    if isinstance(value, dict):
        return 1 + max(0, len(value) - 1) + sum(map(values_in, value.values()))
    if isinstance(value, list):
        return 1 + max(0, len(value) - 1) + sum(map(values_in, value))
    return 0


def counted(text: bytes, piece: int, values: int) -> None:
    details = Details(values)
    for start in range(0, len(text), piece):
        details.count(text[start : start + piece])


@pytest.mark.rule("SRV-1")
@given(JSON, st.integers(1, 9))
def test_what_is_inside_of_strings_is_no_value(value: object, piece: int) -> None:
    text, count = msgspec.json.encode(value), values_in(value)
    counted(text, piece, count)
    if count:
        with pytest.raises(TooDetailed):
            counted(text, piece, count - 1)
