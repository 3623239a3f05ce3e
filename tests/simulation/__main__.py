"""
Run seeds of the simulation: `python -m tests.simulation --seeds 1000` on all cores, or one again
with `--seed N` and whatever a failure printed beside it.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import get_context
from typing import NamedTuple

from tests.simulation.audit import Violation
from tests.simulation.reach import Tracer, points, write
from tests.simulation.scenario import Scenario
from tests.simulation.shrink import failure, shrunk
from tests.simulation.world import Ended, run

AT_ONCE = 20
"""Seeds that a process runs before it tells of them."""


class Told(NamedTuple):
    """What came of one seed."""

    seed: int
    ended: Ended | None
    violation: str


def tried(seed: int) -> Told:
    try:
        return Told(seed, run(Scenario(seed=seed)), "")
    except Violation as violation:
        return Told(seed, None, f"{violation}")


def all_of(seeds: range, processes: int, until: float) -> Iterator[Told]:
    if processes == 1:
        for seed in seeds:
            if time.process_time() > until:
                return
            yield tried(seed)
        return
    with get_context("fork").Pool(processes, maxtasksperchild=2000) as pool:
        yield from pool.imap_unordered(tried, seeds, chunksize=AT_ONCE)


def again(scenario: Scenario) -> int:
    """One scenario, with its trace."""
    try:
        ended = run(scenario)
    except Violation as violation:
        print(violation.trace)
        print(f"\n{violation}\nagain: python -m tests.simulation {scenario.options()}")
        return 1
    print(f"seed {scenario.seed}: {ended}")
    return 0


def smallest(seed: int, tries: int) -> None:
    smaller = shrunk(Scenario(seed=seed), tries)
    violation = failure(smaller)
    print(f"{violation}\n  python -m tests.simulation {smaller.options()}")
    if violation is not None:
        print("\n".join(f"    {line}" for line in violation.trace.splitlines()[-25:]))


def many(given: argparse.Namespace) -> int:
    began, total, ends = time.monotonic(), Counter[str](), Counter[str]()
    hours = 0.0
    failed: list[Told] = []
    until = time.process_time() + given.cpu if given.cpu else float("inf")
    for told in all_of(range(given.first, given.first + given.seeds), given.processes, until):
        total["seeds"] += 1
        if told.ended is None:
            failed.append(told)
            print(f"seed {told.seed}: {told.violation}", flush=True)
            continue
        ended = told.ended
        hours += ended.seconds / 3600
        total["decisions"] += ended.decisions
        total["effects"] += ended.effects
        total["zombies"] += ended.zombies
        ends.update(ended.ends)
        total.update(ended.counts)
    for told in failed[: given.shrink]:
        smallest(told.seed, given.tries)
    seconds = time.monotonic() - began
    print(
        f"{total['seeds']} seeds ({total['seeds'] / seconds:.0f}/s), {hours:.1f} simulated hours, "
        f"{total['decisions']} decisions, {total['effects']} effects, ends {dict(ends)}; "
        f"{len(failed)} failed: {[told.seed for told in failed][:20]}"
    )
    print(", ".join(f"{name} {count}" for name, count in sorted(total.items())))
    return 1 if failed else 0


def reach_of(given: argparse.Namespace) -> int:
    with Tracer(points()) as tracer:
        many(given)
    without = write(tracer.reached)
    print(f"{len(tracer.reached)} of {len(points())} reached; without a reason: {len(without)}")
    print("\n".join(without))
    return 1 if without else 0


def main() -> int:
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of what happens
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="one seed, with its trace")
    parser.add_argument("--size", type=int)
    parser.add_argument("--executions", type=int)
    parser.add_argument("--without", default="")
    parser.add_argument("--calm", default="")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cpu", type=float, help="stop after so many seconds of CPU")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--shrink", type=int, default=3, help="failing seeds to make smaller")
    parser.add_argument("--tries", type=int, default=150)
    parser.add_argument("--reach", action="store_true", help="write which refusals were reached")
    given = parser.parse_args()
    if given.reach:
        return reach_of(given)
    if given.seed is None:
        return many(given)
    without = tuple(int(one) for one in given.without.split(",") if one)
    calm = tuple(one for one in given.calm.split(",") if one)
    return again(
        Scenario(
            seed=given.seed,
            size=given.size,
            executions=given.executions,
            without=without,
            calm=calm,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
