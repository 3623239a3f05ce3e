"""Where exactly the slots stand: lines as straight as the order and the widths allow."""

from collections.abc import Sequence
from itertools import pairwise

from noetl.cli.graph.order import Line, neighbours
from noetl.cli.graph.slots import LayerSlot

PASSES, LAST = 28, 8
GAP = {"box": 36.0, "label": 14.0, "bend": 12.0}


def spread_out(
    wanted: Sequence[float], apart: Sequence[float], pull: Sequence[float]
) -> list[float]:
    """
    Positions in the given order, as near as possible to the wanted ones (least squares).

    `apart[i]` is the least distance between i and i+1. Neighbours that would overlap are pooled
    into a block, which then stands at its weighted mean.
    """
    if not wanted:
        return []
    offsets = [0.0]
    for distance in apart:
        offsets.append(offsets[-1] + distance)
    blocks: list[list[float]] = []  # mean, weight, size
    for want, offset, weight in zip(wanted, offsets, pull, strict=True):
        blocks.append([want - offset, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, weight_, size = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * weight_) / (last[1] + weight_)
            last[1] += weight_
            last[2] += size
    means = [mean for mean, _, size in blocks for _ in range(int(size))]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def place_across(
    slots: list[LayerSlot], layers: Sequence[Sequence[int]], lines: Sequence[Line]
) -> None:
    """Set `x` of every slot: settle down and up until lines are as straight as they get."""
    above, below = neighbours(lines)
    either = {slot: above.get(slot, []) + below.get(slot, []) for slot in range(len(slots))}
    for layer in layers:
        settle(slots, layer, [0.0] * len(layer))
    for turn in range(PASSES):
        # At first one side draws, so that whole branches move; at the end both, to straighten.
        near = either if turn >= PASSES - LAST else (above, below)[turn % 2]
        for layer in layers if turn % 2 == 0 else reversed(layers):
            settle(slots, layer, [wish(slots, slot, near.get(slot, [])) for slot in layer])
    centre_loose(slots, layers, either)
    left = min((slot.x - slot.width / 2 for slot in slots), default=0.0)
    for slot in slots:
        slot.x -= left


def centre_loose(
    slots: list[LayerSlot], layers: Sequence[Sequence[int]], near: dict[int, list[int]]
) -> None:
    """A layer without lines, such as that of the final step, stands in the middle of the rest."""
    tied = [slots[slot].x for slot, others in near.items() if others]
    middle = (min(tied) + max(tied)) / 2 if tied else 0.0
    for layer in layers:
        if not any(near[slot] for slot in layer):
            settle(slots, layer, [middle] * len(layer))


def wish(slots: list[LayerSlot], slot: int, near: Sequence[int]) -> float:
    """Where a slot would like to be: the weighted mean of what it is connected with."""
    if not near:
        return slots[slot].x
    weights = [slots[other].pull for other in near]
    return sum(slots[o].x * w for o, w in zip(near, weights, strict=True)) / sum(weights)


def settle(slots: list[LayerSlot], layer: Sequence[int], wanted: Sequence[float]) -> None:
    row = [slots[slot] for slot in layer]
    apart = [
        (left.width + right.width) / 2 + max(GAP[left.sort], GAP[right.sort])
        for left, right in pairwise(row)
    ]
    placed = spread_out(wanted, apart, [slot.pull for slot in row])
    for slot, x in zip(row, placed, strict=True):
        slot.x = x


def place_down(
    slots: list[LayerSlot], layers: Sequence[Sequence[int]], gap: float
) -> list[tuple[float, float]]:
    """Set `y` (the centre) of every slot; return the top and the bottom of each layer."""
    rows: list[tuple[float, float]] = []
    top = 0.0
    for layer in layers:
        height = max((slots[slot].height for slot in layer), default=0.0)
        rows.append((top, top + height))
        for slot in layer:
            slots[slot].y = top + height / 2
        top += height + gap
    return rows
