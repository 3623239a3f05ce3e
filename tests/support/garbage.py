"""What the test runner holds is no garbage: nobody need look through it again and again."""

import gc

SELDOM = (20_000, 5, 200)
"""As in every process of ours: what is made is mostly let go at once."""


def set_aside() -> None:
    """Fifteen thousand tests, and all that is alive; whoever undoes this does it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
