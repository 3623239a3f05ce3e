"""
`python -m tests.mutants [--only WORDS]`: each fault of the table alone, in a copy of the source,
then those of the table of guarantees, each before the test that carries its number.
A test must fail; what survives is printed. `--faults [T1 ...]` plants only those of the guarantees,
`--plain` only the others.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants import planting
from tests.mutants.mutant import Mutant
from tests.mutants.of_faults import OF_FAULTS
from tests.mutants.table import FOR_THE_SIMULATION, MUTANTS

Named = tuple[str, Mutant]


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    asked.add_argument("--only", default="", help="those whose file or reason has these words")
    asked.add_argument("--seconds", type=int, default=180, help="CPU time that one may take")
    asked.add_argument("--first", type=int, default=1, help="begin with the fault of this place")
    asked.add_argument("--plain", action="store_true", help="none of the table of guarantees")
    asked.add_argument(
        "--faults", nargs="*", metavar="T1", help="those of the table of guarantees, or some"
    )
    given = asked.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("interrupted"))  # ends what it started
    planting.adopt_orphans()
    planting.keep_bytecode()
    named: list[Named] = [] if given.faults is not None else [("", one) for one in MUTANTS]
    if not given.plain:
        named += [one for one in OF_FAULTS if not given.faults or one.number in given.faults]
    chosen = [one for one in named if given.only in f"{one[1].file} {one[1].why}"]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        survivors = try_all(chosen, Path(folder), given.seconds, given.first)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} caught")
    for mutant in FOR_THE_SIMULATION:
        print(f"only the simulation notices: {mutant.why}")
    return bool(survivors)


def try_all(chosen: list[Named], folder: Path, seconds: int, first: int) -> list[Mutant]:
    nursery, noticed = planting.Nursery(folder), planting.noticed_before()
    survivors = []
    for place, (number, mutant) in enumerate(chosen, 1):
        if place < first:
            continue
        began, before = time.monotonic(), os.times()
        asked_first = "" if number else noticed.get(mutant.why, "")
        found = nursery.tried(mutant, asked_first, seconds, quick=not number)
        word = "caught" if found.caught else "SURVIVES"
        spent = sum(os.times()[2:4]) - sum(before[2:4])
        took = f"{time.monotonic() - began:.0f} s, {spent:.1f} s of CPU"
        what = f"{number} {mutant.file}: {mutant.why}".strip()
        print(f"{place}/{len(chosen)} {word} ({took}) {what}", flush=True)
        if number or found.hung or not found.caught:
            asked = found.noticed or mutant.tests[0]
            print(f"    {asked}\n    {found.says}", flush=True)
        if not found.caught:
            survivors.append(mutant)
        elif not number and noticed.get(mutant.why) != found.noticed:
            noticed[mutant.why] = found.noticed
            planting.write_noticed(noticed)
    return survivors


if __name__ == "__main__":
    sys.exit(main())
