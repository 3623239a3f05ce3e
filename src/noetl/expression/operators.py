"""What operators do: as in Python, within the limits (TPL-5)."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from jinja2.runtime import Undefined, markup_join, str_join
from markupsafe import Markup

from noetl.expression.costs import charge_compared
from noetl.expression.evaluation import Evaluation
from noetl.expression.formatting import printf
from noetl.expression.limits import (
    CHARACTERS_PER_TURN,
    MOST_BITS,
    bounded_integer,
    fits,
    weight,
)
from noetl.expression.output import text
from noetl.messages.reference import Reference

SEQUENCES: Final = (str, list, tuple)
TEXT: Final = frozenset({str})
Binary = Callable[[Evaluation, Any, Any], Any]


def add(evaluation: Evaluation, left: Any, right: Any) -> Any:
    if type(left) in SEQUENCES and type(right) in SEQUENCES:
        length = fits(len(left) + len(right), "a sum of sequences")
        texts = type(left) is str and type(right) is str
        wide = 1 if texts and left.isascii() and right.isascii() else 4
        evaluation.charge(1 + wide * length // CHARACTERS_PER_TURN)
        return left + right
    return checked(left + right)


def multiply(evaluation: Evaluation, left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MOST_BITS + 2:
            bounded_integer(1 << (MOST_BITS + 1))
        return bounded_integer(left * right)
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, SEQUENCES) and isinstance(times, int):
            length = fits(len(sequence) * max(times, 0), "a repeated sequence")
            if isinstance(sequence, str):
                length = max(times, 0) * weight(sequence) // CHARACTERS_PER_TURN
            evaluation.charge(1 + length)
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


BINARY: Final[Mapping[str, Binary]] = {
    "+": add,
    "-": lambda _, left, right: checked(left - right),
    "*": multiply,
    "/": lambda _, left, right: left / right,
    "//": lambda _, left, right: left // right,
    "**": power,
    "%": modulo,
}


def checked(value: Any) -> Any:
    return bounded_integer(value) if type(value) is int else value


def contains(evaluation: Evaluation, element: Any, container: Any) -> bool:
    """`element in container`; an undefined element is in nothing (TPL-3)."""
    container = evaluation.body(container)
    element = evaluation.body(element)
    kind = type(container)
    if kind is list or kind is tuple:
        evaluation.search(element, container)
        if any(type(child) is Reference for child in container):
            container = [evaluation.body(child) for child in container]
    elif isinstance(container, str):
        evaluation.charge_text(container)
    if isinstance(element, Undefined):
        return False
    return bool(element in container)


def comparable(evaluation: Evaluation, value: Any) -> Any:
    """What `==` may compare deeply: references inside stand for their bodies."""
    if type(value) in (dict, list, tuple):
        return evaluation.whole(value)
    value = evaluation.body(value)
    charge_compared(evaluation, value)
    return value


def concatenate(evaluation: Evaluation, values: tuple[Any, ...], escaping: bool = False) -> str:
    """`a ~ b`."""
    if not escaping and TEXT.issuperset(map(type, values)):
        length = fits(sum(map(len, values)), "joined text")
        joined = "".join(values)
        if joined.isascii():  # else each text is weighed by itself
            evaluation.charge(1 + length // CHARACTERS_PER_TURN)
            return joined
    texts = [
        value if isinstance(value, Markup) else text(evaluation, evaluation.body(value))
        for value in values
    ]
    fits(sum(map(len, texts)), "joined text")
    evaluation.charge(1 + sum(map(weight, texts)) // CHARACTERS_PER_TURN)
    return markup_join(texts) if escaping else str_join(texts)


def cut(evaluation: Evaluation, value: Any, start: Any, stop: Any, stride: Any) -> Any:
    """`value[start:stop:stride]`."""
    part = evaluation.body(value)[start:stop:stride]
    evaluation.charge(1 + 4 * len(part) // CHARACTERS_PER_TURN)
    return part
