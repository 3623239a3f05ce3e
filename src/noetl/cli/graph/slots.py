"""
The picture as layers of slots, so that every line only runs from one layer to the next.

Boxes stand on even layers, the labels of links on odd ones. A link over several layers passes
through bends. All links to one box share their bends, as a cable: a hundred failure arcs to one
step take the room of one.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

MOST_BENDS = 20_000
"""Beyond it, far links end in a stub that names their target: the picture stays finite."""
# Cables should be straight before anything else is; then links to the next layer. A link that
# joins a cable gives way, or each would push its step aside and a chain would drift.
STRAIGHT, NEAR, FAR = 6.0, 4.0, 0.3


class Ends(msgspec.Struct, frozen=True):
    """A link as the layering sees it."""

    source: int
    target: int
    failure: bool
    size: tuple[float, float]


class LayerSlot(msgspec.Struct):
    """Something that takes room in a layer. `x` and `y` are its centre."""

    sort: Literal["box", "label", "bend"]
    layer: int
    width: float
    height: float
    pull: float = 1.0
    """How strongly it holds its place, and draws what it is connected with."""
    x: float = 0.0
    y: float = 0.0


class Path(msgspec.Struct, frozen=True):
    """
    The slots that a link runs through, from its source on.

    It ends at its target, or in a bend where it joins the cable that leads there, or, as a stub,
    at its label.
    """

    link: int
    slots: tuple[int, ...]
    upward: bool
    stub: bool = False


class Layers(msgspec.Struct, frozen=True):
    """Slots by layer from left to right, the lines between them, and the way of each link."""

    slots: list[LayerSlot]
    layers: list[list[int]]
    lines: list[tuple[int, int]]
    """Each from the upper slot to the lower one."""
    paths: list[Path]
    own: list[int]
    """Links from a box to itself; they need no slot."""


def layered(
    sizes: Sequence[tuple[float, float]], links: Sequence[Ends], *, entry: int, final: int | None
) -> Layers:
    """Give every box, label and bend its layer."""
    chosen = [number for number, link in enumerate(links) if link.source != link.target]
    pairs = [(links[number].source, links[number].target) for number in chosen]
    back = backward(len(sizes), pairs, entry)
    down = [pair[::-1] if number in back else pair for number, pair in enumerate(pairs)]
    rank = ranks(len(sizes), down, entry)
    top = min(rank, default=0)
    if final is not None:
        rank[final] = max(rank) + 1
    boxes = [
        LayerSlot("box", 2 * (level - top), *size) for level, size in zip(rank, sizes, strict=True)
    ]
    building = Building(boxes)
    spans = [(abs(rank[low] - rank[high]), number) for number, (high, low) in enumerate(down)]
    ways = {
        number: building.way(links, chosen[number], number in back) for _, number in sorted(spans)
    }
    return Layers(
        slots=building.slots,
        layers=building.layers(),
        lines=list(dict.fromkeys(building.lines)),
        paths=[ways[number] for number in sorted(ways)],
        own=[number for number, link in enumerate(links) if link.source == link.target],
    )


class Building:
    """The slots and lines so far, while links are laid one after another, the shortest first."""

    def __init__(self, boxes: list[LayerSlot]) -> None:
        self.slots = boxes
        self.lines: list[tuple[int, int]] = []
        self.bends: dict[tuple[int, bool, bool, int], int] = {}

    def way(self, links: Sequence[Ends], number: int, upward: bool) -> Path:
        """From the source through the label to the target, or to the cable that leads there."""
        link = links[number]
        turn = -1 if upward else 1
        layer, end = self.slots[link.source].layer + turn, self.slots[link.target].layer
        pull = NEAR if layer + turn == end else FAR
        label = self.add(LayerSlot("label", layer, *link.size, pull))
        fresh: list[tuple[int, bool, bool, int]] = []
        layer += turn
        while layer != end and (link.target, upward, link.failure, layer) not in self.bends:
            fresh.append((link.target, upward, link.failure, layer))
            layer += turn
        if fresh and len(self.bends) + len(fresh) > MOST_BENDS:
            return self.connected(Path(number, (link.source, label), upward, stub=True))
        for key in fresh:
            self.bends[key] = self.add(LayerSlot("bend", key[3], 6.0, 0.0, STRAIGHT))
        last = self.bends.get((link.target, upward, link.failure, layer), link.target)
        middle = (self.bends[key] for key in fresh)
        return self.connected(Path(number, (link.source, label, *middle, last), upward))

    def add(self, slot: LayerSlot) -> int:
        self.slots.append(slot)
        return len(self.slots) - 1

    def connected(self, path: Path) -> Path:
        slots = path.slots[::-1] if path.upward else path.slots
        self.lines += pairwise(slots)
        return path

    def layers(self) -> list[list[int]]:
        depth = max((slot.layer for slot in self.slots), default=-1) + 1
        layers: list[list[int]] = [[] for _ in range(depth)]
        for number, slot in enumerate(self.slots):
            layers[slot.layer].append(number)
        return layers


Pair = tuple[int, int]


def backward(count: int, pairs: Sequence[Pair], first: int) -> frozenset[int]:
    """The numbers of the pairs that close a cycle, walking from `first` in document order."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(pairs):
        leaving[source].append(number)
    back: set[int] = set()
    open_now, done = [False] * count, [False] * count
    for start in (first, *range(count)):
        stack = [] if done[start] else [(start, iter(leaving[start]))]
        open_now[start] = bool(stack)
        while stack:
            node, numbers = stack[-1]
            for number in numbers:
                target = pairs[number][1]
                if open_now[target]:
                    back.add(number)
                elif not done[target]:
                    open_now[target] = True
                    stack.append((target, iter(leaving[target])))
                    break
            else:
                stack.pop()
                open_now[node], done[node] = False, True
    return frozenset(back)


def ranks(count: int, pairs: Sequence[Pair], first: int) -> list[int]:
    """The rank of each box when every pair leads down; `pairs` must hold no cycle."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    awaited = [0] * count
    for source, target in pairs:
        leaving[source].append(target)
        awaited[target] += 1
    rank = [0] * count
    ready = [node for node in range(count) if not awaited[node]]
    loose = [node for node in ready if node != first and leaving[node]]
    while ready:
        node = ready.pop()
        for target in leaving[node]:
            rank[target] = max(rank[target], rank[node] + 1)
            awaited[target] -= 1
            if not awaited[target]:
                ready.append(target)
    for node in loose:  # a box that nothing leads to stands right above what it leads to
        rank[node] = min(rank[target] for target in leaving[node]) - 1
    return rank
