"""Which known name did the author mean?"""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_MEANT = re.compile(r"did you mean '(.+)'\?$")
MOST_NAMES = 2_000  # comparing with more would cost seconds, for a hint
SHOWN_NAMES = 12


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`, if one is near enough to be meant."""
    names = list(islice(known, MOST_NAMES))
    letters = sorted(name.lower())  # in another case, or in another order
    same = [other for other in names if sorted(other.lower()) == letters]
    near = same or get_close_matches(name[:60], names, n=1, cutoff=0.7)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for an unknown name."""
    near = closest(name, known)
    return f"did you mean '{near}'?" if near else otherwise


def suggested(hint: str) -> str | None:
    """The name that a hint suggests; an editor puts it in place of the wrong one."""
    meant = _MEANT.search(hint)
    return None if meant is None else meant[1]


def some(names: Iterable[str]) -> str:
    """The first few names, for a hint."""
    shown = list(islice(names, SHOWN_NAMES + 1))
    return ", ".join([*shown[:SHOWN_NAMES], "…"] if len(shown) > SHOWN_NAMES else shown)


def listed(names: Iterable[str]) -> str:
    """Names as a person lists them: a, b or c."""
    shown = list(names)
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
