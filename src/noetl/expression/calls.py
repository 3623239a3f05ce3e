"""What a template may call: a few functions and harmless methods, their growth foreseen (TPL-5)."""

import sys
from collections.abc import Callable, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, LoopContext, Macro, Undefined
from jinja2.utils import Joiner

from noetl.expression.costs import charge_method
from noetl.expression.evaluation import Evaluation
from noetl.expression.formatting import format_map, formatted
from noetl.expression.limits import LimitExceeded, fits
from noetl.expression.lookup import GLOBALS, METHODS


def width_fits(value: str, width: Any = 0, *_: Any) -> None:
    if isinstance(width, int):
        fits(max(width, len(value)), "padded text")


def tabs_fit(value: str, tabsize: Any = 8) -> None:
    if isinstance(tabsize, int):
        fits(len(value) + value.count("\t") * max(tabsize, 0), "expanded text")


def replacement_fits(value: str, old: Any = "", new: Any = "", *_: Any) -> None:
    if isinstance(old, str) and isinstance(new, str):
        fits(len(value) + value.count(old) * max(len(new) - len(old), 0), "replaced text")


def join_fits(value: str, parts: Any = ()) -> None:
    if isinstance(parts, list | tuple | str):
        length = sum(len(part) for part in parts if isinstance(part, str))
        fits(length + len(value) * len(parts), "joined text")


def charge_pieces(evaluation: Evaluation, value: str, sep: Any = None, maxsplit: Any = -1) -> None:
    """Charge the pieces of a text before they are made: each is an object of its own."""
    ends = (sep,) if isinstance(sep, str) else SPACES
    pieces = sum(value.count(end) for end in ends if end)
    bound = isinstance(maxsplit, int) and maxsplit >= 0
    evaluation.charge(min(pieces, maxsplit) if bound else pieces)


def charge_lines(evaluation: Evaluation, value: str, *_: Any, **__: Any) -> None:
    evaluation.charge(sum(value.count(end) for end in LINE_ENDS))


SPACES: Final = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
LINE_ENDS: Final = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
GROWING: Final[Mapping[str, Callable[..., None]]] = {
    "center": width_fits,
    "ljust": width_fits,
    "rjust": width_fits,
    "zfill": width_fits,
    "expandtabs": tabs_fit,
    "replace": replacement_fits,
    "join": join_fits,
}
FORMATS: Final[Mapping[str, Callable[..., str]]] = {
    "format": lambda evaluation, template, *args, **kwargs: formatted(
        evaluation, template, args, kwargs
    ),
    "format_map": format_map,
}
CUTTING: Final[Mapping[str, Callable[..., None]]] = {
    "split": charge_pieces,
    "rsplit": charge_pieces,
    "splitlines": charge_lines,
}
CALLABLE: Final = (Macro, Joiner, BlockReference)


def call(evaluation: Evaluation, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`function(…)`: one of the harmless ones, its arguments measured, its growth foreseen."""
    evaluation.charge(1)
    if isinstance(function, Undefined):
        return function()
    if type(function) is BuiltinMethodType:
        return call_method(evaluation, function, args, kwargs)
    if isinstance(function, LoopContext):  # a recursive loop: what it iterates is counted
        return function(turned(evaluation, *args))
    if isinstance(function, CALLABLE):
        return function(*args, **kwargs)
    if isinstance(function, MethodType):
        if isinstance(function.__self__, str):  # text that is marked as safe for HTML
            return call_method(evaluation, function, args, kwargs)
        if function.__name__ in METHODS.get(type(function.__self__), ()):
            return function(*args, **kwargs)
    elif any(function is known for known in GLOBALS.values()):
        if function is dict:
            return evaluation.built(mapping(evaluation, *args, **kwargs))
        return evaluation.built(function(*args, **kwargs))
    elif not callable(function):
        return function()  # Python's own error: not callable
    raise SecurityError(f"{function!r} is not safely callable")


def call_method(
    evaluation: Evaluation, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    owner, name = method.__self__, method.__name__
    if name not in METHODS.get(type(owner), ()):
        raise SecurityError(f"{name!r} is not safely callable")
    args = tuple(evaluation.whole(argument) for argument in args)
    if isinstance(owner, str):
        evaluation.charge_text(owner)
        charge_method(evaluation, name, owner)
        if name == "join" and args:
            args = (turned(evaluation, args[0]), *args[1:])
        if name in FORMATS:
            return FORMATS[name](evaluation, owner, *args, **kwargs)
        if name in GROWING:
            GROWING[name](owner, *args, **kwargs)
        if name in CUTTING:
            CUTTING[name](evaluation, owner, *args, **kwargs)
    elif isinstance(owner, list | tuple | range) and args:
        evaluation.search(args[0], owner)
    result = method(*args, **kwargs)
    if isinstance(result, str):
        fits(len(result), "text")
    elif isinstance(result, list | tuple) or (
        isinstance(result, dict) and evaluation.meter.prices.broad
    ):
        evaluation.charge(len(result))
    return result


def mapping(evaluation: Evaluation, *args: Any, **kwargs: Any) -> dict[Any, Any]:
    """`dict(…)`; keys that are large numbers are few, since Python finds those slowly."""
    if args and not isinstance(args[0], dict):
        pairs = [tuple(turned(evaluation, pair)) for pair in turned(evaluation, args[0])]
        if sum(spread(pair[0]) is not pair[0] for pair in pairs if pair) > MOST_LARGE_KEYS:
            raise LimitExceeded(f"dict() takes at most {MOST_LARGE_KEYS:,} large numbers as keys")
        args = (pairs, *args[1:])
    return dict(*args, **kwargs)


MOST_LARGE_KEYS: Final = 1_000
SAME_HASH: Final = sys.hash_info.modulus


def spread(value: Any) -> Any:
    """
    What stands for `value` in a set. The hash of a number is its remainder, so that numbers can be
    chosen which all collide; the large ones are kept as text, whose hash nobody can foresee.
    """
    if isinstance(value, int | float) and not -SAME_HASH < value < SAME_HASH:
        return ("number", str(int(value))) if value - value == 0 else value
    if isinstance(value, tuple):
        return ("tuple", *map(spread, value))
    return value


def turned(evaluation: Evaluation, values: Any) -> Any:
    """What a loop goes over, all its turns charged before the first."""
    values = evaluation.body(values)
    if isinstance(values, list | tuple | dict | str | range):
        evaluation.charge(len(values))
        return values
    return evaluation.listed(values)
