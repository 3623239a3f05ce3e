"""
`python -m tests.model SEED`: one playbook, its log, and where engine and model part.
`python -m tests.model --playbooks N [--first SEED]`: many, on all cores, and what they covered.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter

from tests.model.comparing import Compared, compare


def show(seed: int) -> int:
    found = compare(seed)
    print(found.text)
    print("\n".join(found.log))
    print(found.difference or "engine and model agree")
    return bool(found.difference)


def read_many(first: int, count: int) -> int:
    seen: Counter[str] = Counter()
    differ: list[Compared] = []
    began = time.monotonic()
    with multiprocessing.Pool() as pool:
        for number, found in enumerate(
            pool.imap_unordered(compare, range(first, first + count)), 1
        ):
            seen.update(found.seen)
            if found.difference:
                differ.append(found)
                print(f"seed {found.seed}: {found.difference.splitlines()[0]}", flush=True)
            if number % 1000 == 0:
                print(f"{number} read, {len(differ)} differ", flush=True)
    took = time.monotonic() - began
    print(f"{count} playbooks in {took:.0f} s: {count - len(differ)} agree, {len(differ)} differ")
    print(", ".join(f"{what} {number}" for what, number in sorted(seen.items())))
    return bool(differ)


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.model")
    asked.add_argument("seed", nargs="?", type=int)
    asked.add_argument("--playbooks", type=int, default=2000)
    asked.add_argument("--first", type=int, default=0)
    given = asked.parse_args()
    if given.seed is not None:
        return show(given.seed)
    return read_many(given.first, given.playbooks)


if __name__ == "__main__":
    sys.exit(main())
