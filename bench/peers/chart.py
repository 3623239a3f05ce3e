"""The chart of the figures: bars on a logarithmic scale, readable in light and in dark."""

from html import escape
from math import log10

from bench.peers.registry import OURS, WORKS, Result
from bench.peers.report import figure

SHOWN = ("W1", "W2", "W3", "W4", "W7")
WIDTH, LEFT, BAR, ROW, HEAD, GAP = 860, 190, 520, 20, 30, 16
STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .head { font-weight: 600 }
    .soft { fill: #59636e }
    .ours { fill: #0969da }
    .peer { fill: #9aa4af }
    .none { fill: #59636e; font-style: italic }
    .page { fill: #ffffff }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .soft, .none { fill: #9198a1 }
      .ours { fill: #4493f8 }
      .peer { fill: #656c76 }
      .page { fill: #0d1117 }
    }
"""


def drawn(found: list[Result]) -> str:
    """A panel for each work, the best on top; who has no figure is named below the bars."""
    parts: list[str] = []
    y = HEAD
    for work in SHOWN:
        rows = [one for one in found if one.work == work]
        if rows:
            panel, y = panel_of(work, rows, y)
            parts += panel
    note = "Bars: logarithmic scale. Blue: NoETL. What each keeps on disk: docs/performance.md"
    parts.append(text(8, y + 4, note, "soft"))
    height = y + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">\n'
        f"  <title>NoETL and other engines on the same work, in one run</title>\n"
        f"  <style>{STYLE}  </style>\n"
        f'  <rect class="page" width="{WIDTH}" height="{height}"/>\n'
        + "".join(f"  {part}\n" for part in parts)
        + "</svg>\n"
    )


def panel_of(work: str, rows: list[Result], y: int) -> tuple[list[str], int]:
    """Its bars, and where the next panel begins."""
    what = WORKS[work]
    better = "less is better" if what.at_most else "more is better"
    title = f"{what.title[0].upper()}{what.title[1:]}"
    parts = [
        text(8, y - 10, title, "head"),
        text(WIDTH - 8, y - 10, f"{what.unit}, {better}", "soft", end=True),
    ]
    measured = [one for one in rows if one.value]
    measured.sort(key=lambda one: (one.value or 0.0) * (1 if what.at_most else -1))
    values = [one.value or 1.0 for one in measured]
    for one in measured:
        parts += bar(one, y, length(one.value or 1.0, min(values), max(values)))
        y += ROW
    without = [one.title for one in rows if not one.value]
    if without:
        parts.append(text(LEFT, y + 14, f"no figure: {', '.join(without)}", "none"))
        y += ROW
    return parts, y + GAP + HEAD


def length(value: float, least: float, most: float) -> float:
    """Between a tenth and the whole of the room; one step of the scale is a factor of ten."""
    if most <= least:
        return float(BAR)
    share = (log10(value) - log10(least)) / (log10(most) - log10(least))
    return BAR * (0.06 + 0.94 * share)


def bar(one: Result, y: int, long: float) -> list[str]:
    kind = "ours" if one.peer in OURS else "peer"
    says = figure(one.value or 0.0)
    return [
        text(LEFT - 8, y + 14, one.title, "", end=True),
        f'<rect class="{kind}" x="{LEFT}" y="{y + 3}" width="{long:.1f}"'
        f' height="{ROW - 6}" rx="2"/>',
        text(LEFT + round(long) + 6, y + 14, says, "soft"),
    ]


def text(x: int, y: int, says: str, kind: str, *, end: bool = False) -> str:
    anchor = ' text-anchor="end"' if end else ""
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{named}{anchor}>{escape(says)}</text>'
