"""
What slow filters and methods cost beyond reading their input (TPL-5).

The numbers are measured: a turn of any filter takes about as long as one of any other, so that a
million of them stay a matter of seconds. tests/unit/expression/test_costs.py compares them all.
"""

from collections.abc import Mapping
from typing import Any, Final

from noetl.expression.evaluation import Evaluation
from noetl.expression.limits import (
    PLAIN_INTEGER,
    SCALARS,
    SLOWEST_TEXT,
    TURNS_PER_NUMBER,
    LimitExceeded,
    measure,
)

CHARACTERS: Final[Mapping[str, int]] = {
    "pprint": 4,
    "striptags": 8,
    "title": 8,
    "truncate": 100,
    "unescape": 8,
    "urlize": 1,
    "wordcount": 8,
    "wordwrap": 1,
    "xmlattr": 8,
}
"""Name → characters that take a turn."""
BOUNDED: Final = frozenset(
    {"striptags", "title", "truncate", "unescape", "urlize", "wordcount", "wordwrap"}
)
"""They make text of whatever they get, and some take longer for each character of a longer text."""
COPIED: Final = 100_000
"""Characters copied in a turn: striptags copies the rest of a text for each of its tags."""


def charge_number(evaluation: Evaluation, number: int) -> None:
    """Before a number is written: a long one takes long."""
    if not -PLAIN_INTEGER < number < PLAIN_INTEGER:
        evaluation.charge(TURNS_PER_NUMBER)


def charge_slow(evaluation: Evaluation, name: str, value: Any) -> None:
    """Before a filter or a method of this name works on a value."""
    per = CHARACTERS.get(name)
    if per is None or type(value) in SCALARS:
        return
    text = value if isinstance(value, str) else None
    size = measure(value)[0] if text is None else len(text)
    if size > SLOWEST_TEXT and (name in BOUNDED or text is not None):
        raise LimitExceeded(f"this filter takes at most {SLOWEST_TEXT:,} characters")
    evaluation.charge(size // per)
    if name == "striptags":
        tags = size // 3 if text is None else text.count("<")
        evaluation.charge(tags * size // COPIED)
