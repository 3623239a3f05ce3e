"""
A test that waits for a fact which never comes fails, and says where it waits: CI goes on.

It is no judge of speed: the bound is many times what the slowest test takes on a busy machine.
"""

import os
import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

LONG_RUNS = ("NOETL_FAULTS", "NOETL_CHAOS")
LONGEST = 7200.0 if any(name in os.environ for name in LONG_RUNS) else 900.0


@contextmanager
def bounded(seconds: float = LONGEST) -> Iterator[None]:
    """Fail what has not ended by then, where it is. On the main thread, where tests run."""

    def give_up(_: int, frame: FrameType | None) -> None:
        where = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
        pytest.fail(f"nothing has come of it in {seconds:g} s; it waits{where}")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    with bounded():
        return (yield)
