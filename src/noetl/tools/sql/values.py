"""What a value of a database is in JSON: a number where that is exact, otherwise text."""

import base64
import math
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""Integers that JSON encoders keep as they are; others become text."""


def plain_int(value: int) -> int | str:
    return value if SMALLEST <= value <= LARGEST else str(value)


def plain_float(value: float) -> float | str:
    """JSON knows neither NaN nor infinity: they become PostgreSQL's words for them."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain_decimal(value: Decimal) -> int | float | str:
    """A number if it comes back the same, else its digits as text: nothing is ever rounded."""
    if not value.is_finite():
        return plain_float(float(value))
    if value.as_tuple().exponent == 0:
        return plain_int(int(value))
    near = float(value)
    return near if math.isfinite(near) and Decimal(repr(near)) == value else str(value)


def plain_span(value: timedelta) -> str:
    """ISO 8601, in days and seconds."""
    sign = "-" if value < timedelta() else ""
    span = abs(value)
    seconds = f"{span.seconds + span.microseconds / 1_000_000:.6f}".rstrip("0").rstrip(".")
    return f"{sign}P{span.days}DT{seconds}S"


def json_text(text: str | None) -> Any:
    """The value of a JSON column; as text where a number in it is too large for any float."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def plain(value: Any) -> Any:
    """Any value that a driver returns, as JSON can hold it."""
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    known = _PLAIN.get(kind)
    if known is not None:
        return known(value)
    if isinstance(value, dict):
        return {
            key if isinstance(key, str) else str(plain(key)): plain(value[key]) for key in value
        }
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value)


_PLAIN: dict[type, Callable[[Any], Any]] = {
    int: plain_int,
    float: plain_float,
    Decimal: plain_decimal,
    datetime: datetime.isoformat,
    date: date.isoformat,
    time: time.isoformat,
    timedelta: plain_span,
    UUID: str,
    bytes: lambda value: base64.b64encode(value).decode(),
    bytearray: lambda value: base64.b64encode(value).decode(),
    memoryview: lambda value: base64.b64encode(value).decode(),
}


def distinct(names: Iterable[str]) -> list[str]:
    """Column names; the second `id` becomes `id_2`, so that no column hides another."""
    seen: list[str] = []
    for name in names:
        number, unique = 2, name
        while unique in seen:
            unique, number = f"{name}_{number}", number + 1
        seen.append(unique)
    return seen


def quoted(text: str) -> str:
    """As a text of SQL."""
    return "'" + text.replace("'", "''") + "'"
