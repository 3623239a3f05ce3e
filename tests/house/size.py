"""`make size`: what the core takes on disk, package by package, with its bytecode."""

from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path

from tests.house.packages import closure
from tests.house.tree import SOURCE

from noetl.extras import DISTRIBUTION

MEGABYTE = 1_000_000
MOST = 100 * MEGABYTE
"""Of the core as `pip install` leaves it; decision 0054 asks for less than 120 MB."""
SHOWN = 12


def size_of(name: str) -> int:
    return sum(path.stat().st_size for path in files_of(name) if path.exists())


def files_of(name: str) -> Iterator[Path]:
    """Every file of a package, and the bytecode that an installer makes of it."""
    if name == DISTRIBUTION:  # installed as a link to the source
        found = [path for path in SOURCE.rglob("*") if path.is_file()]
    else:
        found = [Path(str(file.locate())) for file in distribution(name).files or ()]
    for path in found:
        if path.suffix != ".pyc":
            yield path
        if path.suffix == ".py":
            yield Path(cache_from_source(str(path)))


def sizes() -> dict[str, int]:
    """Package → bytes, the largest first."""
    found = {name: size_of(name) for name in closure()}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))


def main() -> None:
    found = sizes()
    for name, size in list(found.items())[:SHOWN]:
        print(f"{size / MEGABYTE:8.1f} MB  {name}")
    rest = list(found.values())[SHOWN:]
    print(f"{sum(rest) / MEGABYTE:8.1f} MB  {len(rest)} others")
    print(f"{sum(found.values()) / MEGABYTE:8.1f} MB  in all; at most {MOST / MEGABYTE:.0f}")


if __name__ == "__main__":
    main()
