"""A drawing as Mermaid text, for README files, wikis and merge requests."""

import re

from noetl.cli.graph.measure import shorten
from noetl.server.views.drawing import Box, CardRow, Drawing, Edge, Mark

# Everything that Mermaid, its Markdown or its HTML could read as syntax becomes an entity code.
SPECIAL = re.compile(r"[^\w \-.,:=+/*()!?'\[\]·→…]")
LONGEST = 60

STYLES = (
    "classDef step fill:#ffffff,stroke:#64748b,color:#0f172a",
    "classDef entry fill:#ecfdf5,stroke:#059669,color:#064e3b,stroke-width:2px",
    "classDef final fill:#f5f3ff,stroke:#7c3aed,color:#4c1d95,stroke-width:2px",
    "classDef gate fill:#fffbeb,stroke:#d97706,color:#78350f",
)


def mermaid(drawing: Drawing) -> str:
    """The whole flowchart."""
    lines = ["flowchart TD"]
    for number, box in enumerate(drawing.boxes):
        lines += box_lines(number, box)
    for link in drawing.links:
        lines.append(link_line(drawing, link))
    failures = [str(number) for number, link in enumerate(drawing.links) if link.failure]
    # A gate stands before its step: its own links come after those of the arcs.
    lines += [
        f"  g{number} --> s{number}" for number, box in enumerate(drawing.boxes) if gate_of(box)
    ]
    if failures:
        lines.append(f"  linkStyle {','.join(failures)} stroke:#dc2626,color:#dc2626")
    lines += [f"  {style}" for style in STYLES]
    return "\n".join(lines) + "\n"


def box_lines(number: int, box: Box) -> list[str]:
    text = "<br/>".join(content(box))
    opening, closing = shape_of(box)
    lines = [f'  s{number}{opening}"{text}"{closing}:::{class_of(box)}']
    gate = gate_of(box)
    if gate:
        lines.append(f'  g{number}{{"admit<br/>{escape(shorten(gate.text, LONGEST))}"}}:::gate')
    return lines


def content(box: Box) -> list[str]:
    """The lines inside a box: name, marks, tasks."""
    ends = "".join(
        f" ({word})" for word, there in (("entry", box.entry), ("final", box.final)) if there
    )
    lines = [f"<b>{escape(shorten(box.name, LONGEST))}</b>{ends}"]
    lines += [
        f"<i>{mark.sort}: {escape(shorten(mark.text, LONGEST))}</i>"
        for mark in box.marks
        if mark.sort != "admit"
    ]
    lines += [row_text(row) for row in box.rows]
    if box.hidden:
        lines.append(f"… {box.hidden} more")
    return lines


def row_text(row: CardRow) -> str:
    note = f" · {row.note}" if row.note else ""
    return "→ " * row.depth + escape(shorten(f"{row.label}: {row.kind}{note}", LONGEST))


def link_line(drawing: Drawing, link: Edge) -> str:
    target = f"{'g' if gate_of(drawing.boxes[link.target]) else 's'}{link.target}"
    arrow = "-.->" if link.failure else "-->"
    label = f'|"{escape(shorten(link.label, LONGEST))}"|' if link.label else ""
    return f"  s{link.source} {arrow}{label} {target}"


def gate_of(box: Box) -> Mark | None:
    return next((mark for mark in box.marks if mark.sort == "admit"), None)


def shape_of(box: Box) -> tuple[str, str]:
    """Loops as a subroutine, steps that only route as a stadium, all others as a box."""
    if any(mark.sort == "loop" for mark in box.marks):
        return "[[", "]]"
    return ("[", "]") if box.rows else ("([", "])")


def class_of(box: Box) -> str:
    return "entry" if box.entry else "final" if box.final else "step"


def escape(text: str) -> str:
    return SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)
