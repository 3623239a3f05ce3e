"""How large a value is: told from its JSON, and yet what walking through it comes to (LOOP-9)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.messages import size
from noetl.messages.reference import Reference

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
CONTAINERS = st.recursive(
    st.lists(SCALARS, max_size=4) | st.dictionaries(st.text(), SCALARS, max_size=4),
    lambda below: (
        st.lists(below | SCALARS, max_size=4)
        | st.dictionaries(st.text(), below | SCALARS, max_size=4)
    ),
    max_leaves=20,
)
REFERENCE = Reference(store="files", key="k" * 64, size=10, checksum="k" * 64)


def walked(value: Any) -> int:
    """What a value counts, by its definition."""
    if isinstance(value, dict):
        return sum(4 + len(key) + counted(below) for key, below in value.items())
    return sum(1 + counted(below) for below in value)


def counted(value: Any) -> int:
    if isinstance(value, dict | list):
        return walked(value)
    return len(value) + 3 if isinstance(value, str) else 8


@given(CONTAINERS)
def test_a_value_weighs_what_walking_through_it_comes_to(value: Any) -> None:
    assert size.rough_size(value) == 2 + walked(value)


@pytest.mark.parametrize(
    "value",
    [[], {}, [[]], [{}], [""], {"": ""}, ["{}", "[,:]"], [{"a": []}, -1.5e-7, None], ["é€😀"]],
)
def test_what_is_empty_or_looks_like_a_bracket_is_no_other_weight(value: Any) -> None:
    assert size.rough_size(value) == 2 + walked(value)


@pytest.mark.parametrize("value", [['"'], ["\\"], [REFERENCE], {"$": 1}, ["a\nb"]])
def test_what_stands_in_json_otherwise_is_walked_through(value: Any) -> None:
    assert size._written_size(value) is None
    assert size.rough_size(value) == 2 + walked(value)


def test_of_very_many_values_the_rest_is_estimated() -> None:
    assert size.rough_size([1] * (size.PATIENCE - 1)) == 2 + 9 * (size.PATIENCE - 1)
    assert size.rough_size([1] * 10 * size.PATIENCE) > size.PATIENCE
