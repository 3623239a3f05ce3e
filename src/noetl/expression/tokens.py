"""The tokens of an expression, cut by one pattern: the everyday part of Jinja2's lexer."""

import re
from typing import Any, Final

Tokens = tuple[list[str], list[Any], int]


class Unusual(Exception):
    """Something that Jinja2's own lexer and parser must judge: rare syntax, or a fault."""


# What is left out here (escapes, `1_000`, `0x1f`, letters beyond ASCII) is unusual, not wrong.
TOKEN: Final = re.compile(
    r"""\s*(?:
      ([A-Za-z_][A-Za-z0-9_]*)(?![^\x00-\x7f])
    | ('[^'\\\r]*'|"[^"\\\r]*")
    | ([0-9]+\.[0-9]+)(?![\w.])
    | (0|[1-9][0-9]{0,17})(?![\w.])
    | (}}|//|\*\*|==|!=|>=|<=|[-+/*%~()\[\]{}<>=.:|,])
    )""",
    re.VERBOSE,
)
NAME, STRING, FLOAT, INTEGER = "name", "string", "float", "integer"
END: Final = "end"
KEYWORDS: Final = frozenset({"and", "else", "if", "in", "is", "not", "or"})  # kinds of their own
DEPTHS: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def tokens_from(text: str, start: int) -> Tokens:
    """The kinds and values of the tokens after `{{`, and where the text goes on after `}}`."""
    kinds: list[str] = []
    values: list[Any] = []
    match = TOKEN.match
    depth = 0  # of brackets; whether they match is for the grammar
    position = start
    while True:
        found = match(text, position)
        if found is None:
            raise Unusual
        group = found.lastindex or 0
        value = found[group]
        position = found.end()
        if group == 1:
            kinds.append(value if value in KEYWORDS else NAME)
            values.append(value)
        elif group == 5:
            if value == "}}":
                if depth <= 0:
                    break
                value, position = "}", position - 1
            depth += DEPTHS.get(value, 0)
            kinds.append(value)
            values.append(value)
        elif group == 2:
            kinds.append(STRING)
            values.append(value[1:-1])
        else:
            kinds.append(INTEGER if group == 4 else FLOAT)
            values.append(int(value) if group == 4 else float(value))
    if not kinds or kinds[-1] in "+-":  # `-}}` and `+}}` steer white space
        raise Unusual
    kinds += (END, END)
    values += (None, None)
    return kinds, values, position
