"""The body of an answer as a value, or, when it is large, as a reference to where it went."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec

from noetl.ports.result_store import BodyWriter, ResultStore
from noetl.tools.http.forms import Form, Undecodable, form_of, json_of, spelling_of, text_of
from noetl.tools.refusal import Refusal
from noetl.tools.spill import finish, spill
from noetl.tools.tool import ToolCall


class Body(msgspec.Struct, frozen=True):
    """`fault` says why `value` is not what the content type claims (error kind `decode`)."""

    value: Any = None
    encoding: str | None = None
    fault: str | None = None


async def read_body(
    answer: aiohttp.ClientResponse, call: ToolCall[Any], results: ResultStore, longest: int
) -> Body:
    """The whole body; beyond `call.max_inline` bytes it goes into the store while it arrives."""
    pieces = answer.content.iter_any()
    head = bytearray()
    async for piece in pieces:
        head += piece
        if len(head) > call.max_inline:
            return await _store(
                answer, bytes(head), pieces, results.open(call.execution_id), longest
            )
    return _read(bytes(head), answer) if head else Body()


def _read(body: bytes, answer: aiohttp.ClientResponse) -> Body:
    form = form_of(_content_type(answer), body)
    charset = answer.charset
    try:
        if form == "json":
            return Body(json_of(body, charset))
        if form == "text":
            return Body(text_of(body, charset))
    except Undecodable as fault:
        return Body(body.decode("utf-8", "replace"), fault=str(fault))
    return Body(base64.b64encode(body).decode(), encoding="base64")


async def _store(
    answer: aiohttp.ClientResponse,
    head: bytes,
    rest: AsyncIterator[bytes],
    writer: BodyWriter,
    longest: int,
) -> Body:
    form = form_of(_content_type(answer), head)
    try:
        return await _spell(form, answer.charset, head, rest, writer, longest)
    except Undecodable as fault:
        await writer.discard()
        return Body(fault=str(fault))
    except BaseException:
        await writer.discard()
        raise


async def _spell(
    form: Form,
    charset: str | None,
    head: bytes,
    rest: AsyncIterator[bytes],
    writer: BodyWriter,
    longest: int,
) -> Body:
    spelling = spelling_of(form, charset)
    length = len(head)
    spill(writer, spelling.feed(head))
    async for piece in rest:
        length += len(piece)
        if length > longest:  # also where a small compressed body unfolds without end
            raise Refusal("limit", f"the body is longer than the allowed {longest} bytes")
        spill(writer, spelling.feed(piece))
    spill(writer, spelling.finish())
    return Body(await finish(writer), encoding="base64" if form == "binary" else None)


def _content_type(answer: aiohttp.ClientResponse) -> str:
    """In lower case without parameters; empty where the answer does not say."""
    return answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
