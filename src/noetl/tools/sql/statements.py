"""Where one statement of PostgreSQL's SQL ends and the next begins, and what each one is."""

import re
from functools import lru_cache
from typing import Self

import msgspec

PIECE = re.compile(
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
COMMENT = re.compile(r"/\*|\*/")
_TRANSACTION = frozenset(
    {"begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release", "prepare"}
)
_READS = frozenset({"select", "values", "table", "with", "show"})
_WRITES = frozenset({"insert", "update", "delete", "merge", "into"})
_SESSION = frozenset({"set", "reset", "listen", "load", "declare", "prepare"})
_SESSION_CALLS = frozenset({"set_config", "pg_advisory_lock", "pg_try_advisory_lock"})
_TEMPORARY = frozenset({"temp", "temporary"})


class Statement(msgspec.Struct, frozen=True):
    """One statement; `words` are its keywords and names in lower case, quoted parts aside."""

    text: str
    first: str
    words: frozenset[str]

    @classmethod
    def of(cls, text: str, words: list[str]) -> Self:
        return cls(text.strip(), words[0] if words else "", frozenset(words))

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


class _Scan:
    """Walks over one text; quotes, comments and nested bodies hide their semicolons."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = 0
        self._words: list[str] = []
        self._nested = 0
        self._bodies = 0
        self._any = False
        self._found: list[Statement] = []

    def run(self) -> tuple[Statement, ...]:
        at, end = 0, len(self._text)
        while at < end:
            piece = PIECE.match(self._text, at)
            assert piece is not None  # the last alternative takes any character
            at = self._take(piece)
        self._close(end)
        return tuple(self._found)

    def _take(self, piece: re.Match[str]) -> int:
        """Note the piece; where to go on."""
        kind, text = piece.lastgroup, piece.group()
        if kind == "block":
            return self._after_comment(piece.end())
        if kind == "line" or text.isspace():
            return piece.end()
        if kind == "mark" and text == ";" and not (self._nested or self._bodies):
            self._close(piece.start())
            self._start = piece.end()
            return piece.end()
        self._any = True
        if kind == "dollar":
            closing = self._text.find(text, piece.end())
            return len(self._text) if closing < 0 else closing + len(text)
        if kind == "mark":
            self._nested = max(0, self._nested + {"(": 1, ")": -1}.get(text, 0))
        if kind == "word":
            self._word(text.lower())
        return piece.end()

    def _word(self, word: str) -> None:
        """`BEGIN ATOMIC … END` is the body of a function; a CASE inside has its own END."""
        if word == "atomic" and self._words[-1:] == ["begin"]:
            self._bodies += 1
        elif self._bodies:
            self._bodies += {"case": 1, "end": -1}.get(word, 0)
        self._words.append(word)

    def _after_comment(self, at: int) -> int:
        depth = 1
        for edge in COMMENT.finditer(self._text, at):
            depth += 1 if edge.group() == "/*" else -1
            if not depth:
                return edge.end()
        return len(self._text)

    def _close(self, end: int) -> None:
        if self._any:
            self._found.append(Statement.of(self._text[self._start : end], self._words))
        self._words, self._any, self._nested = [], False, 0


def split(text: str) -> tuple[Statement, ...]:
    """The statements of a command, in their order; comments alone are none."""
    return _Scan(text).run()


@lru_cache(maxsize=512)
def statements_of(text: str) -> tuple[Statement, ...]:
    """The same for a text of the playbook, which is likely to come again."""
    return split(text)
