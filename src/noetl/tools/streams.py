"""A value in parts that need little memory, whether it is at hand or in the result store."""

import asyncio
import codecs
import json
import re
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
from noetl.tools.refusal import Refusal, base64_bytes, json_of

T = TypeVar("T")
_NO_JSON = "a value cannot be written as JSON"
_BETWEEN = " \t\r\n,"
_GAP = re.compile(f"[{_BETWEEN}]*")
_ENDS = frozenset(_BETWEEN + "]")
_CHARACTERS = re.compile(
    r"""(?: [^"\\]++ | \\[^u] | \\u(?![dD][89abAB])[^"\\]{4} | \\u[dD][89abAB].{2}\\u.{4} )*+""",
    re.VERBOSE,
)
"""Of a JSON string: whole ones only, neither half an escape nor one of two surrogates."""


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
        yield base64_bytes(whole[:cut], f"'{name}'")
    yield base64_bytes(rest, f"'{name}'")


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
        while (at := _after_gap(text, at)) < len(text):
            if not opened:
                if text[at] != "[":
                    says = f"'{name}' is stored as something else than the list expected"
                    raise Refusal("input", says)
                opened, at = True, at + 1
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


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at


async def unquoted(pieces: AsyncIterable[bytes]) -> AsyncIterator[str]:
    """The text of a JSON string that arrives in pieces; escapes are never cut."""
    reader, rest, begun = codecs.getincrementaldecoder("utf-8")(), "", False
    async for piece in pieces:
        rest += reader.decode(piece)
        if not begun:
            rest = rest.lstrip()
            begun, rest = bool(rest), rest[1:]
        whole = _CHARACTERS.match(rest)
        if whole and whole.end():
            yield msgspec.json.decode(f'"{whole.group()}"')
            rest = rest[whole.end() :]
    yield msgspec.json.decode(f'"{rest.rstrip()}')


async def _written(value: Any) -> AsyncIterator[bytes]:
    small = surely_fits(value, LARGE)
    yield json_of(value, _NO_JSON) if small else await asyncio.to_thread(json_of, value, _NO_JSON)


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
        yield before + json_of(element, _NO_JSON)
        before = b","
    yield b"[]" if before == b"[" else b"]"


def _word_for(value: Any) -> str:
    words = {dict: "a mapping", str: "text", bool: "a boolean", type(None): "null"}
    return words.get(type(value), "a number")
