"""
How slow this machine is now, measured: leases and bounds of fault tests are multiplied by it.

A lease of two seconds is long on a machine of one's own, and nothing where ten processes share a
core: a worker that is well loses it then, and the test judges the machine instead of the program.
"""

import time

MOST = 4.0
"""Whoever is slower than this gets no longer leases: tests would take for ever."""
WORK, ROUNDS = 200_000, 5


def measured() -> float:
    """Time that passes while the processor works for us, by the time that it works: 1 at best."""
    worst = 1.0
    for _ in range(ROUNDS):
        began, worked = time.monotonic(), time.thread_time()
        sum(range(WORK))
        worst = max(worst, (time.monotonic() - began) / max(time.thread_time() - worked, 1e-6))
    return min(worst, MOST)


SLOWNESS = measured()
