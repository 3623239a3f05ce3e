"""What leaves a template: plain JSON data, or text made of it."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from jinja2.runtime import Undefined
from markupsafe import Markup

from noetl.expression.costs import charge_number
from noetl.expression.evaluation import ChargedSequence, Evaluation
from noetl.expression.limits import SCALARS, fits
from noetl.messages.reference import Reference


def text(evaluation: Evaluation, value: Any) -> str:
    """`value` as it stands in text; of plain values only, so that no Python object leaks."""
    kind = type(value)
    if kind is Markup:
        return value.__str__()  # type: ignore[no-any-return]
    if kind is str or kind in SCALARS or isinstance(value, Undefined):
        if kind is int:
            charge_number(evaluation, value)
        return str(value)
    value = evaluation.whole(value, evaluation.meter.prices.writing)
    written = str(plain(evaluation, value, tuples=True))
    fits(len(written), "text")
    return written


def handed_out(evaluation: Evaluation, value: Any) -> Any:
    """What a native expression gives: plain data, no larger than any value may be."""
    return plain(evaluation, evaluation.built(value))


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
    if isinstance(value, str | Undefined):
        return str(value)  # raises where an undefined value reached the output (TPL-3)
    if kind is range or isinstance(value, LAZY):
        children = evaluation.built(evaluation.listed(value))
        return [plain(evaluation, child, tuples=tuples) for child in children]
    if isinstance(value, tuple | list):  # what groupby yields
        return [plain(evaluation, child, tuples=tuples) for child in value]
    raise TypeError(not_data(value))


LAZY: Final[tuple[type, ...]] = (
    ChargedSequence,
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


def encodable(value: str) -> str:
    """`value`, unless it holds half characters, which no JSON text can carry."""
    if not value.isascii():
        value.encode()
    return value


def not_data(value: Any) -> str:
    """Most often a key that is missing has the name of a method: `_prev.items`."""
    name = getattr(value, "__name__", None)
    if not callable(value) or name is None:
        return f"a template gave {article(type(value).__name__)}, which is not plain data"
    if getattr(value, "__self__", None) is None or isinstance(value, type):
        return "a template gave a function, not a value; call it, with (…)"
    owner = article(type(value.__self__).__name__)
    return f"there is no key '{name}' here, and '{name}' of {owner} is a method; correct the name"


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
    if isinstance(key, str | Undefined):
        return str(key)
    if type(key) not in KEYS:
        raise TypeError(
            f"a key of a mapping is {article(type(key).__name__)}, which JSON cannot hold"
        )
    return KEYS[type(key)](key)
