"""What a template may call: a few functions and harmless methods, their growth foreseen (TPL-5)."""

from collections.abc import Callable, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, LoopContext, Macro, Undefined
from jinja2.utils import Joiner

from noetl.expression.evaluation import Evaluation
from noetl.expression.formatting import format_map, formatted
from noetl.expression.limits import CHARACTERS_PER_TURN, fits
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
        if function.__name__ in METHODS.get(type(function.__self__), ()):
            return function(*args, **kwargs)
    elif any(function is known for known in GLOBALS.values()):
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
        evaluation.charge(len(owner) // CHARACTERS_PER_TURN)
        if name == "join" and args:
            args = (turned(evaluation, args[0]), *args[1:])
        if name in FORMATS:
            return FORMATS[name](evaluation, owner, *args, **kwargs)
        if name in GROWING:
            GROWING[name](owner, *args, **kwargs)
    elif isinstance(owner, list | tuple | range):
        evaluation.charge(len(owner))
    result = method(*args, **kwargs)
    if isinstance(result, list | tuple):
        evaluation.charge(len(result))
    return result


def turned(evaluation: Evaluation, values: Any) -> Any:
    """What a loop goes over, all its turns charged before the first."""
    values = evaluation.body(values)
    if isinstance(values, list | tuple | dict | str | range):
        evaluation.charge(len(values))
        return values
    return evaluation.listed(values)
