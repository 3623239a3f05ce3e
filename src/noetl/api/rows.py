"""Rows of the stores as they are shown, by the API and by the command line."""

from typing import Any, TypeVar

import msgspec

from noetl.api import types as t
from noetl.messages.envelope import timestamp
from noetl.ports.catalog import CatalogEntry

View = TypeVar("View", bound=msgspec.Struct)


def view_of(kind: type[View], row: msgspec.Struct, **more: Any) -> View:
    """What a row has of the fields of a view, its times as texts; `more` has others."""
    names = (name for name in kind.__struct_fields__ if name not in more and hasattr(row, name))
    fields = {name: getattr(row, name) for name in names}
    for name, value in fields.items():
        if name.endswith("_at") and value is not None:
            fields[name] = timestamp(value)
    return kind(**fields, **more)


def entry_of(entry: CatalogEntry) -> t.CatalogVersion:
    return view_of(t.CatalogVersion, entry, migrated=entry.original_digest is not None)
