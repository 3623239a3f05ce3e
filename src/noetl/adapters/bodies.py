"""What every store of bodies says about a body: its key, its checksum, its shape, its loss."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import msgspec

from noetl.errors import BodyLost
from noetl.messages.codec import decode_body
from noetl.messages.reference import Reference

EXECUTION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,199}")
KEY = re.compile(rf"({EXECUTION_ID.pattern})/([0-9a-f]{{64}})")

SHAPES = {b"{": "object", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
"""By the first character of the JSON; a list says its length too, the rest are numbers."""


def checked_id(execution_id: str) -> str:
    """The id, if it can be part of a path that stays where it belongs."""
    if EXECUTION_ID.fullmatch(execution_id) is None:
        raise ValueError(
            f"{execution_id!r} is no id of an execution: expected letters, digits, '_', '.', '-'"
        )
    return execution_id


def describe(body: bytes) -> str:
    """The shape of a body, for people and for lists: `list[1000]`, `object`, `string`."""
    first = body.lstrip()[:1]
    if first == b"[":
        return f"list[{len(msgspec.json.decode(body, type=list[msgspec.Raw]))}]"
    return SHAPES.get(first, "number")


def shape_of(first: bytes) -> str:
    """The shape as far as the first piece of a body tells."""
    start = first.lstrip()[:1]
    return "list" if start == b"[" else SHAPES.get(start, "number")


def lost(reference: Reference, why: str) -> NoReturn:
    """The body cannot be had (RES-4)."""
    raise BodyLost(
        f"the body {reference.store}:{reference.key} ({reference.size} bytes) {why}; "
        "restore it from a copy, or run the step again"
    )


def opened(reference: Reference, body: bytes) -> Any:
    """The value, once the body is known to be the one that was stored (RES-2)."""
    if len(body) != reference.size:
        lost(reference, f"has {len(body)} bytes now")
    if hashlib.sha256(body).hexdigest() != reference.checksum:
        lost(reference, "does not match its checksum")
    try:
        return decode_body(body, reference)
    except msgspec.DecodeError as broken:
        lost(reference, f"is no JSON: {broken}")


def verified(reference: Reference, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces as they come; after the last it is known whether they were the body stored."""
    size, checksum = 0, hashlib.sha256()
    for piece in pieces:
        size += len(piece)
        checksum.update(piece)
        yield piece
    if size != reference.size:
        lost(reference, f"has {size} bytes now")
    if checksum.hexdigest() != reference.checksum:
        lost(reference, "does not match its checksum")
