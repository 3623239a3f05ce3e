"""The colours of a picture, by day and by night, as a style sheet any SVG viewer understands."""

from string import Template

DAY = {
    "paper": "#f8fafc",
    "card": "#ffffff",
    "edge": "#cbd5e1",
    "ink": "#0f172a",
    "soft": "#64748b",
    "fail": "#dc2626",
    "entry": "#059669",
    "final": "#7c3aed",
    "admit": "#b45309",
    "loop": "#2563eb",
    "join": "#0f766e",
    "fork": "#be185d",
}
NIGHT = {
    "paper": "#0f172a",
    "card": "#1e293b",
    "edge": "#475569",
    "ink": "#f1f5f9",
    "soft": "#94a3b8",
    "fail": "#f87171",
    "entry": "#34d399",
    "final": "#a78bfa",
    "admit": "#fbbf24",
    "loop": "#60a5fa",
    "join": "#2dd4bf",
    "fork": "#f472b6",
}

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
