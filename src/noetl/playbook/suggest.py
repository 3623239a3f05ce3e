"""Names in hints: the one that was meant, or some of those that there are."""

from collections.abc import Iterable
from itertools import islice

from noetl.expression.meant import closest
from noetl.late import late

_MEANT = late(r"did you mean '(.+)'\?$")
SHOWN_NAMES = 12


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
