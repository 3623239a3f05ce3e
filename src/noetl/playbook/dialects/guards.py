"""
What does a guard of the case dialect come to when a step has ended well, and when it has failed?

A guard names the event that it waits for, and several names mean the same end (EVT-2). With each
comparison settled, the rest is simplified, so that a guard tells by itself which end it is for.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from noetl.expression.syntax import check_guard
from noetl.messages.names import canonical
from noetl.playbook.dialects.names import (
    ExpressionToken,
    Read,
    reads_in,
    revalued,
    tokens_of,
)

End = Literal["ok", "error"]
BOTH: tuple[End, End] = ("ok", "error")
TRUE, FALSE = "true", "false"
ENDS: dict[str, End] = {"step.done": "ok", "loop.done": "ok", "step.failed": "error"}
_EVENT = ("event", "name")
_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_LOOSE: dict[str, frozenset[str]] = {"and": frozenset({"or", "if"}), "or": frozenset({"if"})}
"""By the word at which a text is split: words that bind less, so that it cannot be."""


class Comparison(NamedTuple):
    """`event.name` against constant names, and where that stands in the text."""

    start: int
    end: int
    names: tuple[str, ...]
    negated: bool


def expression_of(guard: object) -> str | None:
    """The text between the braces; None where the guard is not one expression."""
    if isinstance(guard, bool):
        return TRUE if guard else FALSE
    if not isinstance(guard, str) or check_guard(guard) is not None:
        return None
    return guard.strip().removeprefix("{{").removesuffix("}}").strip("-").strip()


def guard_of(expression: str) -> str:
    return f"{{{{ {expression} }}}}"


def _inner(expression: str) -> list[ExpressionToken]:
    """The tokens of an expression; their places count from its own beginning."""
    shift = len("{{ ")
    return [
        ExpressionToken(token.kind, token.text, token.start - shift)
        for token in tokens_of(guard_of(expression))[1:-1]
    ]


def parts_of(expression: str, word: Literal["and", "or"]) -> list[str]:
    """The operands of `and` or `or` at the top of an expression."""
    depth, at = 0, 0
    found: list[str] = []
    for token in _inner(expression):
        if token.kind == "operator" and token.text in _OPENING:
            depth += 1
        elif token.kind == "operator" and token.text in _CLOSING:
            depth -= 1
        elif depth == 0 and token.kind == "name":
            if token.text in _LOOSE[word]:
                return [expression]
            if token.text == word:
                found.append(expression[at : token.start].strip())
                at = token.end
    return [*found, expression[at:].strip()]


def bound(expression: str) -> str:
    """In parentheses, if `and` or `not` beside it would read it differently."""
    loose = len(parts_of(expression, "or")) > 1 or any(
        token.text == "if" and token.kind == "name" for token in _inner(expression)
    )
    return f"({expression})" if loose else expression


def all_of(expressions: Iterable[str]) -> str:
    """The conjunction; what is surely true adds nothing."""
    kept = list(dict.fromkeys(one for one in expressions if one != TRUE))
    if FALSE in kept:
        return FALSE
    return kept[0] if len(kept) == 1 else " and ".join(bound(one) for one in kept) or TRUE


def any_of(expressions: Iterable[str]) -> str:
    kept = list(dict.fromkeys(one for one in expressions if one != FALSE))
    return TRUE if TRUE in kept else " or ".join(kept) or FALSE


def negation(expression: str) -> str:
    """`not` of an expression."""
    if expression in (TRUE, FALSE):
        return FALSE if expression == TRUE else TRUE
    return f"not {expression}" if _is_simple(expression) else f"not ({expression})"


def _is_simple(expression: str) -> bool:
    """One path, which `not` can stand before as it is."""
    tokens = _inner(expression)
    reads = reads_in(tokens_of(guard_of(expression)))
    return len(reads) == 1 and reads[0].after - reads[0].first == len(tokens)


def _unwrapped(expression: str) -> str:
    """Without parentheses around the whole."""
    tokens = _inner(expression)
    if len(tokens) < 2 or tokens[0].text != "(" or tokens[-1].text != ")":
        return expression
    depth = 0
    for token in tokens[:-1]:
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0:
            return expression
    return _unwrapped(expression[1:-1].strip())


def comparisons_in(expression: str) -> list[Comparison]:
    """Every comparison of `event.name` with constants."""
    tokens = tokens_of(guard_of(expression))
    found = [_comparison(tokens, read) for read in reads_in(tokens) if read.path == _EVENT]
    shift = len("{{ ")
    return [one._replace(start=one.start - shift, end=one.end - shift) for one in found if one]


def _comparison(tokens: Sequence[ExpressionToken], read: Read) -> Comparison | None:
    signs = [token.text for token in tokens[read.after : read.after + 3]]
    if signs and signs[0] in ("==", "!=") and tokens[read.after + 1].kind == "string":
        name = tokens[read.after + 1]
        return Comparison(read.start, name.end, (name.text[1:-1],), signs[0] == "!=")
    if read.first > 2 and tokens[read.first - 1].text in ("==", "!="):
        name, sign = tokens[read.first - 2], tokens[read.first - 1]
        if name.kind == "string":
            return Comparison(name.start, read.ends[1], (name.text[1:-1],), sign.text == "!=")
    negated = signs[:2] == ["not", "in"]
    if not negated and signs[:1] != ["in"]:
        return None
    opening = read.after + (2 if negated else 1)
    names: list[str] = []
    for token in tokens[opening + 1 :]:
        if token.text in ("]", ")"):
            return Comparison(read.start, token.end, tuple(names), negated)
        if token.kind == "string":
            names.append(token.text[1:-1])
        elif token.text != ",":
            break
    return None


@lru_cache(maxsize=4096)
def settled(expression: str, end: End) -> str:
    """The expression with every comparison of the event's name decided, and simplified."""
    pieces: list[str] = []
    at = 0
    for one in sorted(comparisons_in(expression)):
        met = any(ENDS.get(canonical(name)) == end for name in one.names)
        pieces += (expression[at : one.start], FALSE if met == one.negated else TRUE)
        at = one.end
    return simplified("".join((*pieces, expression[at:])))


def simplified(expression: str) -> str:
    """Without operands that decide nothing; `response` is there at every end of a step."""
    expression = _unwrapped(expression.strip())
    if expression in ("True", "response is defined", "this is defined"):
        return TRUE
    either = parts_of(expression, "or")
    if len(either) > 1:
        return any_of(simplified(one) for one in either)
    every = parts_of(expression, "and")
    if len(every) > 1:
        return all_of(simplified(one) for one in every)
    if expression.startswith("not "):
        return negation(simplified(expression[4:]))
    return FALSE if expression == "False" else expression


def renamed(expression: str, success: str) -> str:
    """With the event names of this log; what is true at every end is left out."""
    names = {
        name: success if ENDS[canonical(name)] == "ok" else "step.failed"
        for one in comparisons_in(expression)
        for name in one.names
        if canonical(name) in ENDS
    }
    text = revalued(guard_of(expression), _EVENT, names)
    return simplified(text.removeprefix("{{ ").removesuffix(" }}"))
