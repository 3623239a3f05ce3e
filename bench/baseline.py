"""What the last release came to, and what has fallen since."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from bench.figure import Figure

FILE = Path(__file__).with_name("baseline.jsonl")
LEAST = 0.05
"""A difference that no machine repeats: no figure falls by less."""


class Kept(msgspec.Struct, frozen=True):
    """One line of the file: a ratio, and how far it lay apart from run to run."""

    bench: str
    figure: str
    ratio: float
    spread: float


def read(file: Path = FILE) -> dict[str, Kept]:
    lines = file.read_bytes().splitlines() if file.exists() else []
    return {kept.figure: kept for kept in (msgspec.json.decode(line, type=Kept) for line in lines)}


def keep(found: Mapping[str, Iterable[Figure]], file: Path = FILE) -> None:
    """Put the figures of these benches in the place of what was kept of them; the others stay."""
    kept = {name: one for name, one in read(file).items() if one.bench not in found} | {
        one.figure: Kept(bench, one.figure, round(one.ratio, 4), round(one.spread, 2))
        for bench, figures in found.items()
        for one in figures
    }
    file.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in kept.values()))


def verdict(figure: Figure, kept: Mapping[str, Kept]) -> tuple[str, str]:
    """The ratio that was kept, and `FELL` where this one is worse by more than the spread."""
    before = kept.get(figure.figure)
    if before is None:
        return "", "new"
    worse = figure.ratio / before.ratio if figure.at_most else before.ratio / figure.ratio
    fell = worse > 1 + max(LEAST, before.spread, figure.spread)
    return f"{before.ratio:.3g}", "FELL" if fell else ""
