"""In which order the slots of a layer stand, so that few lines cross."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from itertools import pairwise

SWEEPS = 12
Line = tuple[int, int]


def ordered(layers: list[list[int]], lines: Sequence[Line]) -> list[list[int]]:
    """Barycentre sweeps down and up; the order with the fewest crossings is kept."""
    above, below = neighbours(lines)
    best, fewest = layers, crossings(layers, below)
    current = [list(layer) for layer in layers]
    for sweep in range(SWEEPS):
        if not fewest:
            break
        downward = sweep % 2 == 0
        near = above if downward else below
        sequence = range(1, len(current)) if downward else range(len(current) - 2, -1, -1)
        for level in sequence:
            fixed = current[level - 1 if downward else level + 1]
            current[level] = by_barycentre(current[level], fixed, near)
        count = crossings(current, below)
        if count < fewest:
            best, fewest = [list(layer) for layer in current], count
    return best


def neighbours(lines: Sequence[Line]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for upper, lower in lines:
        below.setdefault(upper, []).append(lower)
        above.setdefault(lower, []).append(upper)
    return above, below


def by_barycentre(
    layer: Sequence[int], fixed: Sequence[int], near: dict[int, list[int]]
) -> list[int]:
    place = {slot: float(position) for position, slot in enumerate(fixed)}
    scale = max(1, len(fixed)) / max(1, len(layer))
    centre = {
        slot: sum(place[other] for other in near[slot]) / len(near[slot])
        if slot in near
        else position * scale  # a slot without lines keeps its place
        for position, slot in enumerate(layer)
    }
    return sorted(layer, key=lambda slot: centre[slot])


def crossings(layers: Sequence[Sequence[int]], below: dict[int, list[int]]) -> int:
    """How many pairs of lines cross, by counting inversions between neighbouring layers."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {slot: position for position, slot in enumerate(lower)}
        seen: list[int] = []
        for slot in upper:
            ends = sorted(place[other] for other in below.get(slot, ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
