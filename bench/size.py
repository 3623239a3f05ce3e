"""How much is measured: all of it, or a tenth and less, which proves that a bench runs."""

import os

VARIABLE = "BENCH_SMALL"
"""Read by every process of a bench, its children included."""
SMALL = bool(os.environ.get(VARIABLE))


def sized(full: int, *, small: int | None = None) -> int:
    """A count: as it is, or `small` (a tenth of it, if nothing else is said)."""
    if not SMALL:
        return full
    return max(2, full // 10) if small is None else small
