"""`python -m bench [names…]`: every figure as a table, and as lines in `bench/latest.jsonl`."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import msgspec

from bench.figure import Figure

# Each module has `figures() -> list[Figure]`.
BENCHES = {
    "startup": "bench.startup",
    "validation": "bench.validation",
    "guards": "bench.guards",
    "log": "bench.log",
    "postgres_log": "bench.postgres_log",
    "engine": "bench.engine",
    "memory": "bench.memory",
    "long": "bench.long",
    "http_tool": "bench.http_tool",
    "postgres_tool": "bench.postgres_tool",
    "python_child": "bench.python_child",
    "python_tool": "bench.python_tool",
}
ALONE = {"distributed": "bench.distributed.figures"}
"""Long ones that start servers of their own: run by name only."""
LATEST = Path(__file__).with_name("latest.jsonl")
COLUMNS = "{:<40} {:>10} {:>10} {:>8} {:>8} {:<5} {:<4} {:>7} {:>7}"


def main(names: Sequence[str]) -> int:
    known = BENCHES | ALONE
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no such bench: {', '.join(unknown)}; there are: {', '.join(known)}")
        return 3
    print(
        COLUMNS.format(
            *("figure", "ours", "reference", "ratio", "target", "met", "unit"),
            *("repeats", "spread"),
        )
    )
    found: list[Figure] = []
    for name in names or BENCHES:
        for figure in import_module(known[name]).figures():
            print(row(figure), flush=True)
            found.append(figure)
    LATEST.write_bytes(b"".join(msgspec.json.encode(figure) + b"\n" for figure in found))
    return 0


def row(figure: Figure) -> str:
    return COLUMNS.format(
        figure.figure,
        f"{figure.ours:.4g}",
        f"{figure.reference:.4g}",
        f"{figure.ratio:.3g}",
        f"{figure.target:g}",
        "yes" if figure.met else "NO",
        figure.unit,
        figure.repeats,
        f"{figure.spread:.0%}",
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
