"""How PostgreSQL's values are read: straight into what JSON can hold (OUT-3)."""

import base64
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import msgspec
from psycopg import DataError, adapt, adapters, postgres
from psycopg.abc import Buffer
from psycopg.types.datetime import (
    DateLoader,
    TimeLoader,
    TimestampLoader,
    TimestamptzLoader,
    TimetzLoader,
)
from psycopg.types.json import Jsonb
from psycopg.types.string import ByteaLoader

from noetl.tools.sql.values import json_text, plain_decimal, plain_float


class _Text(adapt.Loader):
    """The server's own spelling."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


class _Number(adapt.Loader):
    def load(self, data: Buffer) -> int | float | str:
        return plain_decimal(Decimal(bytes(data).decode()))


class _Float(adapt.Loader):
    def load(self, data: Buffer) -> float | str:
        return plain_float(float(bytes(data)))


class _Json(adapt.Loader):
    def load(self, data: Buffer) -> Any:
        return json_text(bytes(data).decode())


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


_LOADERS: dict[str, type[adapt.Loader]] = {
    "numeric": _Number,
    "float4": _Float,
    "float8": _Float,
    "json": _Json,
    "jsonb": _Json,
    "bytea": _Bytes,
    "date": _iso(DateLoader),
    "time": _iso(TimeLoader),
    "timetz": _iso(TimetzLoader),
    "timestamp": _iso(TimestampLoader),
    "timestamptz": _iso(TimestamptzLoader),
    **dict.fromkeys(("uuid", "interval", "inet", "cidr", "record"), _Text),
    **dict.fromkeys(
        ("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"), _Text
    ),
    **dict.fromkeys(("int4multirange", "int8multirange", "nummultirange", "datemultirange"), _Text),
    **dict.fromkeys(("tsmultirange", "tstzmultirange"), _Text),
}


def json_adapters() -> adapt.AdaptersMap:
    """The stock adapters with the loaders above."""
    adapted = adapt.AdaptersMap(adapters)
    for name, loader in _LOADERS.items():
        adapted.register_loader(postgres.types[name].oid, loader)
    return adapted


def bound(params: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any] | None:
    """Parameters as the driver takes them; None where there are none, so that `%` stays `%`."""
    if not params:
        return None
    if isinstance(params, dict):
        return {name: _bindable(value) for name, value in params.items()}
    return [_bindable(value) for value in params]


def _bindable(value: Any) -> Any:
    """Mappings are jsonb; lists are arrays unless a mapping is among their elements."""
    if isinstance(value, dict) or (isinstance(value, list) and _holds_mapping(value)):
        return Jsonb(value, dumps=_dumps)
    return value


def _holds_mapping(value: list[Any]) -> bool:
    return any(isinstance(v, dict) or (isinstance(v, list) and _holds_mapping(v)) for v in value)


_dumps: Callable[[Any], bytes] = msgspec.json.encode
