"""What a bucket can do, whoever keeps it; from inputs to the bytes of an object, and back."""

import mimetypes
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from noetl.kinds.storage import ObjectInputs
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.http.body import Body, read_body
from noetl.tools.http.forms import Form, form_of
from noetl.tools.refusal import Refusal
from noetl.tools.streams import from_base64, json_in, text_in
from noetl.tools.tool import ToolCall

_UNTOLD = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Content types that stores give when nobody told one."""
_FORMS: dict[str, Form] = {"json": "json", "text": "text", "base64": "binary"}


class StoredObject(msgspec.Struct, frozen=True, kw_only=True):
    """What a store says about one object; None where it does not say."""

    key: str
    size: int | None = None
    etag: str | None = None
    last_modified: datetime | None = None
    content_type: str | None = None

    def fields(self) -> dict[str, Any]:
        """As it stands in results."""
        moment = self.last_modified and self.last_modified.isoformat()
        return {**msgspec.structs.asdict(self), "last_modified": moment}


Payload = bytes | Path | AsyncIterator[bytes]
"""What is written: at hand, in a file, or in parts whose end nobody knows yet."""


class Bucket(Protocol):
    """
    Contract: a method either does the whole or raises what `failure_of` of its kind can name;
    cancelling it closes the request; nothing of a `write` is visible before its end.
    """

    async def head(self, key: str) -> StoredObject: ...

    async def read(self, key: str) -> tuple[StoredObject, AsyncIterator[bytes]]: ...

    async def write(self, key: str, payload: Payload, content_type: str) -> StoredObject: ...

    def listed(self, prefix: str | None) -> AsyncIterator[StoredObject]: ...

    async def copy(self, source: str, key: str) -> StoredObject: ...

    async def remove(self, key: str) -> None: ...


async def payload_of(call: ToolCall[ObjectInputs], results: ResultStore) -> tuple[Payload, str]:
    """What is to be put, with its content type."""
    inputs = call.inputs
    if (inputs.body is None) == (inputs.path is None):
        raise Refusal("input", "'put' needs either 'body' or 'path'")
    guessed = mimetypes.guess_type(inputs.key or "")[0]
    if inputs.path is not None:
        path = call.path(inputs.path)
        if not path.is_file():
            raise Refusal("not_found", f"there is no file {path} to put")
        return path, inputs.content_type or guessed or "application/octet-stream"
    pieces, told = _written(inputs, results)
    payload: Payload = pieces
    if not isinstance(inputs.body, Reference):  # at hand: one request
        payload = b"".join([piece async for piece in pieces])
    return payload, inputs.content_type or told or guessed or "application/octet-stream"


def _written(inputs: ObjectInputs, results: ResultStore) -> tuple[AsyncIterator[bytes], str | None]:
    text = text_in(inputs.body, results) if inputs.encoding != "json" else None
    if inputs.encoding == "base64":
        if text is None:
            raise Refusal("input", "'encoding' is base64, but 'body' is not text")
        return from_base64(text, "body"), None
    if text is not None:
        return (part.encode() async for part in text), "text/plain; charset=utf-8"
    if inputs.encoding == "text":
        raise Refusal("input", "'encoding' is text, but 'body' is none")
    return json_in(inputs.body, results), "application/json"


async def value_of(
    found: StoredObject,
    pieces: AsyncIterator[bytes],
    call: ToolCall[ObjectInputs],
    results: ResultStore,
) -> Body:
    """What the task says that it is, else the content type, the name, or what it looks like."""
    told, _, parameters = (found.content_type or "").partition(";")
    content_type = told.strip().lower()
    charset = parameters.partition("charset=")[2].strip(' "') or None
    if content_type in _UNTOLD:
        content_type = mimetypes.guess_type(found.key)[0] or ""

    def form(head: bytes) -> Form:
        encoding = call.inputs.encoding
        return form_of(content_type, head) if encoding is None else _FORMS[encoding]

    body = await read_body(pieces, form, charset, call, results)
    if body.fault is not None:
        raise Refusal("decode", f"{found.key}: {body.fault}")
    return body
