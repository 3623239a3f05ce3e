"""Ask for a fact until it is one, and leave the processor to whoever brings it about."""

import threading
import time
from collections.abc import Callable, Iterator

BETWEEN = 0.02
"""Seconds between two questions: who asks without a pause takes half of a small machine."""
PATIENCE = 600.0
"""Seconds before something that hangs fails its test; never a time that is expected to pass."""


def asking(why: Callable[[], str] = str, patience: float = PATIENCE) -> Iterator[None]:
    """`for _ in asking(): if found := …: return found`; who finds nothing fails and says why."""
    late = time.monotonic() + patience
    while time.monotonic() < late:
        yield
        threading.Event().wait(BETWEEN)
    raise AssertionError(why())
