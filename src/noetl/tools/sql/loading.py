"""How PostgreSQL's values are read: straight into what JSON can hold (OUT-3)."""

import base64
import re
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from psycopg import DataError, adapt, adapters, postgres
from psycopg.abc import Buffer
from psycopg.types.datetime import (
    DateLoader,
    TimeLoader,
    TimestampLoader,
    TimestamptzLoader,
    TimetzLoader,
)
from psycopg.types.string import ByteaLoader

from noetl.tools.refusal import json_of
from noetl.tools.sql.values import json_text, plain_decimal, plain_float


def _reading(read: Callable[[str], Any]) -> type[adapt.Loader]:
    """A loader by what it makes of the server's own spelling."""

    class SpelledLoader(adapt.Loader):
        def load(self, data: Buffer) -> Any:
            return read(bytes(data).decode())

    return SpelledLoader


class _Bytes(ByteaLoader):
    def load(self, data: Buffer) -> str:  # type: ignore[override]
        return base64.b64encode(super().load(bytes(data))).decode()


def _iso(stock: type[adapt.Loader]) -> type[adapt.Loader]:
    """ISO 8601; what Python's calendar cannot hold (infinity, BC) as the server spells it."""

    class Iso(stock):  # type: ignore[misc, valid-type]
        def load(self, data: Buffer) -> str:
            try:
                return str(super().load(data).isoformat())
            except DataError:
                return bytes(data).decode()

    return Iso


_AS_SPELLED = (
    *("uuid", "interval", "inet", "cidr", "record"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange"),
    *("tsmultirange", "tstzmultirange"),
)
_LOADERS: dict[str, type[adapt.Loader]] = {
    "numeric": _reading(lambda text: plain_decimal(Decimal(text))),
    "float4": _reading(lambda text: plain_float(float(text))),
    "float8": _reading(lambda text: plain_float(float(text))),
    "json": _reading(json_text),
    "jsonb": _reading(json_text),
    "bytea": _Bytes,
    "date": _iso(DateLoader),
    "time": _iso(TimeLoader),
    "timetz": _iso(TimetzLoader),
    "timestamp": _iso(TimestampLoader),
    "timestamptz": _iso(TimestamptzLoader),
    **dict.fromkeys(_AS_SPELLED, _reading(str)),
}


def json_adapters() -> adapt.AdaptersMap:
    """The stock adapters with the loaders above."""
    adapted = adapt.AdaptersMap(adapters)
    for name, loader in _LOADERS.items():
        adapted.register_loader(postgres.types[name].oid, loader)
    return adapted


_PLACE = re.compile(
    r"(?P<call>\bjsonb?_\w+\s*\(\s*)?%(?:%|(?:\((?P<name>[^)]*)\))?[sbt])(?P<cast>\s*::\s*jsonb?\b)?"
)
"""A placeholder with what tells that JSON is wanted there: a cast, or a function of JSON."""


@lru_cache(maxsize=512)
def json_places(text: str) -> frozenset[str | int]:
    """Names, or numbers from 0, of the parameters that the text takes as JSON."""
    places = [place for place in _PLACE.finditer(text) if not place.group().endswith("%%")]
    return frozenset(
        number if place["name"] is None else place["name"]
        for number, place in enumerate(places)
        if place["call"] or place["cast"]
    )


def bound(text: str, params: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any] | None:
    """Parameters as the driver takes them; None where there are none, so that `%` stays `%`."""
    if not params:
        return None
    wanted = json_places(text)
    if isinstance(params, dict):
        return {name: bindable(value, name in wanted) for name, value in params.items()}
    return [bindable(value, number in wanted) for number, value in enumerate(params)]


def bindable(value: Any, as_json: bool) -> Any:
    """
    A mapping is JSON. A list is an array, unless a mapping is among its elements or the text
    wants JSON. JSON goes as text of no type, so that json, jsonb and text all take it.
    """
    if isinstance(value, dict) or (isinstance(value, list) and (as_json or _holds_mapping(value))):
        return encoded(value)
    return value


def encoded(value: Any) -> str:
    return json_of(value, "a parameter cannot be sent as JSON").decode()


def _holds_mapping(value: list[Any]) -> bool:
    return any(isinstance(v, dict) or (isinstance(v, list) and _holds_mapping(v)) for v in value)
