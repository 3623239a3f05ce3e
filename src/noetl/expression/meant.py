"""Which known name did the author of an unknown one mean?"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from noetl.expression.lookup import NAMESPACES, SEARCHED

MOST_NAMES: Final = 2_000  # comparing with more would cost seconds, for a hint
LONGEST_NAME: Final = 1_000  # more is no mistyped name; keys of a payload may have megabytes


def closest(name: str, known: Iterable[str], most: int = MOST_NAMES) -> str | None:
    """The known name nearest to `name`, if one is near enough to be meant."""
    if len(name) > LONGEST_NAME:
        return None
    names = list(islice(known, most))
    letters = sorted(name.lower())  # in another case, or in another order
    same = [other for other in names if sorted(other.lower()) == letters]
    if same:
        return same[0]
    from difflib import get_close_matches

    near = get_close_matches(name[:60], names, n=1, cutoff=0.7)
    return near[0] if near else None


def meant(
    root: str, keys: Iterable[Any], seen: Mapping[str, Any], most: int = MOST_NAMES
) -> str | None:
    """The name that stands in `seen`, a scope or its shape, for a path that leads nowhere there."""
    found = {name: seen[name] for name in SEARCHED if isinstance(seen.get(name), Mapping)}
    owner = next((values for values in (seen, *found.values()) if root in values), None)
    if owner is None:
        names = [*seen, *(key for values in found.values() for key in values)]
        return None if root in NAMESPACES else closest(root, names, most)
    name, value = root, owner[root]
    for key in keys:
        if not isinstance(value, Mapping) or type(key) is not str:
            return None
        if key not in value:
            near = closest(key, value, most)
            others = (f"{other}.{key}" for other, values in found.items() if key in values)
            return next(others, None) if near is None else f"{name}.{near}"
        name, value = f"{name}.{key}", value[key]
    return None
