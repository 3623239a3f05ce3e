"""Where everything of a drawing stands on the page: cards, labels, and the lines of the links."""

import msgspec

from noetl.cli.graph.card import Card, card_of
from noetl.cli.graph.measure import measure, wrap
from noetl.cli.graph.order import ordered
from noetl.cli.graph.place import place_across, place_down, spread_out
from noetl.cli.graph.slots import Ends, Layers, LayerSlot, Path, layered
from noetl.server.views.drawing import Drawing, Edge

LABEL_SIZE = 11.0
LABEL_LINE = 14.0
ROW_GAP = 26.0
OWN = 34.0
"""How far the line of an arc that leads back to its own box stands out."""

Point = tuple[float, float]


class PlacedCard(msgspec.Struct, frozen=True):
    """A card with the top left corner where it stands."""

    card: Card
    x: float
    y: float


class EdgePath(msgspec.Struct, frozen=True):
    """The line of one link: points to join, and its label around `at`."""

    link: Edge
    points: tuple[Point, ...]
    label: tuple[str, ...]
    at: Point
    arrow: bool = True
    own: bool = False


class Layout(msgspec.Struct, frozen=True):
    """The page."""

    width: float
    height: float
    cards: tuple[PlacedCard, ...]
    routes: tuple[EdgePath, ...]


def lay_out(drawing: Drawing) -> Layout:
    """Layers, then order, then places, then lines."""
    cards = [card_of(box) for box in drawing.boxes]
    labels = [wrap(link.label, 32, 3) for link in drawing.links]
    beside = [0.0] * len(cards)
    for link, label in zip(drawing.links, labels, strict=True):
        if link.source == link.target:
            beside[link.source] = max(beside[link.source], OWN + label_size(label)[0])
    sizes = [(card.width + 2 * room, card.height) for card, room in zip(cards, beside, strict=True)]
    page = layered(
        sizes,
        [
            Ends(link.source, link.target, link.failure, label_size(label))
            for link, label in zip(drawing.links, labels, strict=True)
        ],
        entry=next((n for n, box in enumerate(drawing.boxes) if box.entry), 0),
        final=next((n for n, box in enumerate(drawing.boxes) if box.final), None),
    )
    layers = ordered(page.layers, page.lines)
    place_across(page.slots, layers, page.lines)
    rows = place_down(page.slots, layers, ROW_GAP)
    ports = ports_of(page, cards)
    routes = [
        route_of(drawing, page, path, labels[path.link], rows=rows, ports=ports, cards=cards)
        for path in page.paths
    ]
    routes += [own_route(drawing.links[n], page, cards, labels[n]) for n in page.own]
    return Layout(
        width=max((slot.x + slot.width / 2 for slot in page.slots), default=0.0),
        height=rows[-1][1] if rows else 0.0,
        cards=tuple(
            PlacedCard(card, slot.x - card.width / 2, slot.y - card.height / 2)
            for card, slot in zip(cards, page.slots, strict=False)
        ),
        routes=tuple(routes),
    )


def label_size(lines: tuple[str, ...]) -> tuple[float, float]:
    if not lines:
        return 8.0, 0.0
    width = max(measure(line, LABEL_SIZE, mono=True) for line in lines)
    return width + 10, LABEL_LINE * len(lines) + 4


def ports_of(page: Layers, cards: list[Card]) -> dict[tuple[int, int], float]:
    """Where on the edge of a card the line from or to a slot is fastened, by (card, slot)."""
    sides: dict[tuple[int, bool], list[int]] = {}
    for upper, lower in page.lines:
        if upper < len(cards):
            sides.setdefault((upper, False), []).append(lower)
        if lower < len(cards):
            sides.setdefault((lower, True), []).append(upper)
    ports: dict[tuple[int, int], float] = {}
    for (box, _), others in sides.items():
        others.sort(key=lambda other: page.slots[other].x)
        for other, x in zip(others, fastened(page.slots, box, others, cards[box]), strict=True):
            ports[box, other] = x
    return ports


def fastened(slots: list[LayerSlot], box: int, others: list[int], card: Card) -> list[float]:
    centre = slots[box].x - card.pile / 2
    half = (card.width - card.pile) / 2 - (14 if card.rows else 22)
    step = min(18.0, 2 * half / max(1, len(others) - 1))
    wanted = [min(max(slots[other].x, centre - half), centre + half) for other in others]
    placed = spread_out(wanted, [step] * (len(others) - 1), [1.0] * len(others))
    return [
        max(
            centre - half + step * number, min(x, centre + half - step * (len(others) - 1 - number))
        )
        for number, x in enumerate(placed)
    ]


def route_of(
    drawing: Drawing,
    page: Layers,
    path: Path,
    label: tuple[str, ...],
    *,
    rows: list[tuple[float, float]],
    ports: dict[tuple[int, int], float],
    cards: list[Card],
) -> EdgePath:
    """The points of one link: edge of the card, edges of every layer it passes, the other card."""
    points: list[Point] = []
    for position, number in enumerate(path.slots):
        slot = page.slots[number]
        enter, leave = rows[slot.layer][:: -1 if path.upward else 1]
        if number >= len(cards):
            points.append((slot.x, enter))
            joined = number == path.slots[-1] and not path.stub
            if enter != leave and not joined:  # where it joins a cable, the cable goes on
                points.append((slot.x, leave))
            continue
        half = cards[number].height / 2 * (-1 if path.upward else 1)
        if position == 0:
            x = ports[number, path.slots[1]]
            points += [(x, slot.y + half), (x, leave)]
        else:
            x = ports[number, path.slots[position - 1]]
            points += [(x, enter), (x, slot.y - half)]
    at = page.slots[path.slots[1]]
    link = drawing.links[path.link]
    if path.stub:
        label = (*label, f"→ {drawing.boxes[link.target].name}")
    arrow = path.slots[-1] < len(cards)
    return EdgePath(link, tuple(points), label, (at.x, at.y), arrow=arrow)


def own_route(link: Edge, page: Layers, cards: list[Card], label: tuple[str, ...]) -> EdgePath:
    slot, card = page.slots[link.source], cards[link.source]
    side = slot.x + card.width / 2
    points = (
        (side, slot.y + 12),
        (side + OWN, slot.y + 12),
        (side + OWN, slot.y - 12),
        (side, slot.y - 12),
    )
    at = side + OWN * 0.8 + label_size(label)[0] / 2
    return EdgePath(link, points, label, (at, slot.y), own=True)
