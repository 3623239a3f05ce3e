"""A body that comes in pieces as a value, or, when it is large, as a reference to where it went."""

import asyncio
import base64
import math
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import msgspec

from noetl.ports.result_store import ResultStore
from noetl.tools.http.forms import Form, Undecodable, form_of, json_of, spelling_of, text_of
from noetl.tools.refusal import Refusal
from noetl.tools.spill import spilled
from noetl.tools.tool import ToolCall, Workplace

TURN = 256 * 1024
"""Bytes of a body after which everybody else has a turn."""


_JSON = frozenset(
    ("application/json", "application/json; charset=utf-8", "application/json;charset=utf-8")
)
"""What most APIs say; in any other spelling it is looked at more closely."""


class Body(msgspec.Struct, frozen=True):
    """`fault` says why `value` is not what the content type claims (error kind `decode`)."""

    value: Any = None
    encoding: str | None = None
    fault: str | None = None


async def read_answer(
    answer: aiohttp.ClientResponse, call: ToolCall[Any], workplace: Workplace, longest: int
) -> Body:
    """The body of an answer; nothing at all is null, whatever it claims to be."""
    headers = answer.headers
    claimed = headers.get("Content-Type", "")
    if claimed in _JSON and "Content-Encoding" not in headers and is_short(answer, call):
        return _at_hand(await answer.read(), "json", None)
    told = claimed.partition(";")[0].strip().lower()

    def form(head: bytes) -> Form:
        return form_of(told, head) if head else "json"

    return await read_body(
        answer.content.iter_any(), form, answer.charset, call, workplace.results, longest=longest
    )


def is_short(answer: aiohttp.ClientResponse, call: ToolCall[Any]) -> bool:
    """Whether it says how long it is, and that is read without a turn for anybody else."""
    length = answer.headers.get("Content-Length", "")
    return length.isdecimal() and int(length) <= min(TURN, call.max_inline)


async def read_body(
    pieces: AsyncIterator[bytes],
    form: Callable[[bytes], Form],
    charset: str | None,
    call: ToolCall[Any],
    results: ResultStore,
    *,
    longest: float = math.inf,
) -> Body:
    """The whole; beyond `call.max_inline` bytes it goes into the store while it arrives (EVT-4)."""
    pieces = with_turns(pieces)
    head = bytearray()
    async for piece in pieces:
        head += piece
        if len(head) > call.max_inline:
            break
    else:
        return _at_hand(bytes(head), form(bytes(head)), charset)
    kind, length = form(bytes(head)), len(head)
    try:
        spelling = spelling_of(kind, charset)
        async with spilled(results, call.execution_id) as body:
            body.write(spelling.feed(bytes(head)))
            async for piece in pieces:
                length += len(piece)
                if length > longest:  # also where a small compressed body unfolds without end
                    raise Refusal("limit", f"the body is longer than the allowed {longest} bytes")
                body.write(spelling.feed(piece))
            value = await body.finish(spelling.finish())
    except Undecodable as fault:
        return Body(fault=str(fault))
    return Body(value, encoding="base64" if kind == "binary" else None)


async def with_turns(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """
    The pieces, with a turn for everybody else now and then: what unfolds from a few packed bytes is
    there without a wait, and a worker that has no turn for a lease loses all that it runs (WRK-1).
    """
    since = 0
    async for piece in pieces:
        yield piece
        since += len(piece)
        if since >= TURN:
            since = 0
            await asyncio.sleep(0)


def _at_hand(body: bytes, form: Form, charset: str | None) -> Body:
    try:
        if form == "json":
            return Body(json_of(body, charset) if body else None)
        if form == "text":
            return Body(text_of(body, charset))
    except Undecodable as fault:
        return Body(body.decode("utf-8", "replace"), fault=str(fault))
    return Body(base64.b64encode(body).decode(), encoding="base64")
