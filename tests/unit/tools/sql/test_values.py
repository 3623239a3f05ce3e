"""What each value becomes in JSON: never rounded, never lost."""

import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.tools.sql.values import distinct, plain, plain_decimal


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("é", "é"),
        (7, 7),
        (2**64, "18446744073709551616"),
        (-(2**63) - 1, "-9223372036854775809"),
        (1.5, 1.5),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (Decimal("12"), 12),
        (Decimal("12.50"), 12.5),
        (Decimal("0.1"), 0.1),
        (Decimal("0.1234567890123456789"), "0.1234567890123456789"),
        (Decimal("1E+400"), "1E+400"),
        (Decimal("NaN"), "NaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05+00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(days=1, seconds=2, microseconds=500_000), "P1DT2.5S"),
        (timedelta(seconds=-1), "-P0DT1S"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (b"\x00\xff", "AP8="),
        (bytearray(b"a"), "YQ=="),
        ([Decimal("1"), (2, b"")], [1, [2, ""]]),
        ({"a": Decimal("1.5"), 2: None}, {"a": 1.5, "2": None}),
        (complex(1, 2), "(1+2j)"),
    ],
)
def test_values_become_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
    assert type(plain(value)) is type(expected)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_no_decimal_is_ever_rounded(value: Decimal) -> None:
    kept = plain_decimal(value)
    assert Decimal(repr(kept) if isinstance(kept, float) else kept) == value


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["id", "id", "id"], ["id", "id_2", "id_3"]),
        (["id_2", "id", "id"], ["id_2", "id", "id_3"]),
        ([], []),
    ],
)
def test_no_column_hides_another(names: list[str], expected: list[str]) -> None:
    assert distinct(names) == expected
