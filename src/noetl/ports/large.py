"""Work on values too large for the event loop: hashing, JSON, in a thread that lets others in."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from noetl.errors import ServerRefused
from noetl.messages.codec import encode
from noetl.messages.size import surely_fits
from noetl.messages.written import WrittenValues

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

LARGE = 262_144
"""Bytes of JSON that take about as long as a thread costs the event loop."""
STEP = 131_072
ROWS = 1000
LEVELS = 4
"""Of mappings around large lists."""
TRIES = 8
MARK = b'"$'
"""How the name of a reference begins, in any JSON."""
CLOSES = {ord("{"): rb"\}", ord("["): rb"\]", ord('"'): b'"'}
"""By its first character: how an element of a list ends."""

PARSED = 32
"""How much longer a character of a playbook takes than one of JSON."""
MOST_DRAFTS = 8
"""Large texts that are being checked or wait for it."""

P = ParamSpec("P")
T = TypeVar("T")


async def off_loop(size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """What `work` makes of `size` bytes: here where they are few, else in a thread."""
    if size < LARGE:
        return work(*args, **named)
    return await asyncio.to_thread(work, *args, **named)


async def read_off_loop(size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """
    The same for reading and planning a playbook of `size` characters: few at a time, since each
    takes its turn with the interpreter from the event loop.
    """
    if size * PARSED < LARGE:
        return work(*args, **named)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(readers(), lambda: work(*args, **named))


@cache
def readers() -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # most playbooks are small

    return ThreadPoolExecutor(2, thread_name_prefix="reader")


class Drafts:
    """
    The same for texts that are only being written or looked at. They are read one at a time, apart
    from those that something runs of, and few wait: who may only look keeps nobody from working.
    """

    def __init__(self) -> None:
        self._waiting = 0

    @cached_property
    def _reader(self) -> "ThreadPoolExecutor":
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1, thread_name_prefix="draft")

    async def read(self, size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        if size * PARSED < LARGE:
            return work(*args, **named)
        if self._waiting >= MOST_DRAFTS:
            says = "too many large texts are being checked; try again in a moment"
            raise ServerRefused(says, code="busy", status=503)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._reader, lambda: work(*args, **named))
        finally:
            self._waiting -= 1


DRAFTS = Drafts()


async def encoded(value: Any) -> bytes:
    """The JSON of a value, which nobody may change meanwhile."""
    if surely_fits(value, LARGE):
        return encode(value)
    return await asyncio.to_thread(_written, value)


async def written_values(values: Sequence[Mapping[str, Any]], what: str) -> WrittenValues | None:
    """
    What of mappings that somebody sent is large, written down in a thread (decision 0094); None
    where they are small. Raises ServerRefused for what is too deep.
    """
    if surely_fits(values, LARGE):
        return None
    made = WrittenValues()
    every = chain.from_iterable(one.values() for one in values)
    await asyncio.to_thread(made.write, every, what)
    return made


def _written(value: Any) -> bytes:
    text = _text(value)
    return encode(value) if MARK in text else text


def _text(value: Any) -> bytes:
    """The same JSON as at once, if nothing in it is a reference or looks like one."""
    if isinstance(value, list) and len(value) > ROWS:
        parts = (encode(value[n : n + ROWS])[1:-1] for n in range(0, len(value), ROWS))
        return b"[%b]" % b",".join(parts)
    if isinstance(value, dict) and value and all(isinstance(key, str) for key in value):
        members = (b"%b:%b" % (encode(key), _text(below)) for key, below in value.items())
        return b"{%b}" % b",".join(members)
    return encode(value)


def decoded(text: bytes, levels: int = LEVELS) -> Any:
    """
    The value of a JSON text. msgspec keeps the interpreter to itself while it reads: a large text
    is read in steps, between which the event loop has its turn. Each level of mappings that is
    taken apart is read once more, so it is not done for many.
    """
    if len(text) < 2 * STEP or levels == 0:
        return msgspec.json.decode(text)
    first = text.lstrip()[:1]
    if first == b"[":
        return _elements(text)
    if first == b"{":
        members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return {name: decoded(bytes(member), levels - 1) for name, member in members.items()}
    return msgspec.json.decode(text)


def _elements(text: bytes) -> list[Any]:
    """
    The text is cut behind a comma, and a cut that leaves no list on its left was in the midst of
    an element: so another is tried, and where elements are long, a longer step.
    """
    at = text.index(b"[") + 1
    head = text[at : at + 64].lstrip()
    ends = re.compile(CLOSES.get(head[0] if head else 0, b"") + rb"\s*,")
    found: list[Any] = []
    step = STEP
    while len(text) - at > 2 * step:
        for comma in islice(ends.finditer(text, at + step, at + 2 * step), TRIES):
            try:
                found += msgspec.json.decode(b"[%b]" % text[at : comma.end() - 1])
            except msgspec.DecodeError:
                continue
            at, step = comma.end(), STEP
            break
        else:
            step *= 2
    if not found:
        return list(msgspec.json.decode(text))
    rest: list[Any] = msgspec.json.decode(b"[0," + text[at:])[1:]  # a comma too many fails
    return found + rest
