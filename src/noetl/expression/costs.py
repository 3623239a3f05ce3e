"""What slow filters and methods cost beyond reading their input (TPL-5)."""

from typing import Any, Final

from noetl.expression.evaluation import ChargedSequence, Evaluation
from noetl.expression.limits import (
    PLAIN_INTEGER,
    SCALARS,
    SLOWEST_TEXT,
    LimitExceeded,
    measure,
)

COPIED: Final = 100_000
"""Characters copied in a turn: striptags copies the rest of a text for each of its tags."""
COMPARED: Final = 10_000
"""Characters compared in a turn."""
COUNTED: Final = (str, list, tuple, dict, range)


def charge_number(evaluation: Evaluation, number: int) -> None:
    """Before a number is written: a long one takes long."""
    if not -PLAIN_INTEGER < number < PLAIN_INTEGER:
        evaluation.charge(evaluation.meter.prices.number)


def charge_slow(evaluation: Evaluation, name: str, value: Any) -> None:
    """Before a filter of this name works on a value."""
    prices = evaluation.meter.prices
    per, bounded = prices.characters.get(name), name in prices.bounded
    if (per is None and not bounded) or type(value) in SCALARS:
        return
    text = value if isinstance(value, str) else None
    size = measure(value, prices.heavy)[0] if text is None else len(text)
    if size > SLOWEST_TEXT and (text is not None or (bounded and per)):
        raise LimitExceeded(f"this filter takes at most {SLOWEST_TEXT:,} characters")
    if per is None:
        return
    evaluation.charge(size // per)
    if name == "striptags":
        tags = size // 3 if text is None else text.count("<")
        evaluation.charge(tags * size // COPIED)


def charge_method(evaluation: Evaluation, name: str, value: str) -> None:
    """Before a method of a text."""
    if evaluation.meter.prices.broad:
        charge_slow(evaluation, name, value)


def charge_compared(evaluation: Evaluation, value: Any) -> None:
    """Before a text is compared with another, letter by letter."""
    if isinstance(value, str) and evaluation.meter.prices.broad:
        evaluation.charge(len(value) // COMPARED)


def charged_elements(evaluation: Evaluation, name: str, value: Any) -> Any:
    """What a filter goes through, whose turns are charged apart; a lazy is taken to be counted."""
    each = evaluation.meter.prices.elements.get(name)
    if not each:
        return value
    if type(value) is ChargedSequence:
        value = list(value)
    if isinstance(value, COUNTED):
        evaluation.charge(each * len(value))
    return value
