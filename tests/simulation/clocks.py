"""
Every clock and every source of chance that the program reads, from the world instead; and what a
process remembers, for each node its own.
"""

import os
import random
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

from tests.simulation.loop import NODE, Node, SimulatedLoop

from noetl.adapters.memory import limits
from noetl.node import trigger_subjects, triggers
from noetl.server import triggering
from noetl.server.dispatcher import Dispatcher

EPOCH = 1_790_000_000.0
BOOTED = 1_000.0
"""What monotonic clocks show in the beginning."""
SELDOM = 3.0
"""Seconds between two looks for triggers: most of a quiet second would go into looking."""


class OfNodes(MutableMapping[str, Any]):
    """Another node, and the next world, know nothing of it."""

    def __init__(self) -> None:
        self._kept: dict[Node | None, dict[str, Any]] = {}

    def _mine(self) -> dict[str, Any]:
        return self._kept.setdefault(NODE.get(), {})

    def __getitem__(self, key: str) -> Any:
        return self._mine()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._mine()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._mine()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mine())

    def __len__(self) -> int:
        return len(self._mine())


@contextmanager
def simulated(loop: SimulatedLoop, chance: random.Random) -> Iterator[None]:
    """Within it `time`, `random.random` and `os.urandom` are the world's, for each node its own."""

    def wall() -> float:
        node = NODE.get()
        return EPOCH + loop.now + (0.0 if node is None else node.skew)

    def steady(_: int = 0) -> float:
        return BOOTED + loop.now

    said: dict[tuple[Any, str], Any] = {
        (time, "time"): wall,
        (time, "time_ns"): lambda: int(wall() * 1_000_000_000),
        (time, "monotonic"): steady,
        (time, "clock_gettime"): steady,
        (time, "thread_time"): lambda: 0.0,
        (limits, "_now"): lambda: int((EPOCH + loop.now) * 1000),  # the clock of the database
        (triggering, "DOCUMENTS"): OfNodes(),
        (triggers, "LOOK"): SELDOM,
        (trigger_subjects, "LOOK"): SELDOM,
        (random, "random"): chance.random,
        (os, "urandom"): chance.randbytes,
    }
    kept = {(module, name): getattr(module, name) for module, name in said}
    defaults = Dispatcher.__init__.__kwdefaults__
    assert defaults is not None, "its clock is an argument by name"
    usual = defaults["clock"]  # read when the class was made
    for (module, name), value in said.items():
        setattr(module, name, value)
    defaults["clock"] = steady
    try:
        yield
    finally:
        for (module, name), value in kept.items():
            setattr(module, name, value)
        defaults["clock"] = usual
