"""
How much chance searches: little where it always finds the same, much where it draws anew.

In CI the same commit gives the same answer (`derandomize`), so examples are repeated from run to
run and find nothing new there. `make chance` draws new ones, many more of each.
"""

import os

from hypothesis import settings

ANEW = os.environ.get("NOETL_PROPERTIES") == "chance"
MANY = 1000
FEW = 40
"""Where a test says nothing; Hypothesis itself would take 100."""
SHARE = 4
"""The part of what a test asks for that is searched when nothing is drawn anew."""


def examples(count: int) -> settings:
    """For a property that wants `count` examples."""
    return settings(max_examples=max(MANY, count) if ANEW else max(FEW // 2, count // SHARE))
