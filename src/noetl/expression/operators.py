"""What operators, calls and text output do: as in Python, within the limits (TPL-5)."""

import operator
from collections.abc import Callable, Mapping
from string import Formatter
from types import BuiltinMethodType, MethodType
from typing import Any, Final

from jinja2.exceptions import SecurityError
from jinja2.runtime import BlockReference, LoopContext, Macro, Undefined, markup_join, str_join
from jinja2.sandbox import SandboxedFormatter
from jinja2.utils import Joiner
from markupsafe import Markup

from noetl.expression.evaluation import Evaluation
from noetl.expression.limits import (
    CHARACTERS_PER_TURN,
    LARGEST_VALUE,
    MOST_BITS,
    SCALARS,
    bounded_integer,
    fits,
    printf_fits,
)
from noetl.expression.lookup import GLOBALS, METHODS
from noetl.messages.reference import Reference

SEQUENCES: Final = (str, list, tuple)
Binary = Callable[[Evaluation, Any, Any], Any]


def add(evaluation: Evaluation, left: Any, right: Any) -> Any:
    if type(left) in SEQUENCES and type(right) in SEQUENCES:
        length = fits(len(left) + len(right), "a sum of sequences")
        evaluation.charge(1 + length // CHARACTERS_PER_TURN)
        return left + right
    return checked(left + right)


def subtract(_: Evaluation, left: Any, right: Any) -> Any:
    return checked(left - right)


def multiply(evaluation: Evaluation, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MOST_BITS + 2:
            bounded_integer(1 << (MOST_BITS + 1))
        return bounded_integer(left * right)
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, SEQUENCES) and isinstance(times, int):
            length = fits(len(sequence) * max(times, 0), "a repeated sequence")
            per_turn = CHARACTERS_PER_TURN if isinstance(sequence, str) else 1
            evaluation.charge(1 + length // per_turn)
    return left * right


def power(_: Evaluation, left: Any, right: Any) -> Any:
    if (
        isinstance(left, int)
        and isinstance(right, int)
        and abs(left) > 1
        and (abs(left).bit_length() - 1) * right > MOST_BITS
    ):
        bounded_integer(1 << (MOST_BITS + 1))
    return checked(left**right)


def modulo(evaluation: Evaluation, left: Any, right: Any) -> Any:
    if isinstance(left, str):
        return printf(evaluation, left, right)
    return left % right


def printf(evaluation: Evaluation, template: str, arguments: Any) -> str:
    given: Any = arguments
    if isinstance(arguments, Mapping):
        given = tuple(arguments.values())
    elif not isinstance(arguments, tuple):
        given = (arguments,)
    largest = max((len(text(evaluation, argument)) for argument in given), default=0)
    numbers = [argument for argument in given if isinstance(argument, int)]
    printf_fits(template, largest, numbers)
    evaluation.charge(1 + len(template) // CHARACTERS_PER_TURN)
    return str(template % evaluation.filled(arguments))


def divide(_: Evaluation, left: Any, right: Any) -> Any:
    return left / right


def divide_down(_: Evaluation, left: Any, right: Any) -> Any:
    return left // right


BINARY: Final[Mapping[str, Binary]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "//": divide_down,
    "**": power,
    "%": modulo,
}


def checked(value: Any) -> Any:
    return bounded_integer(value) if type(value) is int else value


def contains(evaluation: Evaluation, element: Any, container: Any) -> bool:
    """`element in container`; undefined never raises in a guard, whatever the container."""
    container = evaluation.body(container)
    element = evaluation.body(element)
    kind = type(container)
    if kind is list or kind is tuple:
        evaluation.charge(len(container))
        if any(type(child) is Reference for child in container):
            container = [evaluation.body(child) for child in container]
    elif isinstance(container, str):
        evaluation.charge(1 + len(container) // CHARACTERS_PER_TURN)
    if isinstance(element, Undefined):
        return bool(element == container)  # false in a guard, an error elsewhere (TPL-3)
    return bool(element in container)


def absent(evaluation: Evaluation, element: Any, container: Any) -> bool:
    """`element not in container`."""
    return not contains(evaluation, element, container)


def comparable(evaluation: Evaluation, value: Any) -> Any:
    """What `==` may compare deeply: references inside stand for their bodies."""
    return evaluation.whole(value) if type(value) in (dict, list, tuple) else evaluation.body(value)


def text(evaluation: Evaluation, value: Any) -> str:
    """`value` as it stands in text; of plain values only, so that no Python object leaks."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind in SCALARS:
        return str(value)
    if kind is Markup:
        return value.__str__()  # type: ignore[no-any-return]
    if isinstance(value, Undefined):
        return str(value)
    written = str(plain(evaluation, evaluation.whole(value), tuples=True))
    fits(len(written), "text")
    return written


def concatenate(evaluation: Evaluation, values: tuple[Any, ...], escaping: bool = False) -> str:
    """`a ~ b`."""
    texts = [
        value if isinstance(value, Markup) else text(evaluation, evaluation.body(value))
        for value in values
    ]
    length = fits(sum(map(len, texts)), "joined text")
    evaluation.charge(1 + length // CHARACTERS_PER_TURN)
    return markup_join(texts) if escaping else str_join(texts)


def cut(evaluation: Evaluation, value: Any, start: Any, stop: Any, stride: Any) -> Any:
    """`value[start:stop:stride]`."""
    part = evaluation.body(value)[start:stop:stride]
    evaluation.charge(1 + len(part) // CHARACTERS_PER_TURN)
    return part


def plain(evaluation: Evaluation, value: Any, *, tuples: bool = False) -> Any:
    """`value` as plain JSON data: lazies become lists; what JSON cannot hold is an error."""
    kind = type(value)
    if kind is str or kind in SCALARS:
        return finite(value) if kind is float and not tuples else value
    if kind is Reference:
        return value
    if kind is list or kind is tuple:
        children = [plain(evaluation, child, tuples=tuples) for child in value]
        return tuple(children) if tuples and kind is tuple else children
    if kind is dict:
        return {
            key if tuples else key_of(key): plain(evaluation, child, tuples=tuples)
            for key, child in value.items()
        }
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Undefined):
        return str(value)  # raises: an undefined value reached the output (TPL-3)
    if kind is range or isinstance(value, LAZY):
        return [plain(evaluation, child, tuples=tuples) for child in evaluation.listed(value)]
    if isinstance(value, tuple | list):  # what groupby yields
        return [plain(evaluation, child, tuples=tuples) for child in value]
    raise TypeError(f"a template gave {article(kind.__name__)}, which is not plain data")


LAZY: Final[tuple[type, ...]] = (
    type(iter(())),
    type(iter([])),
    type(reversed([])),
    type(reversed({})),
    type(reversed({}.values())),
    type(reversed({}.items())),
    type(iter({})),
    type({}.keys()),
    type({}.values()),
    type({}.items()),
    type(_ for _ in ()),
    type(iter(range(0))),
    type(zip((), strict=False)),
)


def article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def finite(value: float) -> float:
    if value - value != 0:  # infinite or not a number
        raise ValueError(f"a template gave {value}, which JSON cannot hold")
    return value


KEYS: Final[Mapping[type, Callable[[Any], str]]] = {
    bool: lambda key: "true" if key else "false",
    type(None): lambda _: "null",
    int: str,
    float: str,
}


def key_of(key: Any) -> str:
    """A key as JSON has it: text."""
    if isinstance(key, str):
        return str(key)
    if isinstance(key, Undefined):
        return str(key)
    if type(key) not in KEYS:
        raise TypeError(
            f"a key of a mapping is {article(type(key).__name__)}, which JSON cannot hold"
        )
    return KEYS[type(key)](key)


# -- calls ------------------------------------------------------------------------------------


class BoundedFormatter(SandboxedFormatter):
    """`str.format` without private attributes and without huge widths."""

    def __init__(self, evaluation: Evaluation) -> None:
        super().__init__(evaluation)  # type: ignore[arg-type]
        self.evaluation = evaluation
        self.length = 0

    def format_field(self, value: Any, format_spec: str) -> Any:
        value = plain(self.evaluation, self.evaluation.whole(value), tuples=True)
        figures = "".join(sign if sign.isdigit() else " " for sign in format_spec).split()
        for figure in figures:
            fits(int(figure) if len(figure) < 9 else LARGEST_VALUE + 1, "formatted text")
        written = super().format_field(value, format_spec)
        self.evaluation.charge(1)
        self.length = fits(self.length + len(written), "formatted text")
        return written


def formatted(evaluation: Evaluation, template: str, args: Any, kwargs: Any) -> str:
    formatter: Formatter = BoundedFormatter(evaluation)
    return formatter.vformat(template, args, kwargs)


def format_map(evaluation: Evaluation, template: str, mapping: Any) -> str:
    return formatted(evaluation, template, (), evaluation.body(mapping))


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


UNARY: Final[Mapping[str, Callable[[Any], Any]]] = {"-": operator.neg, "+": operator.pos}
