"""How wide text is in a picture, without a font at hand."""

from noetl.cli.terminal import width_of

# Advance widths in em of a wide sans-serif (DejaVu Sans), so that text fits in narrower fonts too.
CLASSES: tuple[tuple[str, float], ...] = (
    ("ijl'|", 0.30),
    ("fIrt.,:;!/\\ -()[]`", 0.40),
    ('"szcJvxyk_*^{}', 0.58),
    ("mMWw@%", 0.98),
    ("ABCDEFGHKLNOPQRSTUVXYZ&", 0.74),
    ("+=<>~#", 0.84),
)
WIDTHS = {char: width for chars, width in CLASSES for char in chars}
OTHER = 0.635
MONO = 0.605
BOLD = 1.1


def measure(text: str, size: float, *, mono: bool = False, bold: bool = False) -> float:
    """The width of one line in pixels; wide characters count as two."""
    if mono:
        return width_of(text) * MONO * size
    ems = sum(WIDTHS.get(char, OTHER if char.isascii() else 0.9 * width_of(char)) for char in text)
    return ems * size * (BOLD if bold else 1.0)


def shorten(text: str, most: int) -> str:
    """At most so many columns, the rest given as an ellipsis."""
    if len(text) <= most and width_of(text) <= most:
        return text
    kept, used = [], 0
    for char in text:
        used += width_of(char)
        if used > most - 1:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def wrap(text: str, most: int, lines: int) -> tuple[str, ...]:
    """Broken at spaces into lines of at most so many columns; what is too much is cut."""
    wrapped: list[str] = []
    line = ""
    for word in text.split():
        if line and width_of(line) + 1 + width_of(word) > most:
            wrapped.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
        if len(wrapped) == lines:
            break
    else:
        wrapped.append(line)
        return tuple(shorten(part, most) for part in wrapped[:lines] if part)
    kept = wrapped[:lines]
    return (*(shorten(part, most) for part in kept[:-1]), shorten(f"{kept[-1]} …", most))
