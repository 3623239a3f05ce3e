"""How long to wait before a task runs again (TASK-3)."""

from collections.abc import Mapping
from typing import Any

from noetl.playbook.model import Backoff

LONGEST = 10 * 365 * 86_400.0
"""Seconds; keeps a doubled delay a number that a clock can hold."""


def pause(
    backoff: Backoff,
    delay: float,
    *,
    attempt: int,
    max_delay: float | None = None,
    jitter: float = 0.0,
    chance: float = 0.5,
    told: float = 0.0,
) -> float:
    """
    Seconds to wait after run number `attempt`. `chance` is drawn outside, from 0 to 1: the pause
    moves by up to `jitter` of itself, half of the range below and half above, and never beyond
    `max_delay`. It is no shorter than the other side has `told`.
    """
    factor = {"none": 1.0, "linear": float(attempt), "exponential": 2.0 ** min(attempt - 1, 60)}
    longest = LONGEST if max_delay is None else max_delay
    wait = min(delay * factor[backoff], longest)
    if jitter:
        wait *= 1.0 + jitter * (2.0 * chance - 1.0)
    return min(longest, max(0.0, wait, told))


def told_by(outcome: Mapping[str, Any]) -> float:
    """The seconds of a `Retry-After`; a date counts from the answer's own `Date`."""
    headers: Any = (outcome.get("http") or {}).get("headers")
    said = headers.get("retry-after") if isinstance(headers, Mapping) else None
    if not isinstance(said, str):
        return 0.0
    if said.strip().isdecimal():
        return float(said)
    # Imported here: it takes long to import, and hardly any run needs it.
    from email.utils import parsedate_to_datetime

    try:
        since = parsedate_to_datetime(str(headers.get("date")))
        return max(0.0, (parsedate_to_datetime(said) - since).total_seconds())
    except (ValueError, TypeError):  # no date, or one without a zone
        return 0.0
