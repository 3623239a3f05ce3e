"""What stock Jinja2 makes of an expression, told in the form in which ours is compared with it."""

import warnings
from types import GeneratorType
from typing import Any

from jinja2 import StrictUndefined, UndefinedError
from jinja2.runtime import Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from noetl.errors import TemplateFailed
from noetl.expression.template import compile_text

# Not optimized: what stock folds while compiling can differ from what it would evaluate.
STOCK = ImmutableSandboxedEnvironment(undefined=StrictUndefined, optimized=False)
LAZY: tuple[type, ...] = (
    range,
    GeneratorType,
    type({}.keys()),
    type({}.values()),
    type({}.items()),
)

NAMES: dict[str, Any] = {
    "n": 7,
    "zero": 0,
    "f": 2.5,
    "t": True,
    "nothing": None,
    "s": "Hello World",
    "empty": "",
    "html": "<b>bold & \"quoted\"</b> 'x'",
    "lines": "one\ntwo\n\nthree",
    "xs": [3, 1, 2],
    "words": ["pear", "Apple", "fig"],
    "nested": [[1, 2], [3], []],
    "d": {"a": 1, "b": {"c": [10, 20, {"e": "deep"}]}, "key with space": 2},
    "users": [
        {"name": "Ann", "age": 30, "city": "Rome"},
        {"name": "bob", "age": 25, "city": "Oslo"},
        {"name": "Cid", "age": 30, "city": "Rome"},
    ],
}


def jsonable(value: Any) -> Any:
    """Stock's value as ours would be handed out: lists for lazies and tuples, plain text."""
    if isinstance(value, Undefined):
        return str(value)
    if isinstance(value, dict):
        return {str(key): jsonable(child) for key, child in value.items()}
    if isinstance(value, (list, tuple, *LAZY)) or hasattr(value, "__next__"):
        return [jsonable(child) for child in value]
    return str(value) if isinstance(value, str) else value


def typed(value: Any) -> Any:
    """The value together with the types of all its parts: 1, True and 1.0 are three things."""
    if isinstance(value, dict):
        return {key: typed(child) for key, child in value.items()}
    if isinstance(value, list):
        return [typed(child) for child in value]
    return type(value).__name__, value


def stock_expression(source: str, names: dict[str, Any] = NAMES) -> Any:
    try:
        with warnings.catch_warnings():  # Python's compiler warns of what stock writes for `0[1:]`
            warnings.simplefilter("ignore", SyntaxWarning)
            expression = STOCK.compile_expression(source, undefined_to_none=False)
        value = expression(**names)
        return typed(jsonable(value))
    except Exception as error:
        return "error", error_class(error)


def our_expression(source: str, names: dict[str, Any] = NAMES) -> Any:
    return outcome_of("{{ " + source + " }}", names)


def stock_text(template: str, names: dict[str, Any] = NAMES) -> Any:
    try:
        return typed(STOCK.from_string(template).render(**names))
    except Exception as error:
        return "error", error_class(error)


def outcome_of(template: str, names: dict[str, Any] = NAMES) -> Any:
    try:
        return typed(compile_text(template)({"workload": names}))
    except TemplateFailed as failed:
        return "error", error_class(failed.__cause__)


def error_class(error: BaseException | None) -> str:
    return "undefined" if isinstance(error, UndefinedError) else type(error).__name__
