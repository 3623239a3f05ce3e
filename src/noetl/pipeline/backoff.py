"""How long to wait before a task runs again (TASK-3)."""

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
) -> float:
    """
    Seconds to wait after run number `attempt`. `chance` is drawn outside, from 0 to 1: the pause
    moves by up to `jitter` of itself, half of the range below and half above, and never beyond
    `max_delay`.
    """
    factor = {"none": 1.0, "linear": float(attempt), "exponential": 2.0 ** min(attempt - 1, 60)}
    longest = LONGEST if max_delay is None else max_delay
    wait = min(delay * factor[backoff], longest)
    if not jitter:
        return wait
    return min(longest, max(0.0, wait * (1.0 + jitter * (2.0 * chance - 1.0))))
