"""What writes to one key come to (LOOP-5, SCOPE-6), said again."""

from collections.abc import Callable, Iterable
from typing import Any


class CannotTake(Exception):
    """A value that the reducer has no way to add."""


class Nothing:
    """No value yet."""


NOTHING = Nothing()


def numeric(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CannotTake(value)
    return value


def listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise CannotTake(value)
    return value


def mapped(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise CannotTake(value)
    return value


FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda old, new: numeric(old) + numeric(new),
    "min": lambda old, new: min(numeric(old), numeric(new)),
    "max": lambda old, new: max(numeric(old), numeric(new)),
    "append": lambda old, new: [*listed(old), new],
    "extend": lambda old, new: [*listed(old), *listed(new)],
    "merge": lambda old, new: {**mapped(old), **mapped(new)},
    "count": lambda old, _: numeric(old) + 1,
    "first": lambda old, _: old,
    "last": lambda _, new: new,
}
FIRST: dict[str, Callable[[Any], Any]] = {
    "append": lambda new: [new],
    "extend": lambda new: list(listed(new)),
    "merge": lambda new: dict(mapped(new)),
    "count": lambda _: 1,
    "first": lambda new: new,
    "last": lambda new: new,
}
"""What the first value alone comes to; of the others it is a number."""


def fold(how: str, start: Any, writes: Iterable[Any]) -> Any:
    value = start
    for new in writes:
        value = FIRST.get(how, numeric)(new) if value is NOTHING else FOLD[how](value, new)
    return value
