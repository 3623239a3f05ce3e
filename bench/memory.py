"""How much memory a loop takes: peak RSS of a process of its own, beside what is allowed."""

import asyncio
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.engine import quiet_collector, run
from bench.figure import Figure
from bench.playbooks import loop
from bench.size import sized
from noetl.node.local import LocalNode
from noetl.settings import Settings

ALLOWED = {1_000: 90.0, 1_000_000: 300.0}
"""Iterations → MB."""
SMALLER = {1_000: 100, 1_000_000: 20_000}
"""How many are run where it is only asked whether this runs."""


def figures() -> list[Figure]:
    return [
        Figure.of(
            f"peak RSS, {count} iterations",
            [peak(sized(count, small=SMALLER[count]))],
            [allowed],
            1,
            "MB",
        )
        for count, allowed in ALLOWED.items()
    ]


def peak(count: int) -> float:
    """Megabytes that a parallel loop of `count` iterations took at most."""
    child = subprocess.run(
        [sys.executable, "-m", "bench.memory", str(count)],
        check=True,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent.parent,
    )
    return float(child.stdout)


async def looped(count: int) -> None:
    with TemporaryDirectory() as folder, quiet_collector():
        local = await LocalNode.open(Settings(home=Path(folder)))
        await run(local, loop("parallel"), {"numbers": list(range(count))})
        await local.close()


def high_water() -> float:
    """Megabytes; `ru_maxrss` would tell of the process that this one was forked from, too."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    asyncio.run(looped(int(sys.argv[1])))
    print(high_water())
