"""Where one statement of PostgreSQL's SQL ends and the next begins, and what each one is."""

import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec

_PIECE = re.compile(
    r"""
      (?P<quoted> [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<dollar> \$(?:[^\W\d]\w*)?\$ )
    | (?P<line> --[^\n]* )
    | (?P<block> /\* )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<mark> [();] )
    | \d[\w.]* | \s+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_TRANSACTION = frozenset(
    {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare"}
)
_READS = frozenset({"select", "values", "table", "with", "show"})
_WRITES = frozenset({"insert", "update", "delete", "merge", "into"})
_SESSION = frozenset({"set", "reset", "listen", "load", "declare", "prepare"})
_SESSION_CALLS = frozenset({"set_config", "pg_advisory_lock", "pg_try_advisory_lock"})
_TEMPORARY = frozenset({"temp", "temporary"})
_NESTING = {"(": 1, ")": -1, "case": 1, "end": -1}


class Statement(msgspec.Struct, frozen=True):
    """One statement; `words` are its keywords and names in lower case, quoted parts aside."""

    text: str
    first: str
    words: frozenset[str]

    @property
    def controls_transaction(self) -> bool:
        return self.first in _TRANSACTION

    @property
    def only_reads(self) -> bool:
        """Certain to answer with rows, so that they can be read one by one."""
        return self.first in _READS and not self.words & _WRITES

    @property
    def copies_to_client(self) -> bool:
        """COPY over the connection itself, which no result of a task can carry."""
        return self.first == "copy" and bool(self.words & {"stdin", "stdout"})

    @property
    def leaves_traces(self) -> bool:
        """Changes the session beyond the call, so that the connection is not used again."""
        if self.first in _SESSION or self.words & _SESSION_CALLS:
            return True
        makes_table = self.first == "create" or "into" in self.words
        return makes_table and bool(self.words & _TEMPORARY)


def pieces(text: str) -> Iterator[tuple[str | None, str]]:
    """All of the text, each piece with its kind; comments and dollar-quoted texts are one each."""
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        assert piece is not None  # the last alternative takes any character
        kind, end = piece.lastgroup, piece.end()
        if kind == "block":
            end = _after_comment(text, end)
        elif kind == "dollar":
            closing = text.find(piece.group(), end)
            end = len(text) if closing < 0 else closing + len(piece.group())
        yield kind, text[at:end]
        at = end


def _after_comment(text: str, at: int) -> int:
    depth = 1
    for edge in _COMMENT.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if not depth:
            return edge.end()
    return len(text)


def split(text: str) -> tuple[Statement, ...]:
    """The statements of a command, in their order; comments alone are none."""
    found: list[Statement] = []
    parts, words, empty, nested, bodies = list[str](), list[str](), True, 0, 0
    for kind, piece in (*pieces(text), (None, "")):
        ends = kind == "mark" and piece == ";" and not (nested or bodies)
        if ends or not piece:
            if not empty:
                first = words[0] if words else ""
                found.append(Statement("".join(parts).strip(), first, frozenset(words)))
            parts, words, empty = [], [], True
            continue
        parts.append(piece)
        empty = empty and (kind in ("line", "block") or piece.isspace())
        if kind == "mark":
            nested = max(0, nested + _NESTING.get(piece, 0))
        elif kind == "word":
            word = piece.lower()
            # `BEGIN ATOMIC … END` is the body of a function; a CASE inside has its own END.
            if word == "atomic" and words[-1:] == ["begin"]:
                bodies += 1
            elif bodies:
                bodies += _NESTING.get(word, 0)
            words.append(word)
    return tuple(found)


statements_of = lru_cache(maxsize=512)(split)
"""The same for a text of the playbook, which is likely to come again."""


@lru_cache(maxsize=512)
def is_plain_read(text: str) -> bool:
    """Whether it is one statement that answers with rows and leaves nothing behind."""
    found = statements_of(text)
    return len(found) == 1 and found[0].only_reads and not found[0].leaves_traces
