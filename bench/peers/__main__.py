"""
`python -m bench.peers`: ours and other engines on the same work, in one run, on one disk.

Prints a table, writes `build/peers/latest.jsonl` and a chart. `--small` measures a tenth; peers and
works are chosen by name, and what was not measured is kept from the run before with `--add`.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from time import perf_counter

import msgspec

from bench import size
from bench.peers import chart, report
from bench.peers.environments import PLACE
from bench.peers.floors import FLOORS, floors
from bench.peers.registry import WORKS, Result, peers
from bench.peers.running import results_of

LATEST = PLACE / "latest.jsonl"
DONE, REFUSED = 0, 3


def main(arguments: Sequence[str]) -> int:
    known = peers()
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument("--peers", help=f"of {','.join(known)}; default: all")
    parser.add_argument("--works", help=f"of {','.join(WORKS)}; default: all")
    parser.add_argument("--floors", help=f"of {','.join(FLOORS)}; default: all")
    parser.add_argument("--small", action="store_true", help="a tenth of everything")
    parser.add_argument("--add", action="store_true", help="keep what was measured before")
    parser.add_argument("--chart", type=Path, help="where to draw the chart")
    pages = "pages whose table or chart is written again"
    parser.add_argument("--pages", type=Path, nargs="*", default=[], help=pages)
    given = parser.parse_args(arguments)
    if given.small and not size.SMALL:  # what is imported has its sizes already
        os.environ[size.VARIABLE] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "bench.peers", *arguments])
    chosen = {
        what: list(table) if wanted is None else [word for word in wanted.split(",") if word]
        for what, wanted, table in (
            ("peers", given.peers, known),
            ("works", given.works, WORKS),
            ("floors", given.floors, FLOORS),
        )
    }
    for what, table in (("peers", known), ("works", WORKS), ("floors", FLOORS)):
        unknown = [name for name in chosen[what] if name not in table]
        if unknown:
            print(f"no such {what}: {', '.join(unknown)}; there are: {', '.join(table)}")
            return REFUSED
    began = perf_counter()
    found = read() if given.add else []
    measured = (results_of(known[name], chosen["works"]) for name in chosen["peers"])
    for result in chain(floors(chosen["floors"]), chain.from_iterable(measured)):
        found = report.with_ratios(report.told(found, result))
        if not size.SMALL:
            write(found)  # a run that is broken off keeps what it has
    print(f"\nthe whole run took {perf_counter() - began:.0f} s\n\n{report.table(found)}")
    for page in given.pages:
        page.write_text(report.in_page(page.read_text("utf-8"), found), "utf-8")
    if given.chart:
        given.chart.write_text(chart.drawn(found), "utf-8")
    return DONE


def read() -> list[Result]:
    if not LATEST.exists():
        return []
    return [msgspec.json.decode(line, type=Result) for line in LATEST.read_bytes().splitlines()]


def write(found: list[Result]) -> None:
    PLACE.mkdir(parents=True, exist_ok=True)
    LATEST.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
