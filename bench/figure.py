"""One figure of a benchmark: ours beside the reference, measured in the same run."""

from statistics import median, quantiles
from typing import Self

import msgspec

BLOCKS = 7
"""Many single measurements are told apart by their times: the spread is that of so many blocks."""


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
    at_most: bool = True
    """Whether less is better."""

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
            at_most=at_most,
        )


def spread(measured: list[float]) -> float:
    """
    The interquartile range relative to the median; 0 for a single measurement.

    Of hundreds of single commits it is the range of their blocks: how far one commit lies from
    another says little about how far their median moves from run to run.
    """
    if len(measured) < 2:
        return 0.0
    size = len(measured) // BLOCKS
    if size > BLOCKS:
        measured = [median(measured[n * size : (n + 1) * size]) for n in range(BLOCKS)]
    lower, _, upper = quantiles(measured, n=4, method="inclusive")
    return (upper - lower) / median(measured)
