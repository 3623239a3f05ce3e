"""From inputs to the bytes of an object, and from its bytes to a value, a reference or a file."""

import base64
import mimetypes
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from noetl.kinds.storage import ObjectInputs
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.http.forms import Form, Undecodable, form_of, json_of, spelling_of, text_of
from noetl.tools.refusal import Refusal
from noetl.tools.spill import finish, spill
from noetl.tools.storage.bucket import Payload, StoredObject
from noetl.tools.streams import from_base64, json_in, text_in
from noetl.tools.tool import ToolCall

_UNTOLD = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Content types that stores give when nobody told one."""
_FORMS: dict[str, Form] = {"json": "json", "text": "text", "base64": "binary"}


async def payload_of(call: ToolCall[ObjectInputs], results: ResultStore) -> tuple[Payload, str]:
    """What is to be put, with its content type."""
    inputs = call.inputs
    if (inputs.body is None) == (inputs.path is None):
        raise Refusal("input", "'put' needs either 'body' or 'path'")
    guessed = mimetypes.guess_type(inputs.key or "")[0]
    if inputs.path is not None:
        return existing(call.path(inputs.path)), (
            inputs.content_type or guessed or "application/octet-stream"
        )
    pieces, told = _written(inputs, results)
    payload: Payload = pieces
    if not isinstance(inputs.body, Reference):  # at hand: one request
        payload = b"".join([piece async for piece in pieces])
    return payload, inputs.content_type or told or guessed or "application/octet-stream"


def _written(inputs: ObjectInputs, results: ResultStore) -> tuple[AsyncIterator[bytes], str | None]:
    text = text_in(inputs.body, results) if inputs.encoding != "json" else None
    if inputs.encoding == "base64":
        if text is None:
            raise Refusal("input", "'encoding' is base64, but 'body' is no text")
        return from_base64(text, "body"), None
    if text is not None:
        return (part.encode() async for part in text), "text/plain; charset=utf-8"
    if inputs.encoding == "text":
        raise Refusal("input", "'encoding' is text, but 'body' is none")
    return json_in(inputs.body, results), "application/json"


def existing(path: Path) -> Path:
    if not path.is_file():
        raise Refusal("not_found", f"there is no file {path} to put")
    return path


async def value_of(
    found: StoredObject,
    pieces: AsyncIterator[bytes],
    call: ToolCall[ObjectInputs],
    results: ResultStore,
) -> tuple[Any, str | None]:
    """The body, and `base64` where it stands for bytes; large ones go to the store (EVT-4)."""
    head = bytearray()
    async for piece in pieces:
        head += piece
        if len(head) > call.max_inline:
            return await _stored(found, bytes(head), pieces, call, results)
    body = bytes(head)
    form, charset = _form_of(found, call.inputs, body)
    try:
        if form == "json":
            return (json_of(body, charset) if body else None), None
        if form == "text":
            return text_of(body, charset), None
    except Undecodable as fault:
        raise Refusal("decode", f"{found.key}: {fault}") from None
    return base64.b64encode(body).decode(), "base64"


async def _stored(
    found: StoredObject,
    head: bytes,
    rest: AsyncIterator[bytes],
    call: ToolCall[ObjectInputs],
    results: ResultStore,
) -> tuple[Any, str | None]:
    form, charset = _form_of(found, call.inputs, head)
    writer = results.open(call.execution_id)
    try:
        spelling = spelling_of(form, charset)
        spill(writer, spelling.feed(head))
        async for piece in rest:
            spill(writer, spelling.feed(piece))
        spill(writer, spelling.finish())
        return await finish(writer), "base64" if form == "binary" else None
    except Undecodable as fault:
        await writer.discard()
        raise Refusal("decode", f"{found.key}: {fault}") from None
    except BaseException:
        await writer.discard()
        raise


async def saved(pieces: AsyncIterator[bytes], path: Path) -> int:
    """Into a file, which gets its name when it is whole; its length."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("wb") as file:
            async for piece in pieces:
                file.write(piece)
            length = file.tell()
        part.replace(path)
    except OSError as fault:
        if fault.filename is None and fault.errno is None:
            raise  # the connection's, not the disk's
        raise Refusal("input", f"cannot write {path}: {fault.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return length


def _form_of(found: StoredObject, inputs: ObjectInputs, head: bytes) -> tuple[Form, str | None]:
    """What the task says, else the content type, the name's ending, or what it looks like."""
    told, _, parameters = (found.content_type or "").partition(";")
    content_type = told.strip().lower()
    charset = parameters.partition("charset=")[2].strip(' "') or None
    if inputs.encoding is not None:
        return _FORMS[inputs.encoding], charset
    if content_type in _UNTOLD:
        content_type = mimetypes.guess_type(found.key)[0] or ""
    return form_of(content_type, head), charset
