"""
Which secret values this process knows, and how they are kept out of whatever leaves it (KEY-2).

There is one register per process, because a secret that was unlocked for one execution may come
out another way: an error of the driver, a line that a child printed. While nothing is
registered every question costs one `if`.
"""

import re
from _thread import allocate_lock
from binascii import b2a_base64
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from noetl.late import late

MASK = "***"
NUMBERS = (int, float)
SHORTEST = 6
"""KEY-3: shorter values are no secret inside a text, only where they stand alone."""
SHORTEST_LINE = 16
"""Of a secret with several lines (a private key) each is masked too, if it is as long as this."""


RESERVED = "!#$&'()*+,/:;=?@[]~"
UNTOUCHED = ("", "/", "!'()*~", RESERVED, f"{RESERVED}%")
"""What one library or another leaves as it is when it writes a text into a URL."""

CORE = late(rf"[A-Za-z0-9_.\-]{{{SHORTEST},}}")
"""Characters that no form of text writes in another way."""

BEGINNING = 8
"""Characters of a form that are looked for first."""

FEW = 256
"""Marks that are looked for one by one; more of them by their parts, in one pass over a text."""
PART, STRIDE = 6, 8
"""Characters of a part of a mark; the most that lie between two looks at a text."""

BREAKS = late(r"[\r\n]+[ \t]*")
"""Where a long text was cut into lines: base64 has them after every 76 characters, or 64."""
BREAKS_IN_JSON = late(r"(?:\\[rn])+(?: |\\t)*")

_special = late(r"([^A-Za-z0-9_@%+=:,./\n-])")
"""What a shell takes for something else."""
_escape = late(r"\\u([0-9a-f]{4})")
_percent = late("%[0-9A-F]{2}")


class SecretForms(NamedTuple):
    """How one secret shows up: made once, for a process may come to know thousands."""

    written: dict[str, tuple[bytes, bytes]]
    """Form → itself in JSON of ours, and in JSON of others."""
    marks: tuple[str, ...]


class MarkIndex:
    """Finds the secrets whose marks are in a text, however many there are, in few passes."""

    def __init__(self, marks: dict[str, set[str]]) -> None:
        """A mark → the secrets that it is a mark of."""
        self._short = {mark: of for mark, of in marks.items() if len(mark) < PART}
        self._passes: list[tuple[int, dict[str, set[str]]]] = []
        rest = [mark for mark in marks if len(mark) >= PART]
        long = {mark for mark in rest if len(mark) >= PART + STRIDE - 1}
        for some in (long, set(rest) - long):
            if not some:
                continue
            # Of a mark that begins anywhere, one of its first parts begins where is looked.
            stride = min(STRIDE, min(map(len, some)) - PART + 1)
            parts: dict[str, set[str]] = {}
            for mark in some:
                for begin in range(stride):
                    parts.setdefault(mark[begin : begin + PART], set()).update(marks[mark])
            self._passes.append((stride, parts))

    def found(self, text: str) -> set[str]:
        """All secrets with a mark in the text, and perhaps a few without."""
        found = {one for mark, of in self._short.items() if mark in text for one in of}
        for stride, parts in self._passes:
            ends = range(PART, len(text) + 1, stride)
            for part in {seen for end in ends if (seen := text[end - PART : end]) in parts}:
                found |= parts[part]
        return found


class Masking:
    """A register of secret values and of the forms in which they show up."""

    def __init__(self) -> None:
        self._values: dict[str, SecretForms] = {}
        self._whole: frozenset[str] = frozenset()
        self._forms: tuple[str, ...] = ()
        self._encoded: tuple[bytes, ...] = ()
        self._marks: tuple[str, ...] = ()
        self._needles: tuple[str, ...] = ()
        self._index: MarkIndex | None = None
        """Of the marks, and of the needles, where there are many."""
        self._needle_index: MarkIndex | None = None
        self._changing = allocate_lock()
        self.generation = 0
        """Changes with what is known: what was masked before may have to be masked again."""
        self.longest = 0
        """Bytes of the longest form: how much of a stream must be seen at once."""

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: str) -> None:
        """From now on the value is masked; a text of nothing but blanks hides nothing."""
        self.add_many((value,))

    def add_many(self, values: Iterable[str]) -> None:
        """The same for several at once; large ones may be added in a thread of their own."""
        known = self._values
        fresh = {value: made_of(value) for value in values if value not in known and value.strip()}
        if fresh:
            with self._changing:
                self._values = {**self._values, **fresh}
                self._rebuild()

    def knows(self, values: Iterable[str]) -> bool:
        """Whether all of them are masked already."""
        return all(value in self._values or not value.strip() for value in values)

    def forget(self, value: str) -> None:
        """The value opens nothing any more (a token that has run out)."""
        with self._changing:
            if value in self._values:
                self._values = {one: made for one, made in self._values.items() if one != value}
                self._rebuild()

    def clear(self) -> None:
        """Forget everything, as a new process would."""
        with self._changing:
            self._values = {}
            self._rebuild()

    def _rebuild(self) -> None:
        self.generation += 1
        self._whole = frozenset(value for value in self._values if len(value) < SHORTEST)
        self._forms = ordered_forms(self._values.values())
        self._encoded = encoded_forms(self._values.values(), self._whole)
        self.longest = max(map(len, self._encoded), default=0)
        marks: dict[str, set[str]] = {}
        for value, made in self._values.items():
            for mark in made.marks:
                marks.setdefault(mark, set()).add(value)
        needles: dict[str, set[str]] = {}
        for mark, of in marks.items():
            for needle in (_json(mark)[1:-1].encode(), mark.encode("utf-8", "replace")):
                needles.setdefault(needle.decode("latin-1"), set()).update(of)
        for short in self._whole:
            needles.setdefault(_json(short).encode().decode("latin-1"), set()).add(short)
        self._marks, self._needles = (*marks,), (*needles,)
        self._index = MarkIndex(marks) if len(marks) > FEW else None
        self._needle_index = MarkIndex(needles) if len(needles) > FEW else None

    def found_in(self, encoded: bytes) -> bool:
        """Whether a JSON text may hold a secret; the quick look before any walk."""
        if not self._needles:
            return False
        text = encoded.decode("latin-1")  # byte by byte: text is searched faster than bytes
        if self._needle_in(text):
            return True
        return "\\n" in text and self._needle_in(BREAKS_IN_JSON.sub("", text))

    def _needle_in(self, text: str) -> bool:
        if self._needle_index is not None:
            return bool(self._needle_index.found(text))
        return any_in(self._needles, text)

    def _forms_in(self, text: str) -> tuple[str, ...]:
        """Forms that may be in the text, the longest first."""
        if self._index is not None:
            values = self._values
            return ordered_forms(values[one] for one in self._index.found(text))
        return self._forms if any_in(self._marks, text) else ()

    def all_in(self, encoded: bytes) -> list[str]:
        """The secrets that a JSON text holds, in whatever form."""
        return [
            value
            for value, made in self._values.items()
            if any(_json(form)[1:-1].encode() in encoded for form in made.written or (value,))
        ]

    def holds(self, text: str) -> bool:
        """Whether there is a secret in the text, or the text is one."""
        if text in self._whole:
            return True
        return self._has_form(text) or ("\n" in text and self._has_form(BREAKS.sub("", text)))

    def _has_form(self, text: str) -> bool:
        return any(form in text for form in self._forms_in(text))

    def masked(self, text: str) -> str:
        """The text with every secret in it replaced."""
        if not self._values:
            return text
        if text in self._whole:
            return MASK
        for form in self._forms_in(text):
            if form in text:
                text = text.replace(form, MASK)
        return self._masked_over_lines(text) if "\n" in text else text

    def _masked_over_lines(self, text: str) -> str:
        """What stands in several lines, although it has none itself."""
        whole = BREAKS.sub("", text)
        spans = [span for form in self._forms_in(whole) for span in spans_of(form, whole)]
        if not spans:
            return text
        breaks: list[tuple[int, int]] = []
        gone = 0
        for found in BREAKS.finditer(text):
            breaks.append((found.start() - gone, gone + len(found[0])))
            gone += len(found[0])

        def place(index: int) -> int:
            """Where in the text a character of the whole is."""
            before = bisect_right(breaks, index, key=itemgetter(0))
            return index + (breaks[before - 1][1] if before else 0)

        kept: list[str] = []
        end = 0
        for first, last in sorted(spans):
            begin = place(first)
            if begin >= end:
                kept += [text[end:begin], MASK]
            end = max(end, place(last - 1) + 1)
        return "".join([*kept, text[end:]])

    def masked_json(self, encoded: bytes) -> bytes:
        """The same for a text of JSON, which stays JSON; a mask needs no escape."""
        if not self.found_in(encoded):
            return encoded
        for form in self._encoded_in(encoded):
            if form in encoded:
                encoded = encoded.replace(form, in_json(form))
        return encoded

    def _encoded_in(self, encoded: bytes) -> tuple[bytes, ...]:
        if self._needle_index is None:
            return self._encoded
        found = self._needle_index.found(encoded.decode("latin-1"))
        return encoded_forms((self._values[one] for one in found), self._whole & found)

    def cleaned(self, value: Any, words: Collection[str] = ()) -> Any:
        """Plain data with every secret in it replaced; of the keys these words stay."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.masked(value)
        if isinstance(value, dict):
            return {
                key if key in words else self.cleaned(key): self.cleaned(below, words)
                for key, below in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.cleaned(below, words) for below in value]
        if type(value) in NUMBERS and self.holds(str(value)):
            return MASK
        return value


def ordered_forms(secrets: Iterable[SecretForms]) -> tuple[str, ...]:
    """Longest first, so that no part of a longer one is left standing."""
    written = {form for made in secrets for form in made.written}
    return (*sorted(written, key=lambda form: (-len(form), form)),)


def encoded_forms(secrets: Iterable[SecretForms], whole: Iterable[str]) -> tuple[bytes, ...]:
    """The same in JSON; of short ones nothing but the whole text."""
    written: dict[str, tuple[bytes, bytes]] = {}
    for made in secrets:
        written.update(made.written)
    forms = sorted(written, key=lambda form: (-len(form), form))
    inside = [written[form][0] for form in forms]
    # JSON of others is as they wrote it: the value in it is encoded once, not twice.
    foreign = [written[form][1] for form in forms]
    return (*dict.fromkeys([*inside, *foreign, *(_json(short).encode() for short in whole)]),)


def spans_of(form: str, text: str) -> Iterator[tuple[int, int]]:
    begin = text.find(form)
    while begin >= 0:
        yield begin, begin + len(form)
        begin = text.find(form, begin + len(form))


def any_in(marks: Iterable[str], text: str) -> bool:
    return any(map(text.__contains__, marks))  # asked of every report and every printed line


def in_json(form: bytes) -> bytes:
    """What stands in JSON instead of a secret: digits may be of a number, which must stay one."""
    if form.isdigit():
        return b"9" * len(form)
    return b'"***"' if form[:1] == b'"' and form[-1:] == b'"' else b"***"


def made_of(value: str) -> SecretForms:
    written = {
        form: (_json(form)[1:-1].encode(), form.encode("utf-8", "replace"))
        for form in forms_of(value)
    }
    return SecretForms(written, (*dict.fromkeys(marks_of(value)),))


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
        core = max(CORE.findall(text), key=len, default="")
        # Without a core the beginnings do: many forms begin alike.
        yield from _core_forms(core) if core else {form[:BEGINNING] for form in _forms(text)}


def _core_forms(core: str) -> Iterator[str]:
    """The core stands in every form of text as it is, and in every form of bytes as these."""
    yield core
    yield from _in_bytes(core.encode())
    yield from (_percented(core), _percented(core).lower())


def _forms(text: str) -> Iterator[str]:
    for written in dict.fromkeys((text, *_in_json(text))):
        yield written
        yield from _in_json(written)  # JSON in a text of JSON
        yield from _in_bytes(written.encode("utf-8", "replace"))
    yield from _in_html(text)
    for told in dict.fromkeys((text, *_in_json(text))):  # JSON in a URL
        yield from _in_url(told)
    yield from _quoted(text)
    yield from (repr(text)[1:-1], ascii(text)[1:-1])


def _in_url(text: str) -> Iterator[str]:
    # Imported here: the help of the program needs it not, and most runs have no secret.
    from urllib.parse import quote, quote_plus

    for safe in UNTOUCHED:
        for written in dict.fromkeys((quote(text, safe, errors="replace"), quote_plus(text, safe))):
            yield from (written, _percent.sub(_lower, written))
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
    yield _special.sub(r"\\\1", text)
    yield re.sub(r'(["$`\\])', r"\\\1", text)


def _in_json(text: str) -> Iterator[str]:
    for written in (_json(text)[1:-1], _json(text, ascii_only=True)[1:-1]):
        yield from (written, written.replace("/", "\\/"), _escape.sub(_upper, written))


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


def _json(text: str, *, ascii_only: bool = False) -> str:
    # Imported here: the help of the program needs no JSON.
    import json

    return json.dumps(text, ensure_ascii=ascii_only)


# ── addresses ────────────────────────────────────────────────────────────────────────────────

_USERINFO = late(r"(?<=://)((?:(?!,\w+://)\S)*)@")
"""Up to the last @ of an address: a password may hold what should have been percent-encoded."""
_IN_QUERY = late(r"(?i)([?&;](?:[\w-]*(?:password|passwd|secret|token|key))=)[^&;\s'\"]*")


def without_password(text: str) -> str:
    """A text with the passwords of the addresses in it replaced, however they were written."""
    return _IN_QUERY.sub(rf"\1{MASK}", _USERINFO.sub(_user_alone, text))


def _user_alone(found: re.Match[str]) -> str:
    user, colon, _ = found[1].partition(":")
    return f"{user}:{MASK}@" if colon else f"{MASK}@"  # without a password it is a token


def add_all(masking: Masking, values: Iterable[Any]) -> None:
    """Register every text and number in the values, whatever they are nested in."""
    masking.add_many(texts_in(values))


def texts_in(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from texts_in(value.values())
        elif isinstance(value, list | tuple):
            yield from texts_in(value)
        elif type(value) in NUMBERS and len(str(value)) >= SHORTEST:
            yield str(value)


KNOWN = Masking()
"""The register of this process."""
