"""How many writes become one value (LOOP-5): one small function per reducer."""

from collections.abc import Callable, Iterable
from typing import Any

from noetl.playbook.model import Reducer

MISSING = object()
"""The key had no value when the loop began."""

Fold = Callable[[Any, Any], Any]


def _plus(total: Any, value: Any) -> Any:
    return value if total is MISSING else total + value


def _least(least: Any, value: Any) -> Any:
    return value if least is MISSING or value < least else least


def _most(most: Any, value: Any) -> Any:
    return value if most is MISSING or value > most else most


def _append(values: Any, value: Any) -> Any:
    return [*([] if values is MISSING else values), value]


def _extend(values: Any, more: Any) -> Any:
    return [*([] if values is MISSING else values), *more]


def _merge(mapping: Any, more: Any) -> Any:
    return {**({} if mapping is MISSING else mapping), **more}


def _count(number: Any, _: Any) -> Any:
    return (0 if number is MISSING else number) + 1


def _first(first: Any, value: Any) -> Any:
    return value if first is MISSING else first


def _last(_: Any, value: Any) -> Any:
    return value


REDUCERS: dict[Reducer, Fold] = {
    "sum": _plus,
    "min": _least,
    "max": _most,
    "append": _append,
    "extend": _extend,
    "merge": _merge,
    "count": _count,
    "first": _first,
    "last": _last,
}

GROWS_IN_PLACE: dict[Reducer, Callable[[Any, Any], None]] = {
    "append": list.append,
    "extend": list.extend,
    "merge": dict.update,
}
"""What may change a value that the fold owns, so that a long loop does not copy it each time."""


PILED: frozenset[Reducer] = frozenset({"append", "extend"})
"""Those whose value grows with the loop."""

LOOKS_INTO: frozenset[Reducer] = frozenset({"sum", "min", "max", "merge"})
"""Those that need the values themselves: a reference cannot be folded."""


def owned(value: Any) -> Any:
    """A copy that the fold may grow in place: ctx as others see it stays as it was."""
    if isinstance(value, list):
        return list(value)
    return dict(value) if isinstance(value, dict) else value


def fold(
    reduce: dict[str, Reducer], reduced: dict[str, Any], writes: Iterable[tuple[str, Any]]
) -> None:
    """
    Fold an iteration's writes, in their order, into `reduced`, which the loop owns.

    Raises TypeError where a write does not fit (text into a sum); then nothing was folded.
    """
    fresh: dict[str, Any] = {}
    grown: list[tuple[Callable[[Any, Any], None], str, Any]] = []
    for key, value in writes:
        how = reduce[key]
        grow = GROWS_IN_PLACE.get(how)
        before = fresh[key] if key in fresh else reduced.get(key, MISSING)
        check_types(how, before, value)
        if grow is not None and before is not MISSING:
            grown.append((grow, key, value))
        else:
            fresh[key] = REDUCERS[how](before, value)
    reduced.update(fresh)
    for grow, key, value in grown:
        grow(reduced[key], value)


def onto(how: Reducer, base: Any, folded: Any) -> Any:
    """What was folded from nothing, put onto what there was before; raises TypeError."""
    check_types(how, base, folded)
    return REDUCERS[how](base, folded)


TAKES: dict[Reducer, tuple[type | None, type | None]] = {
    "append": (list, None),
    "extend": (list, list),
    "merge": (dict, dict),
}
"""What a reducer grows, and by what; None: anything."""


def check_types(how: Reducer, before: Any, value: Any) -> None:
    """Raise TypeError before anything is grown by half."""
    grows, by = TAKES.get(how, (None, None))
    if grows is not None and before is not MISSING and not isinstance(before, grows):
        raise TypeError(f"`{how}` needs a {grows.__name__} in ctx, found {describe(before)}")
    if by is not None and not isinstance(value, by):
        raise TypeError(f"`{how}` takes a {by.__name__}, got {describe(value)}")


def describe(value: Any) -> str:
    return f"{type(value).__name__}: {value!r:.60}"
