"""
Which names does a template read, and how does it look with some of them respelled?

Jinja2's own lexer cuts the text; only the spans that change are replaced, so that the author's
spacing, quotes and line breaks stay.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from jinja2.exceptions import TemplateSyntaxError

from noetl.expression.sandbox import SANDBOX
from noetl.expression.syntax import is_template

_SKIPPED: Final = frozenset({"whitespace", "data", "comment", "raw_begin", "raw_end"})
_CONSTANTS: Final = ("true", "false", "none", "True", "False", "None")
_OPERATORS: Final = ("and", "or", "not", "in", "is", "if", "else", "recursive")
_WORDS: Final = frozenset((*_CONSTANTS, *_OPERATORS))
MOST_KEPT: Final = 32_768  # texts whose reads are kept: every row of every table asks again
_EQUAL: Final = frozenset({"==", "!="})
_OPEN: Final = {"[": "]", "(": ")"}


class ExpressionToken(NamedTuple):
    """One token of an expression, and where it stands in the text."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Read(NamedTuple):
    """A name and the constant keys after it: `vars.rows[0].id`; `ends` is where each part ends."""

    path: tuple[str | int, ...]
    start: int
    ends: tuple[int, ...]
    first: int
    """The number of its first token, and of the one after its last."""
    after: int
    alone: bool = False
    """Whether it is all that stands between its braces."""
    covered: bool = False
    """Whether something stands in for it where it is missing: `default`, `is defined`."""


class Respelling(NamedTuple):
    """New text for the first `parts` of a path."""

    parts: int
    text: str


Respell = Callable[[tuple[str | int, ...]], Respelling | None]


@lru_cache(maxsize=MOST_KEPT)
def tokens_of(text: str) -> tuple[ExpressionToken, ...]:
    """The tokens inside the braces; none where the text does not parse (told elsewhere)."""
    found: list[ExpressionToken] = []
    at = 0
    try:
        for _, kind, value in SANDBOX.lexer.tokeniter(text, None):
            start = text.find(value, at)  # white space beside `{%-` is left out
            if start < 0:
                return ()
            at = start + len(value)
            if kind not in _SKIPPED:
                found.append(ExpressionToken(kind, value, start))
    except TemplateSyntaxError:
        return ()
    return tuple(found)


@lru_cache(maxsize=MOST_KEPT)
def reads_of(text: str) -> tuple[Read, ...]:
    """Every path that a template reads."""
    return tuple(reads_in(tokens_of(text)))


def reads_in(tokens: Sequence[ExpressionToken]) -> list[Read]:
    """Every path that a template reads; names that it binds itself are left out."""
    bound = _bound(tokens)
    reads: list[Read] = []
    number = 0
    while number < len(tokens):
        token = tokens[number]
        if token.kind == "name" and token.text not in _WORDS and _is_root(tokens, number):
            read = _path_from(tokens, number)
            if token.text not in bound:
                reads.append(read)
            number = read.after
        else:
            number += 1
    return reads


def _is_root(tokens: Sequence[ExpressionToken], number: int) -> bool:
    """Not an attribute, filter, test, name of an argument, or name of a block."""
    before = tokens[number - 1] if number else None
    after = tokens[number + 1] if number + 1 < len(tokens) else None
    if before is not None and (before.text in (".", "|") or before.kind == "block_begin"):
        return False
    if before is not None and before.text == "is":
        return False
    if before is not None and before.text == "not" and tokens[number - 2].text == "is":
        return False
    named = after is not None and after.text == "=" and before is not None
    return not (named and before is not None and before.text in ("(", ","))


def _path_from(tokens: Sequence[ExpressionToken], number: int) -> Read:
    first = number
    path: list[str | int] = [tokens[number].text]
    ends = [tokens[number].end]
    number += 1
    while number + 1 < len(tokens):
        sign, key = tokens[number], tokens[number + 1]
        if sign.text == "." and key.kind in ("name", "integer"):
            path.append(key.text if key.kind == "name" else int(key.text))
            ends.append(key.end)
            number += 2
        elif sign.text == "[" and _is_constant(tokens, number + 1):
            path.append(key.text[1:-1] if key.kind == "string" else int(key.text))
            ends.append(tokens[number + 2].end)
            number += 3
        else:
            break
    around = (tokens[first - 1].kind if first else "", _kind_at(tokens, number))
    alone = around == ("variable_begin", "variable_end")
    covered = _covered([token.text for token in tokens[number : number + 3]])
    return Read(tuple(path), tokens[first].start, tuple(ends), first, number, alone, covered)


def _kind_at(tokens: Sequence[ExpressionToken], number: int) -> str:
    return tokens[number].kind if number < len(tokens) else ""


def _covered(after: list[str]) -> bool:
    return after[:2] in (["|", "default"], ["|", "d"], ["is", "defined"]) or after == [
        "is",
        "not",
        "defined",
    ]


def _is_constant(tokens: Sequence[ExpressionToken], number: int) -> bool:
    key = tokens[number]
    closes = number + 1 < len(tokens) and tokens[number + 1].text == "]"
    return closes and (key.kind == "string" or (key.kind == "integer" and key.text.isdigit()))


def _bound(tokens: Sequence[ExpressionToken]) -> set[str]:
    """Names of `{% for %}` and `{% set %}`."""
    bound = {"loop"} if any(token.text == "for" for token in tokens) else set()
    for number, token in enumerate(tokens):
        if token.text in ("for", "set") and number and tokens[number - 1].kind == "block_begin":
            for target in tokens[number + 1 :]:
                if target.text in ("in", "=", "if") or target.kind == "block_end":
                    break
                if target.kind == "name":
                    bound.add(target.text)
    return bound


def paths_read(text: object) -> Iterator[tuple[str | int, ...]]:
    """The paths that a value reads, if it is a template."""
    if isinstance(text, str) and is_template(text):
        yield from (read.path for read in reads_of(text))


def respelled(text: str, respell: Respell) -> str:
    """The template with paths respelled."""
    return respelled_reads(text, lambda read: respell(read.path))


def respelled_reads(text: str, respell: Callable[[Read], Respelling | None]) -> str:
    """As `respelled`, by what stands around each path."""
    changes: list[tuple[int, int, str]] = []
    for read in reads_of(text):
        change = respell(read)
        if change is not None:
            changes.append((read.start, read.ends[change.parts - 1], change.text))
    return _spliced(text, changes)


def spelled_rest(read: Read, parts: int, text: str) -> str:
    """What of a path stands after its first parts, as the text has it."""
    return text[read.ends[parts - 1] : read.ends[-1]]


def revalued(text: str, path: tuple[str, ...], values: Mapping[str, str]) -> str:
    """The template with the texts that `path` is compared with replaced: `==`, `!=`, `in […]`."""
    if path not in paths_read(text):
        return text
    tokens = tokens_of(text)
    changes: list[tuple[int, int, str]] = []
    for read in reads_of(text):
        if read.path != path:
            continue
        for token in _compared(tokens, read):
            new = values.get(token.text[1:-1])
            if new is not None:
                quote = token.text[0]
                changes.append((token.start, token.end, f"{quote}{new}{quote}"))
    return _spliced(text, sorted(changes))


def _compared(tokens: Sequence[ExpressionToken], read: Read) -> list[ExpressionToken]:
    """The text constants that a path is compared with."""
    after = tokens[read.after : read.after + 3]
    found: list[ExpressionToken] = []
    if len(after) > 1 and after[0].text in _EQUAL:
        found.append(after[1])
    if read.first > 1 and tokens[read.first - 1].text in _EQUAL:
        found.append(tokens[read.first - 2])
    opening = read.after + 2 if after and after[0].text == "not" else read.after + 1
    if len(tokens) > opening and tokens[opening - 1].text == "in":
        closing = _OPEN.get(tokens[opening].text)
        for token in tokens[opening + 1 :] if closing else ():
            if token.text == closing:
                break
            found.append(token)
    return [token for token in found if token.kind == "string"]


def _spliced(text: str, changes: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    at = 0
    for start, end, new in changes:
        parts += (text[at:start], new)
        at = end
    return "".join((*parts, text[at:]))
