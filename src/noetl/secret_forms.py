"""How a secret looks where something wrote it: as it is, encoded, escaped, cut into lines."""

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterator
from typing import NamedTuple

SHORTEST = 6
"""KEY-3: shorter values are no secret inside a text, only where they stand alone."""
SHORTEST_LINE = 16
"""Of a secret with several lines (a private key) each is masked too, if it is as long as this."""

RESERVED = "!#$&'()*+,/:;=?@[]~"
UNTOUCHED = ("", "/", "!'()*~", RESERVED, f"{RESERVED}%")
"""What one library or another leaves as it is when it writes a text into a URL."""

# Compiled by `re` when they are first used: few runs have a secret.
CORE = rf"[A-Za-z0-9_.\-]{{{SHORTEST},}}"
"""Characters that no form of text writes in another way."""
SPECIAL = r"([^A-Za-z0-9_@%+=:,./\n-])"
"""What a shell takes for something else."""
ESCAPE = r"\\u([0-9a-f]{4})"
PERCENT = "%[0-9A-F]{2}"

BEGINNING = 8
"""Characters of a form that are looked for first."""


class SecretForms(NamedTuple):
    """
    How one secret shows up: made once, for a process may come to know thousands. What may be in
    JSON is written byte by byte, since text is searched faster than bytes.
    """

    written: dict[str, tuple[str, str]]
    """Form → itself in JSON of ours, and in JSON of others."""
    marks: tuple[str, ...]
    """Every form has one of them in it."""
    needles: tuple[str, ...]
    """The marks in JSON of ours and of others; of a short value the whole text."""
    longest: int
    """Bytes of the longest form in JSON."""


def made_of(value: str) -> SecretForms:
    if len(value) < SHORTEST:
        whole = bytewise(in_json(value))
        return SecretForms({}, (), (whole,), len(whole))
    written = {form: _in_both(form) for form in forms_of(value)}
    marks = (*dict.fromkeys(marks_of(value)),)
    needles = (*dict.fromkeys(needle for mark in marks for needle in _in_both(mark)),)
    return SecretForms(written, marks, needles, max(len(form) for form, _ in written.values()))


def _in_both(text: str) -> tuple[str, str]:
    """JSON of others is as they wrote it: a form in it is encoded once, not twice."""
    return bytewise(in_json(text)[1:-1]), bytewise(text)


def bytewise(text: str) -> str:
    """A character for each byte in UTF-8."""
    return text.encode("utf-8", "replace").decode("latin-1")


def forms_of(value: str) -> Iterator[str]:
    """The value and how it looks when it was encoded; none for a short one."""
    if len(value) < SHORTEST:
        return
    for text in (value, *_lines(value), *_misread(value)):
        yield from _forms(text)


def marks_of(value: str) -> Iterator[str]:
    """
    A few texts, one of which is in whatever holds a form of the value: most texts hold none, and
    are looked through for these alone.
    """
    if len(value) < SHORTEST:
        return
    for text in (value, *_lines(value), *_misread(value)):
        core = max(re.findall(CORE, text), key=len, default="")
        # Without a core the beginnings do: many forms begin alike.
        yield from _core_forms(core) if core else {form[:BEGINNING] for form in _forms(text)}


def _core_forms(core: str) -> Iterator[str]:
    """The core stands in every form of text as it is, and in every form of bytes as these."""
    yield core
    yield from _in_bytes(core.encode())
    yield from (_percented(core), _percented(core).lower())


def _forms(text: str) -> Iterator[str]:
    for written in dict.fromkeys((text, *_escaped(text))):
        yield written
        yield from _escaped(written)  # JSON in a text of JSON
        yield from _in_bytes(written.encode("utf-8", "replace"))
    yield from _in_html(text)
    for told in dict.fromkeys((text, *_escaped(text))):  # JSON in a URL
        yield from _in_url(told)
    yield from _quoted(text)
    yield from (repr(text)[1:-1], ascii(text)[1:-1])


def _in_url(text: str) -> Iterator[str]:
    # Imported here: the help of the program needs it not, and most runs have no secret.
    from urllib.parse import quote, quote_plus

    for safe in UNTOUCHED:
        for written in dict.fromkeys((quote(text, safe, errors="replace"), quote_plus(text, safe))):
            yield from (written, re.sub(PERCENT, _lower, written))
    once = quote(text, "", errors="replace")
    if once != text:
        yield quote(once, "")
    yield from (_percented(text), _percented(text).lower())


def _percented(text: str) -> str:
    """Every byte with a percent sign, as some write what they do not trust."""
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))


def _quoted(text: str) -> Iterator[str]:
    """Inside a literal of SQL or CSV, and as a word of a shell."""
    yield from (text.replace("'", "''"), text.replace('"', '""'))
    escaped = text.replace("\\", "\\\\")
    yield from (escaped, escaped.replace("'", "\\'"), escaped.replace('"', '\\"'))
    yield escaped.replace("'", "''")
    for within in ("'\"'\"'", "'\\''"):
        yield text.replace("'", within)
    yield re.sub(SPECIAL, r"\\\1", text)
    yield re.sub(r'(["$`\\])', r"\\\1", text)


def _escaped(text: str) -> Iterator[str]:
    for written in (in_json(text)[1:-1], in_json(text, ascii_only=True)[1:-1]):
        yield from (written, written.replace("/", "\\/"), re.sub(ESCAPE, _upper, written))


def _in_html(text: str) -> Iterator[str]:
    """Escaped by one library or another, which write quotes and what is not ASCII differently."""
    marked = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for quotes in ({}, *HTML_QUOTES):
        written = "".join(quotes.get(char, char) for char in marked)
        yield written
        for reference in REFERENCES:
            yield "".join(char if char.isascii() else reference(char) for char in written)


HTML_QUOTES = (
    {'"': "&quot;"},
    {'"': "&quot;", "'": "&#x27;"},
    {'"': "&quot;", "'": "&apos;"},
    {'"': "&#34;", "'": "&#39;"},
    {'"': "&quot;", "'": "&#39;"},
)
REFERENCES: tuple[Callable[[str], str], ...] = (
    lambda char: f"&#{ord(char)};",
    lambda char: f"&#x{ord(char):x};",
    lambda char: f"&#x{ord(char):X};",
)


def _in_bytes(value: bytes) -> Iterator[str]:
    yield from (value.hex(), value.hex().upper(), repr(value)[2:-1])
    yield from _in_base64(value)


def _lines(value: str) -> list[str]:
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) < 2:
        return []
    return [line for line in lines if len(line) >= SHORTEST_LINE and not line.startswith("-----")]


def _misread(value: str) -> list[str]:
    """As somebody shows it who takes its bytes for Latin-1, as headers of HTTP often are."""
    return [] if value.isascii() else [value.encode("utf-8", "replace").decode("latin-1")]


def _in_base64(value: bytes) -> Iterator[str]:
    """
    What of the value is sure to stand in any base64 text that has the value somewhere in it.

    Three bytes make four characters, so there are three ways to be aligned; the characters that
    share bits with a neighbour are left out.
    """
    for before in range(3):
        text = b2a_base64(b"\0" * before + value, newline=False).decode()
        first = -(-before * 8 // 6)
        last = (before + len(value)) * 8 // 6
        sure = text[first:last]
        if len(sure) >= SHORTEST:
            yield sure
            yield sure.replace("+", "-").replace("/", "_")
            yield sure.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")


def _upper(found: re.Match[str]) -> str:
    return f"\\u{found[1].upper()}"


def _lower(found: re.Match[str]) -> str:
    return found[0].lower()


def in_json(text: str, *, ascii_only: bool = False) -> str:
    # Imported here: the help of the program needs no JSON.
    import json

    return json.dumps(text, ensure_ascii=ascii_only)
