"""Which known name did the author mean?"""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to `name`, if one is near enough to be meant."""
    names = list(known)
    same = [other for other in names if other.lower() == name.lower()]
    near = same or get_close_matches(name[:60], names, n=1, cutoff=0.7)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The hint for an unknown name."""
    near = closest(name, known)
    return f"did you mean '{near}'?" if near else otherwise


def listed(names: Iterable[str]) -> str:
    """Names as a person lists them: a, b or c."""
    shown = list(names)
    return " or ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
