"""One figure of a benchmark: ours beside the reference, measured in the same run."""

from statistics import median, quantiles
from typing import Self

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """The fields are the columns of the table and of `bench/latest.jsonl`."""

    figure: str
    ours: float
    reference: float
    ratio: float
    target: float
    met: bool
    unit: str
    repeats: int
    spread: float

    @classmethod
    def of(
        cls,
        name: str,
        ours: list[float],
        reference: list[float],
        target: float,
        unit: str,
        at_most: bool = True,
    ) -> Self:
        """Medians of repeated measurements; `target` bounds the ratio ours / reference."""
        mine, theirs = median(ours), median(reference)
        ratio = mine / theirs
        return cls(
            figure=name,
            ours=mine,
            reference=theirs,
            ratio=ratio,
            target=target,
            met=ratio <= target if at_most else ratio >= target,
            unit=unit,
            repeats=min(len(ours), len(reference)),
            spread=max(spread(ours), spread(reference)),
        )


def spread(measured: list[float]) -> float:
    """The interquartile range relative to the median; 0 for a single measurement."""
    if len(measured) < 2:
        return 0.0
    lower, _, upper = quantiles(measured, n=4, method="inclusive")
    return (upper - lower) / median(measured)
