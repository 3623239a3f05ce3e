"""What a body is by its content type, and how each form becomes JSON piece by piece."""

import base64
import codecs
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

Form = Literal["json", "text", "binary"]

VALIDATED = 16 * 1024 * 1024
"""A stored JSON body up to this length is checked whole; beyond it only its two ends are."""
_PAIRS = {ord("{"): ord("}"), ord("["): ord("]"), ord('"'): ord('"')}
_SPACE = b" \t\r\n"
_FOREIGN = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"})
"""Codecs of Python that are charsets of nobody; some take time by the square of the length."""
_TEXTUAL = frozenset(
    f"application/{name}"
    for name in (
        *("xml", "javascript", "x-www-form-urlencoded", "yaml", "x-yaml", "toml", "sql"),
        *("graphql", "csv", "ndjson", "x-ndjson", "jsonl", "json-seq", "x-sh"),
    )
)


class Undecodable(Exception):
    """The body is not what its content type claims."""


def form_of(content_type: str, head: bytes) -> Form:
    """OUT-3. Without a content type, what is readable as UTF-8 counts as text."""
    if content_type in ("application/json", "text/json") or content_type.endswith("+json"):
        return "json"
    if content_type.startswith("text/") or content_type in _TEXTUAL:
        return "text"
    if content_type.endswith("+xml"):
        return "text"
    if content_type:
        return "binary"
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "binary"
    return "binary" if "\0" in text else "text"


def text_of(body: bytes, charset: str | None) -> str:
    """Strict where a charset is claimed; without a claim UTF-8, unreadable bytes replaced."""
    try:
        if charset is None:
            return body.decode("utf-8-sig", "replace")
        return body.decode(_reader(charset))
    except (LookupError, UnicodeError) as fault:
        raise Undecodable(f"the text is not in its charset '{charset}': {fault}") from None


def json_of(body: bytes, charset: str | None) -> object:
    try:
        return msgspec.json.decode(_utf8(body, charset))
    except (msgspec.DecodeError, UnicodeError, LookupError, RecursionError) as fault:
        raise Undecodable(f"the body claims to be JSON and is not: {fault}") from None


def _utf8(body: bytes, charset: str | None) -> bytes:
    if charset is None or _reader(charset) == "utf-8-sig":
        return body.removeprefix(codecs.BOM_UTF8)
    return body.decode(_reader(charset)).encode()


def _reader(charset: str) -> str:
    """
    The codec to read a charset with; UTF-8 may begin with a mark that is no text. Whoever answers
    names it: one that unpacks (`bz2`) would make gigabytes of a few bytes. Raises LookupError.
    """
    found = codecs.lookup(charset)
    name = found.name
    if name in _FOREIGN or not found._is_text_encoding:
        raise LookupError(f"'{name}' is not a charset")
    return "utf-8-sig" if name in ("utf-8", "ascii") else name


def _known(charset: str | None) -> tuple[bool, Callable[..., codecs.IncrementalDecoder]]:
    """Whether the charset is UTF-8, and what reads it piece by piece."""
    try:
        name = "utf-8-sig" if charset is None else _reader(charset)
        return name == "utf-8-sig", codecs.getincrementaldecoder(name)
    except LookupError as fault:
        raise Undecodable(f"the charset '{charset}' is not known: {fault}") from None


class Spelling(Protocol):
    """Turns the pieces of a body into the pieces of its JSON."""

    def feed(self, piece: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class TextSpelling:
    """Text as one JSON string."""

    def __init__(self, charset: str | None) -> None:
        _, decoder = _known(charset)
        self._decoder = decoder("replace" if charset is None else "strict")
        self._opening = b'"'

    def feed(self, piece: bytes) -> bytes:
        return self._spelled(piece, final=False)

    def finish(self) -> bytes:
        return self._spelled(b"", final=True) + b'"'

    def _spelled(self, piece: bytes, *, final: bool) -> bytes:
        try:
            text = self._decoder.decode(piece, final)
            spelled = self._opening + msgspec.json.encode(text)[1:-1]
        except UnicodeError as fault:
            raise Undecodable(f"the text is not in its charset: {fault}") from None
        self._opening = b""
        return spelled


class BinarySpelling:
    """Bytes as one JSON string in base64; groups of three bytes are never cut."""

    def __init__(self) -> None:
        self._rest = b""
        self._opening = b'"'

    def feed(self, piece: bytes) -> bytes:
        whole = self._rest + piece
        cut = len(whole) - len(whole) % 3
        self._rest = whole[cut:]
        opening, self._opening = self._opening, b""
        return opening + base64.b64encode(whole[:cut])

    def finish(self) -> bytes:
        return self._opening + base64.b64encode(self._rest) + b'"'


class JsonSpelling:
    """JSON as it came. Checked whole while it is small, else that its first and last byte fit."""

    def __init__(self, charset: str | None) -> None:
        self._kept: bytearray | None = bytearray()
        self._first: int | None = None
        self._last: int | None = None
        utf8, decoder = _known(charset)
        self._decoder = None if utf8 else decoder()

    def feed(self, piece: bytes) -> bytes:
        try:
            spelled = piece if self._decoder is None else self._decoder.decode(piece).encode()
        except UnicodeError as fault:
            raise Undecodable(f"the body is not in its charset: {fault}") from None
        if self._first is None:
            spelled = spelled.removeprefix(codecs.BOM_UTF8)
        self._look(spelled)
        return spelled

    def finish(self) -> bytes:
        if self._kept is not None:
            try:
                msgspec.json.decode(self._kept, type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError) as fault:
                raise Undecodable(f"the body claims to be JSON and is not: {fault}") from None
        elif self._first is None or _PAIRS.get(self._first) != self._last:
            raise Undecodable("the body claims to be JSON, but its two ends do not fit")
        return b""

    def _look(self, spelled: bytes) -> None:
        if self._kept is not None:
            self._kept += spelled
            if len(self._kept) > VALIDATED:
                self._kept = None
        bare = spelled.strip(_SPACE)
        if bare:
            self._first = bare[0] if self._first is None else self._first
            self._last = bare[-1]


def spelling_of(form: Form, charset: str | None) -> Spelling:
    if form == "json":
        return JsonSpelling(charset)
    return TextSpelling(charset) if form == "text" else BinarySpelling()
