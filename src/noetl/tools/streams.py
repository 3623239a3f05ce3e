"""A value in parts that need little memory, whether it is at hand or in the result store."""

import asyncio
import base64
import binascii
import codecs
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, TypeVar

import msgspec

from noetl.errors import BodyLost
from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, in_chunks
from noetl.messages.size import surely_fits
from noetl.ports.large import LARGE
from noetl.ports.result_store import ResultStore
from noetl.tools.refusal import Refusal

T = TypeVar("T")
_BETWEEN = " \t\r\n,"
_ENDS = frozenset(_BETWEEN + "]")
_LONGEST_ESCAPE = 12
"""Of a JSON string: a pair of surrogates, `\\ud83d\\ude00`."""


def elements_of(value: Any, results: ResultStore, name: str) -> AsyncIterator[Any]:
    """The elements of the list that the input `name` holds, one after the other."""
    if isinstance(value, list):
        return _each(*value)
    if not isinstance(value, Reference):
        raise Refusal("input", f"'{name}' is {_word_for(value)}; expected a list")
    if in_chunks(value):
        return _chunked(value, results)
    return parsed(pieces_of(value, results), name)


def text_in(value: Any, results: ResultStore) -> AsyncIterator[str] | None:
    """The text in parts, if the value is one; None for any other value."""
    if isinstance(value, str):
        return _each(value)
    if isinstance(value, Reference) and (value.schema_hint or "").startswith("string"):
        return unquoted(pieces_of(value, results))
    return None


def json_in(value: Any, results: ResultStore) -> AsyncIterator[bytes]:
    """The JSON of a value in parts."""
    if not isinstance(value, Reference):
        return _written(value)
    if in_chunks(value):
        return _spelled(_chunked(value, results))
    return pieces_of(value, results)


async def pieces_of(reference: Reference, results: ResultStore) -> AsyncIterator[bytes]:
    """What the store holds; a body that is gone ends the call (RES-4)."""
    try:
        async for piece in results.pieces(reference):
            yield piece
    except BodyLost as lost:
        raise Refusal("result", str(lost)) from None


async def from_base64(parts: AsyncIterable[str], name: str) -> AsyncIterator[bytes]:
    """The bytes that a base64 text stands for; groups of four characters are never cut."""
    rest = ""
    async for part in parts:
        whole = rest + "".join(part.split())
        cut = len(whole) - len(whole) % 4
        rest = whole[cut:]
        yield _bytes_of(whole[:cut], name)
    yield _bytes_of(rest, name)


async def parsed(pieces: AsyncIterable[bytes], name: str) -> AsyncIterator[Any]:
    """
    The elements of a JSON list whose text arrives in pieces. An element that is not whole yet is
    tried again when twice as much of it is there, so that a long one costs no more than two.
    """
    reader, decode = codecs.getincrementaldecoder("utf-8")(), JSONDecoder().raw_decode
    text, at, wanted, opened = "", 0, 0, False
    async for piece in pieces:
        text, at = text[at:] + reader.decode(piece), 0
        if len(text) < wanted:
            continue
        while (at := _skip(text, at)) < len(text):
            if not opened:
                opened, at = _open(text, at, name), at + 1
                continue
            try:
                element, end = decode(text, at)
            except JSONDecodeError:
                break
            if text[end : end + 1] not in _ENDS:  # a number may go on in the next piece
                break
            yield element
            at = end
        wanted = 2 * (len(text) - at)
    if not opened or text[at:].strip(_BETWEEN) != "]":
        # The last elements may have waited for more text than there was.
        for element in _rest(text[at:], opened, name):
            yield element


def _rest(text: str, opened: bool, name: str) -> Iterator[Any]:
    try:
        return iter(json.loads("[" + text.lstrip(_BETWEEN)) if opened else json.loads(text))
    except (JSONDecodeError, TypeError):
        raise Refusal("input", f"'{name}' is not the list that was expected") from None


def _open(text: str, at: int, name: str) -> bool:
    if text[at] != "[":
        raise Refusal("input", f"'{name}' is stored as something else than the list expected")
    return True


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BETWEEN:
        at += 1
    return at


async def unquoted(pieces: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """The text of a JSON string that arrives in pieces; escapes are never cut."""
    reader, rest, begun = codecs.getincrementaldecoder("utf-8")(), "", False
    async for piece in pieces:
        rest += reader.decode(piece)
        if not begun:
            rest = rest.lstrip()
            begun, rest = bool(rest), rest[1:]
        cut = _before_escape(rest)
        if cut:
            yield msgspec.json.decode(f'"{rest[:cut]}"')
            rest = rest[cut:]
    yield msgspec.json.decode(f'"{rest.rstrip()}')


def _before_escape(text: str) -> int:
    """How much can be read now: all but what may be an escape, or the closing quote."""
    cut = max(0, len(text) - _LONGEST_ESCAPE)
    start = text.find("\\", max(0, cut - _LONGEST_ESCAPE), cut)
    if start < 0:
        return cut
    before = len(text[:start]) - len(text[:start].rstrip("\\"))
    # From a backslash that begins an escape the walk is certain; an odd one is the end of another.
    at = start + 1 if before % 2 else start
    while at < cut:
        step = _escape_at(text, at)
        if at + step > cut:
            return at
        at += step
    return cut


def _escape_at(text: str, at: int) -> int:
    """The length of what stands here: one character, an escape, or a pair of surrogates."""
    if text[at] != "\\":
        return 1
    if text[at + 1] != "u":
        return 2
    return 12 if text[at + 2 : at + 4].lower() in ("d8", "d9", "da", "db") else 6


async def _written(value: Any) -> AsyncIterator[bytes]:
    small = surely_fits(value, LARGE)
    yield _encoded(value) if small else await asyncio.to_thread(_encoded, value)


async def _each(*values: T) -> AsyncIterator[T]:
    for value in values:
        yield value


async def _chunked(manifest: Reference, results: ResultStore) -> AsyncIterator[Any]:
    try:
        for chunk in chunks_of(await results.fetch(manifest)):
            if in_chunks(chunk):
                async for element in _chunked(chunk, results):
                    yield element
                continue
            for element in await results.fetch(chunk):
                whole = isinstance(element, Reference)
                yield await results.fetch(element) if whole else element
    except BodyLost as lost:
        raise Refusal("result", str(lost)) from None


async def _spelled(elements: AsyncIterable[Any]) -> AsyncIterator[bytes]:
    before = b"["
    async for element in elements:
        yield before + _encoded(element)
        before = b","
    yield b"[]" if before == b"[" else b"]"


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError) as fault:
        raise Refusal("input", f"a value cannot be written as JSON: {fault}") from None


def _bytes_of(text: str, name: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as fault:
        raise Refusal("input", f"'{name}' is no base64 text: {fault}") from None


def _word_for(value: Any) -> str:
    words = {dict: "a mapping", str: "text", bool: "a boolean", type(None): "null"}
    return words.get(type(value), "a number")
