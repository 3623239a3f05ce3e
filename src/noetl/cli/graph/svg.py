"""A drawing as SVG, laid out and drawn here, without any other program."""

from html import escape
from string import Template

from noetl.cli.graph import card as sizes
from noetl.cli.graph.card import Card, pill_width
from noetl.cli.graph.layout import (
    LABEL_LINE,
    EdgePath,
    Layout,
    PlacedCard,
    Point,
    label_size,
    lay_out,
)
from noetl.cli.graph.measure import measure
from noetl.server.views.drawing import Box, CardRow, Drawing, Mark

MARGIN = 28.0
HEAD = 34.0


def svg(drawing: Drawing) -> str:
    """The whole picture."""
    layout = lay_out(drawing)
    width = max(layout.width, measure(drawing.title, 16, bold=True)) + 2 * MARGIN
    height = layout.height + 2 * MARGIN + HEAD
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" height="{number(height)}"'
        f' viewBox="0 0 {number(width)} {number(height)}" role="img">',
        f"<title>{text(drawing.title)}</title>",
        f"<style>\n{style()}</style>",
        f"<defs>{tip('tip')}{tip('failtip')}</defs>",
        '<rect class="paper" width="100%" height="100%"/>',
        words("head", MARGIN, MARGIN + 6, drawing.title),
        f'<g transform="translate({number(MARGIN)} {number(MARGIN + HEAD)})">',
        *content(drawing, layout),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def content(drawing: Drawing, layout: Layout) -> list[str]:
    """Lines first, so that cards and labels lie above them."""
    parts = [line(route) for route in layout.routes]
    for placed, box in zip(layout.cards, drawing.boxes, strict=True):
        parts += card(placed, box)
    return parts + [label(route) for route in layout.routes if route.label]


def tip(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8"'
        ' markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="{name}" d="M0 0.5 L10 5 L0 9.5 z"/></marker>'
    )


def line(route: EdgePath) -> str:
    classes = "link" + " fail" * route.link.failure + " part" * (not route.arrow)
    return f'<path class="{classes}" d="{curve(route.points, own=route.own)}"/>'


def curve(points: tuple[Point, ...], *, own: bool) -> str:
    """Vertical where two points stand above each other, else an S that starts and ends upright."""
    (x, y), *rest = points
    if own:
        corners = " ".join(f"{number(px)} {number(py)}" for px, py in rest)
        return f"M{number(x)} {number(y)} C{corners}"
    parts = [f"M{number(x)} {number(y)}"]
    for px, py in rest:
        if (px, py) == (x, y):
            continue
        if abs(px - x) < 0.5:
            parts.append(f"L{number(px)} {number(py)}")
        else:
            middle = number((y + py) / 2)
            parts.append(f"C{number(x)} {middle} {number(px)} {middle} {number(px)} {number(py)}")
        x, y = px, py
    return " ".join(parts)


def label(route: EdgePath) -> str:
    """The guard on a patch of paper, so that its own line does not strike it through."""
    (x, y), (width, height) = route.at, label_size(route.label)
    classes = "label" + " fail" * route.link.failure
    top = y - height / 2
    lines = "".join(
        words(classes, x, top + 2 + LABEL_LINE * (place + 0.78), part, anchor="middle")
        for place, part in enumerate(route.label)
    )
    patch = (
        f'<rect class="paper" rx="3" x="{number(x - width / 2)}" y="{number(top)}"'
        f' width="{number(width)}" height="{number(height)}"/>'
    )
    return f"<g><title>{text(route.link.label)}</title>{patch}{lines}</g>"


def card(placed: PlacedCard, box: Box) -> list[str]:
    inside = placed.card
    parts = [
        f'<g transform="translate({number(placed.x)} {number(placed.y)})">',
        f"<title>{text(tooltip(box))}</title>",
        *frame(inside, box),
        words("title", sizes.PAD, sizes.PAD + 12, inside.title),
    ]
    right = inside.width - inside.pile - sizes.PAD
    for word in reversed(inside.ends):
        right -= pill_width(word)
        parts.append(pill(word, right, sizes.PAD + 8))
        right -= 6
    y = sizes.PAD + sizes.TITLE_HEIGHT
    for mark in inside.marks:
        parts += mark_line(mark, y + 5)
        y += sizes.LINE
    if inside.rows:
        parts.append(rule(inside, y - 1))
        y += 6
    for row in inside.rows:
        parts += row_line(row, inside, y + 9)
        y += sizes.LINE
    if inside.more:
        parts.append(words("soft", sizes.PAD, y + 9, inside.more))
    return [*parts, "</g>"]


def frame(inside: Card, box: Box) -> list[str]:
    """The card itself: a pile for a loop, a gate for an admission, round for routing only."""
    sorts = {mark.sort for mark in inside.marks}
    classes = "card" + " entry" * box.entry + " final" * box.final
    radius = 8 if inside.rows else 18
    width, height = inside.width - inside.pile, inside.height - inside.pile
    size = f'rx="{radius}" width="{number(width)}" height="{number(height)}"'
    parts = []
    if "loop" in sorts:
        parts = [
            f'<rect class="{classes}" x="{number(shift)}" y="{number(shift)}" {size}/>'
            for shift in (inside.pile, inside.pile / 2)
        ]
    parts.append(f'<rect class="{classes}" {size}/>')
    if "admit" in sorts:
        middle = width / 2
        parts.append(
            f'<path class="admit pad" d="M{number(middle - 9)} 0 L{number(middle)} -9'
            f' L{number(middle + 9)} 0 L{number(middle)} 9 z"/>'
        )
    return parts


def mark_line(mark: Mark, y: float) -> list[str]:
    x = sizes.PAD + pill_width(mark.sort) + 8
    return [
        pill(mark.sort, sizes.PAD, y),
        words("soft", x, y + 4, mark.text),
    ]


def row_line(row: CardRow, inside: Card, y: float) -> list[str]:
    x = sizes.PAD + 14 * row.depth
    right = inside.width - inside.pile - sizes.PAD
    parts = [
        words("task", x, y, row.label),
        words("kind", right, y, row.kind, anchor="end"),
    ]
    if row.note:
        note = x + measure(row.label, sizes.TEXT) + 8
        parts.append(words("note", note, y, row.note))
    return parts


def pill(word: str, x: float, y: float) -> str:
    width = pill_width(word)
    return (
        f'<rect class="{word} pad" rx="7" x="{number(x)}" y="{number(y - 7)}"'
        f' width="{number(width)}" height="15"/>'
    ) + words("pill", x + width / 2, y + 4, word, anchor="middle")


def rule(inside: Card, y: float) -> str:
    right = number(inside.width - inside.pile - sizes.PAD)
    return f'<path class="rule" d="M{number(sizes.PAD)} {number(y)} H{right}"/>'


def tooltip(box: Box) -> str:
    """The full text of what the card may show cut short."""
    return "\n".join([box.name, box.desc, *(f"{mark.sort}: {mark.text}" for mark in box.marks)])


def words(classes: str, x: float, y: float, value: str, *, anchor: str = "start") -> str:
    return (
        f'<text class="{classes}" text-anchor="{anchor}" x="{number(x)}" y="{number(y)}">'
        f"{text(value)}</text>"
    )


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def text(value: str) -> str:
    """Escaped for XML; what XML cannot hold or terminals obey is replaced by a sign."""
    return escape("".join(char if allowed(char) else "\ufffd" for char in value))


def allowed(char: str) -> bool:
    """XML 1.0 §2.2, without the signs that it discourages."""
    return (
        char in "\t\n"
        or " " <= char < "\x7f"
        or "\x9f" < char <= "\ud7ff"
        or "\ue000" <= char <= "\ufffd"
        or char > "\uffff"
    )


PALETTE = {
    "paper": ("#f8fafc", "#0f172a"),
    "card": ("#ffffff", "#1e293b"),
    "edge": ("#cbd5e1", "#475569"),
    "ink": ("#0f172a", "#f1f5f9"),
    "soft": ("#64748b", "#94a3b8"),
    "fail": ("#dc2626", "#f87171"),
    "entry": ("#059669", "#34d399"),
    "final": ("#7c3aed", "#a78bfa"),
    "admit": ("#b45309", "#fbbf24"),
    "loop": ("#2563eb", "#60a5fa"),
    "join": ("#0f766e", "#2dd4bf"),
    "fork": ("#be185d", "#f472b6"),
}
"""What is drawn → its colour by day, and by night."""
DAY = {name: day for name, (day, _) in PALETTE.items()}
NIGHT = {name: night for name, (_, night) in PALETTE.items()}

# No CSS variables: several viewers outside the browser do not know them and would draw black.
COLOURS = Template("""\
.paper { fill: $paper } .rule { stroke: $edge } text { fill: $ink }
.card { fill: $card; stroke: $edge } .card.entry { stroke: $entry } .card.final { stroke: $final }
.soft, .kind, .label { fill: $soft } .note { fill: $loop } .pill { fill: $card }
.pad.entry { fill: $entry } .pad.final { fill: $final } .pad.admit { fill: $admit }
.pad.loop { fill: $loop } .pad.join { fill: $join } .pad.fork { fill: $fork }
.link { stroke: $soft } .link.fail { stroke: $fail } .label.fail { fill: $fail }
.tip { fill: $soft } .failtip { fill: $fail }
""")
SHAPES = """\
text { font: 12px 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif }
.head { font-size: 16px; font-weight: 600 } .title { font-size: 14px; font-weight: 600 }
.kind, .label { font: 11px Menlo, Consolas, 'DejaVu Sans Mono', monospace }
.note { font-size: 11px } .pill { font-size: 11px; font-weight: 600 }
.card { stroke-width: 1.25 } .card.entry, .card.final { stroke-width: 2 }
.link { fill: none; stroke-width: 1.5; marker-end: url(#tip) }
.link.fail { stroke-dasharray: 6 4; marker-end: url(#failtip) }
.link.part { marker-end: none }
"""


def style() -> str:
    """The sheet: shapes once, colours by day, and by night where the viewer prefers it."""
    night = COLOURS.substitute(NIGHT)
    return f"{SHAPES}{COLOURS.substitute(DAY)}@media (prefers-color-scheme: dark) {{\n{night}}}\n"
