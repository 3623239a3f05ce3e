"""One stream of a command as it arrives: text, or, when it grows large, a body in the store."""

import base64
import codecs
from typing import Any

import msgspec

from noetl.masking import KNOWN
from noetl.messages.clipping import ending
from noetl.ports.result_store import ResultStore
from noetl.tools.http.forms import BinarySpelling, Spelling, TextSpelling
from noetl.tools.process.output import Output
from noetl.tools.refusal import Refusal
from noetl.tools.spill import StoredBody, keep
from noetl.tools.tool import ToolCall, Workplace

PARSED = 16 * 1024 * 1024
"""Bytes of output that are read as JSON; what is longer is kept as text alone."""
LONGEST = 2 * 1024**3
STRICT = codecs.getincrementaldecoder("utf-8")
STDOUT, STDERR = 1, 2
TAIL = 400
"""Bytes at the end that are kept for a message."""


class Captured(msgspec.Struct, frozen=True):
    """`value` is the text or a reference to it, `parsed` the same as JSON where it is JSON."""

    value: Any = ""
    parsed: Any = None
    encoding: str | None = None
    """`replaced` where bytes were no UTF-8, `base64` where it is no text at all."""


class Capture:
    """Beyond `call.max_inline` bytes memory stays flat (EVT-4)."""

    def __init__(
        self, name: str, call: ToolCall[Any], results: ResultStore, *, longest: int = LONGEST
    ) -> None:
        self._name = name
        self._call = call
        self._results = results
        self._longest = longest
        self._length = 0
        self._head = bytearray()
        self._tail = b""
        self._whole: bytearray | None = None
        """The whole output again while it may be JSON; None where it is not wanted."""
        self._spelling: Spelling | None = None
        self._stored: StoredBody | None = None
        self._encoding: str | None = None
        self._strict = STRICT()

    def feed(self, piece: bytes) -> None:
        """One more piece; raises Refusal where it cannot be kept."""
        self._length += len(piece)
        if self._length > self._longest:
            raise Refusal("limit", f"{self._name} is longer than the allowed {self._longest} bytes")
        self._tail = (self._tail + piece)[-TAIL - KNOWN.longest :]
        if self._spelling is None or self._stored is None:
            self._head += piece
            if len(self._head) > self._call.max_inline:
                self._overflow()
            return
        if self._whole is not None:
            self._whole += piece
            if len(self._whole) > PARSED:
                self._whole = None
        self._note(piece)
        self._stored.write(self._spelling.feed(piece))

    def last_line(self) -> str:
        """The last line that says something, for a message."""
        lines = self._tail.decode("utf-8", "replace").split("\n")
        for number, line in reversed([*enumerate(lines)]):
            if line.strip():
                whole = bool(number) or self._length == len(self._tail)
                return ending(line.strip(), TAIL, whole=whole)
        return ""

    async def finish(self, *, parse: bool) -> Captured:
        """All has come."""
        if self._stored is None or self._spelling is None:
            return read(bytes(self._head), parse=parse)
        self._note(b"", last=True)
        value = await self._stored.finish(self._spelling.finish())
        return Captured(value, await self._parsed() if parse else None, self._encoding)

    async def discard(self) -> None:
        """Forget what was begun; after `finish` there is nothing to forget."""
        if self._stored is not None:
            await self._stored.discard()

    def _overflow(self) -> None:
        head = bytes(self._head)
        self._head.clear()
        self._encoding = encoding_of(head, whole=False)
        self._spelling = BinarySpelling() if self._encoding == "base64" else TextSpelling(None)
        self._stored = StoredBody(self._results, self._call.execution_id)
        if head.lstrip()[:1] in (b"{", b"["):
            self._whole = bytearray(head)
        self._note(head)
        self._stored.write(self._spelling.feed(head))

    def _note(self, piece: bytes, *, last: bool = False) -> None:
        if self._encoding is None:
            try:
                self._strict.decode(piece, last)
            except UnicodeDecodeError:
                self._encoding = "replaced"

    async def _parsed(self) -> Any:
        whole, self._whole = self._whole, None
        if whole is None:
            return None
        try:
            msgspec.json.decode(whole, type=msgspec.Raw)
        except (msgspec.DecodeError, RecursionError):
            return None
        return await keep(self._results, self._call.execution_id, bytes(whole))


class CommandOutput(msgspec.Struct, frozen=True):
    """Both streams, and the last line of what was complained."""

    stdout: Captured
    stderr: Captured
    complaint: str = ""


class Streams:
    """What a command prints: lines for the log, live, and text or a body for the result."""

    def __init__(self, call: ToolCall[Any], workplace: Workplace, longest: int = LONGEST) -> None:
        self._lines = Output(lambda stream, text: workplace.log(call, stream, text))
        self._out = Capture("stdout", call, workplace.results, longest=longest)
        self._err = Capture("stderr", call, workplace.results, longest=longest)

    def take(self, stream: int, piece: bytes) -> None:
        """Raises Refusal where it cannot be kept."""
        self._lines.written(stream, piece)
        (self._out if stream == STDOUT else self._err).feed(piece)

    def end(self) -> None:
        """No more comes."""
        self._lines.end()

    async def finish(self) -> CommandOutput:
        self.end()
        return CommandOutput(
            await self._out.finish(parse=True),
            await self._err.finish(parse=False),
            self._err.last_line(),
        )

    async def discard(self) -> None:
        await self._out.discard()
        await self._err.discard()


def read(whole: bytes, *, parse: bool) -> Captured:
    """Output that is small enough to be kept as it is."""
    whole = whole.removeprefix(codecs.BOM_UTF8)
    encoding = encoding_of(whole, whole=True)
    if encoding == "base64":
        return Captured(base64.b64encode(whole).decode(), None, encoding)
    text = whole.decode("utf-8", "replace")
    return Captured(text, json_of(whole) if parse and encoding is None else None, encoding)


def json_of(whole: bytes) -> Any:
    """OUT-3: parsed where it is JSON."""
    try:
        return msgspec.json.decode(whole) if whole.strip() else None
    except (msgspec.DecodeError, RecursionError):
        return None


def encoding_of(known: bytes, *, whole: bool) -> str | None:
    """
    How bytes are kept that are no UTF-8. Text in another encoding has no zeros in it: what has
    some is no text. What is not the whole may end within a character.
    """
    try:
        STRICT().decode(known, whole)
    except UnicodeDecodeError:
        return "base64" if b"\0" in known else "replaced"
    return None
