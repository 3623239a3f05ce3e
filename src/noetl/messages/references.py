"""The references that a value holds, and lists that lie in chunks (LOOP-9)."""

from collections.abc import Iterator
from typing import Any

import msgspec

from noetl.errors import BodyLost
from noetl.messages.reference import Reference, reference_of


def references_in(value: Any) -> Iterator[Reference]:
    """Every reference in a value, whatever it is nested in."""
    if isinstance(value, Reference):
        yield value
    elif isinstance(value, dict):
        for below in value.values():
            yield from references_in(below)
    elif isinstance(value, list | tuple):
        for below in value:
            yield from references_in(below)
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            yield from references_in(getattr(value, field))


def in_chunks(reference: Reference) -> bool:
    return is_chunked(reference.schema_hint)


def is_chunked(schema_hint: str | None) -> bool:
    return (schema_hint or "").startswith("chunks[")


def chunks_of(manifest: Any) -> list[Reference]:
    """The chunks of a list, as its body names them; raises BodyLost where it names none."""
    named = manifest.get("chunks") if isinstance(manifest, dict) else None
    found = [reference_of(fields) for fields in named] if isinstance(named, list) else [None]
    chunks = [one for one in found if one is not None]
    if len(chunks) != len(found):
        raise BodyLost("a list that should be stored in chunks names none; run the step again")
    return chunks


def joined(parts: list[list[Any]]) -> list[Any]:
    return [value for part in parts for value in part]
