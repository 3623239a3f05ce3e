"""
`python -m bench [names…]`: every figure as a table beside that of the last release, and as lines
in `bench/latest.jsonl`. `--keep` puts what was measured into `bench/baseline.jsonl`; `--small`
measures a tenth, to see that everything runs.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path

import msgspec

from bench import baseline, size
from bench.figure import Figure

# Each module has `figures() -> Iterable[Figure]`.
BENCHES = {
    "startup": "bench.startup",
    "validation": "bench.validation",
    "guards": "bench.guards",
    "log": "bench.log",
    "postgres_log": "bench.postgres_log",
    "engine": "bench.engine",
    "real_work": "bench.real_work",
    "bytecodes": "bench.bytecodes",
    "memory": "bench.memory",
    "long": "bench.long",
    "waits": "bench.waits",
    "limits": "bench.limits",
    "http_tool": "bench.http_tool",
    "postgres_tool": "bench.postgres_tool",
    "python_child": "bench.python_child",
    "python_tool": "bench.python_tool",
    "triggers": "bench.triggers",
}
ALONE = {"distributed": "bench.distributed.figures"}
"""Long ones that start servers of their own: run by name only."""
LATEST = Path(__file__).with_name("latest.jsonl")
COLUMNS = "{:<44} {:>10} {:>10} {:>8} {:>8} {:<4} {:>8} {:<5} {:<4} {:>7} {:>7}"
HEADS = (
    *("figure", "ours", "reference", "ratio", "target", "met", "baseline", "fell", "unit"),
    *("repeats", "spread"),
)


def main(arguments: Sequence[str]) -> int:
    known = BENCHES | ALONE
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=", ".join(known))
    parser.add_argument("--small", action="store_true", help="a tenth of everything")
    parser.add_argument("--keep", action="store_true", help="write the baseline anew")
    given = parser.parse_args(arguments)
    unknown = [name for name in given.names if name not in known]
    if unknown:
        print(f"no such bench: {', '.join(unknown)}; there are: {', '.join(known)}")
        return 3
    if given.small and not size.SMALL:  # what is imported has its sizes already
        os.environ[size.VARIABLE] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "bench", *arguments])
    if size.SMALL and given.keep:
        print("a tenth says nothing that is worth keeping")
        return 3
    kept = {} if size.SMALL else baseline.read()
    print(COLUMNS.format(*HEADS))
    found = {name: list(measured(known[name], kept)) for name in given.names or BENCHES}
    if not size.SMALL:
        every = chain.from_iterable(found.values())
        LATEST.write_bytes(b"".join(msgspec.json.encode(figure) + b"\n" for figure in every))
    if given.keep:
        baseline.keep(found)
    return 0


def measured(module: str, kept: Mapping[str, baseline.Kept]) -> Iterator[Figure]:
    """Every figure of a bench, printed as soon as it is there."""
    for figure in import_module(module).figures():
        print(row(figure, kept), flush=True)
        yield figure


def row(figure: Figure, kept: Mapping[str, baseline.Kept]) -> str:
    before, fell = baseline.verdict(figure, kept)
    return COLUMNS.format(
        figure.figure,
        f"{figure.ours:.4g}",
        f"{figure.reference:.4g}",
        f"{figure.ratio:.3g}",
        f"{figure.target:g}",
        "yes" if figure.met else "NO",
        before,
        fell,
        figure.unit,
        figure.repeats,
        f"{figure.spread:.0%}",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
