"""
Which secret values this process knows, and how they are kept out of whatever leaves it (KEY-2).

There is one register per process, because a secret that was unlocked for one execution may come
out another way: an error of the driver, a line that a child printed. While nothing is
registered every question costs one `if`.
"""

import re
from _thread import allocate_lock
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from noetl.finding import Spans, Words, joined
from noetl.late import late

if TYPE_CHECKING:
    from noetl.secret_forms import SecretForms

MASK = "***"
NUMBERS = (int, float)

BREAKS = late(r"[\r\n]+[ \t]*")
"""Where a long text was cut into lines: base64 has them after every 76 characters, or 64."""
BREAKS_IN_JSON = late(r"(?:\\[rn])+(?: |\\t)*")


class Masking:
    """A register of secret values and of the forms in which they show up."""

    def __init__(self) -> None:
        self._values: dict[str, SecretForms] = {}
        self._whole: frozenset[str] = frozenset()
        self._forms = Words((), 0, tuple)
        self._encoded = Words((), 0, tuple)
        """Of JSON, byte by byte: text is searched faster than bytes."""
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
        from noetl.secret_forms import made_of  # a run without secrets reads none of it

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
        from noetl.secret_forms import SHORTEST

        self.generation += 1
        known = (*self._values.values(),)
        self._whole = frozenset(value for value in self._values if len(value) < SHORTEST)
        self.longest = max((made.longest for made in known), default=0)
        marks = {mark for made in known for mark in made.marks}
        needles = {needle for made in known for needle in made.needles}
        self._forms = Words(marks, self.longest, lambda: _forms_of(known))
        self._encoded = Words(needles, self.longest, lambda: _encoded_of(known))

    def found_in(self, encoded: bytes) -> bool:
        """Whether a JSON text may hold a secret; the quick look before any walk."""
        if not self._values:
            return False
        marks, text = self._encoded.marks, encoded.decode("latin-1")
        if marks.any_in(text):
            return True
        return "\\n" in text and marks.any_in(BREAKS_IN_JSON.sub("", text))

    def all_in(self, encoded: bytes) -> list[str]:
        """The secrets that a JSON text holds, in whatever form."""
        text = encoded.decode("latin-1")
        found = self._encoded.all_in(text)
        return [
            value
            for value, made in self._values.items()
            if any(ours in found for ours, _ in made.written.values())
            or (value in self._whole and made.needles[0][1:-1] in text)
        ]

    def holds(self, text: str) -> bool:
        """Whether there is a secret in the text, or the text is one."""
        if text in self._whole:
            return True
        return self._has_form(text) or ("\n" in text and self._has_form(BREAKS.sub("", text)))

    def _has_form(self, text: str) -> bool:
        return next(self._forms.found(text), None) is not None

    def masked(self, text: str) -> str:
        """The text with every secret in it replaced."""
        if not self._values:
            return text
        if text in self._whole:
            return MASK
        spans = self._forms.spans(text)
        if "\n" in text:
            spans = joined([*spans, *self._spans_over_lines(text)])
        if not spans:
            return text
        pieces, end = [], 0
        for first, last in spans:
            pieces += [text[end:first], MASK]
            end = last
        return "".join([*pieces, text[end:]])

    def _spans_over_lines(self, text: str) -> Spans:
        """What stands in several lines, although it has none itself."""
        spans = self._forms.spans(BREAKS.sub("", text))
        if not spans:
            return []
        before: list[int] = []
        lengths = [0]
        gone = 0
        for found in BREAKS.finditer(text):
            before.append(found.start() - gone)
            gone += len(found[0])
            lengths.append(gone)

        def place(index: int) -> int:
            """Where in the text a character of the whole is."""
            return index + lengths[bisect_right(before, index)]

        return [(place(first), place(last - 1) + 1) for first, last in spans]

    def masked_json(self, encoded: bytes) -> bytes:
        """The same for a text of JSON, which stays JSON; a mask needs no escape."""
        if not self._values:
            return encoded
        spans = self._encoded.spans(encoded.decode("latin-1"))
        if not spans:
            return encoded
        pieces, end = [], 0
        for first, last in spans:
            pieces += [encoded[end:first], _instead_of(encoded[first:last])]
            end = last
        return b"".join([*pieces, encoded[end:]])

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


def _forms_of(known: "Iterable[SecretForms]") -> Iterator[str]:
    return (form for made in known for form in made.written)


def _encoded_of(known: "Iterable[SecretForms]") -> Iterator[str]:
    """The same in JSON; of short ones nothing but the whole text."""
    for made in known:
        for both in made.written.values():
            yield from both
        if not made.written:
            yield from made.needles


def _instead_of(form: bytes) -> bytes:
    """What stands in JSON instead of a secret: digits may be of a number, which must stay one."""
    if form.isdigit():
        return b"9" * len(form)
    return b'"***"' if form[:1] == b'"' and form[-1:] == b'"' else b"***"


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
    from noetl.secret_forms import SHORTEST

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
