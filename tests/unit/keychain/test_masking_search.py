"""Secrets are looked for near marks and all at once, and nothing is overlooked."""

import base64
import json
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.finding import FEW, LONG, WordIndex, Words
from noetl.masking import MASK, Masking
from noetl.secret_forms import forms_of, made_of

SPECIAL = 'pä55/w+rd-word "x" & mo\'re'

WRITTEN: tuple[Callable[[str], str], ...] = (
    str,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(json.dumps(text, ensure_ascii=False))[1:-1],
    lambda text: quote(text, safe=""),
    lambda text: text.encode().hex(),
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
    lambda text: base64.urlsafe_b64encode(f"us:{text}?".encode()).decode(),
    lambda text: base64.encodebytes(b"x" * 45 + text.encode()).decode(),
    lambda text: text[: len(text) // 2],
)
"""Alignments and encodings, a form in lines, and one that is no secret."""

SECRETS = st.lists(
    st.one_of(
        st.text("ab", min_size=6, max_size=9),  # they overlap each other and themselves
        st.text("aä\"'/&\\ \n", min_size=6, max_size=9).filter(lambda text: bool(text.strip())),
        st.text("123456789", min_size=6, max_size=8),
        st.sampled_from((SPECIAL, SPECIAL[:9], SPECIAL[3:], "word-word-word")),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def texts(draw: st.DrawFn) -> tuple[list[str], str]:
    """Secrets, and a text of pieces: close together, or further apart than any window reaches."""
    secrets = draw(SECRETS)
    pieces = st.one_of(
        st.builds(
            lambda write, text: write(text), st.sampled_from(WRITTEN), st.sampled_from(secrets)
        ),
        st.text('ab1"\\\n -', max_size=4),
        st.integers(100, 1500).map(lambda size: "." * size),
    )
    return secrets, "".join(draw(st.lists(pieces, max_size=8)))


def covered(text: str, words: set[str]) -> list[bool]:
    """Which characters belong to a word, asked word by word and place by place."""
    found = [False] * len(text)
    for word in words:
        at = text.find(word)
        while at >= 0:
            found[at : at + len(word)] = [True] * len(word)
            at = text.find(word, at + 1)
    return found


def left_over(text: str, found: list[bool]) -> str:
    return "".join(char for char, hidden in zip(text, found, strict=True) if not hidden)


@settings(max_examples=150)
@given(texts())
def test_all_that_belongs_to_a_form_is_masked_and_nothing_else(case: tuple[list[str], str]) -> None:
    secrets, text = case
    text = text.replace("\n", "")  # what is cut into lines has a test of its own
    masking = Masking()
    masking.add_many(secrets)
    forms = {form for secret in secrets for form in forms_of(secret)}

    found = covered(text, forms)
    assert masking.masked(text).replace(MASK, "") == left_over(text, found)
    assert masking.holds(text) is any(found)


@settings(max_examples=100)
@given(texts())
def test_the_same_in_json_as_a_text_a_key_and_a_number(case: tuple[list[str], str]) -> None:
    secrets, text = case
    masking = Masking()
    masking.add_many([*secrets, "abc"])
    number = next((int(secret) for secret in secrets if secret.isdigit()), 0)
    encoded = json.dumps({text: [text, "abc", number]}, ensure_ascii=False).encode()
    seen = encoded.decode("latin-1")
    made = {secret: made_of(secret) for secret in [*secrets, "abc"]}
    words = {word for one in made.values() for both in one.written.values() for word in both}

    masked = masking.masked_json(encoded).decode("latin-1").replace(MASK, "")
    rest = left_over(seen, covered(seen, words | {'"abc"'}))
    assert bare(masked) == bare(rest)
    named = {
        secret
        for secret, one in made.items()
        if any(ours in seen for ours, _ in one.written.values())
        or (secret == "abc" and "abc" in seen)
    }
    assert set(masking.all_in(encoded)) == named
    assert masking.found_in(encoded) or bare(rest) == bare(seen)


def bare(text: str) -> str:
    """Without what masks bring along: quotes, and nines where the digits may be of a number."""
    return "".join(char for char in text if not char.isdigit() and char != '"')


@settings(max_examples=100)
@given(texts())
def test_no_form_is_left_where_lines_were_cut(case: tuple[list[str], str]) -> None:
    secrets, text = case
    masking = Masking()
    masking.add_many(secrets)
    masked = masking.masked(text)
    forms = {form for secret in secrets for form in forms_of(secret)}
    assert not any(form in masked for form in forms)
    assert not masking.holds(masked)


@pytest.mark.parametrize("known", [1, FEW])
def test_secrets_at_both_ends_and_any_distance_are_masked(known: int) -> None:
    """Windows around two of them touch, overlap or lie apart."""
    masking = Masking()
    masking.add_many([SPECIAL, *(f"other-secret-{number:04}" for number in range(known - 1))])
    written = [SPECIAL, json.dumps(SPECIAL)[1:-1], quote(SPECIAL, safe=""), SPECIAL.encode().hex()]
    for gap in range(0, 5 * masking.longest, 7):
        for one in written:
            text = f"{one}{'.' * gap}{one}"
            assert masking.masked(text) == f"{MASK}{'.' * gap}{MASK}"


def test_secrets_that_overlap_leave_no_half_of_either() -> None:
    masking = Masking()
    masking.add_many(["first-half-", "half-second"])
    assert masking.masked("a first-half-second b") == f"a {MASK} b"
    assert masking.masked_json(b'["first-half-second"]') == b'["***"]'
    masking.add("-bnight")
    assert masking.masked("a first-half-bnight") == f"a {MASK}"


def test_words_that_are_beginnings_of_others_are_told() -> None:
    long = "x" * LONG
    every = ["xxxxxx", "xxxxxxxx", long + "y", long + "yz", "yzabcd"]
    words = Words(every, LONG + 2, lambda: every)
    assert words.all_in(f"..{long}y..") == {"xxxxxx", "xxxxxxxx", long + "y"}
    assert words.all_in(f"{long}yzabcd") == {*every}
    assert words.spans(f"..{long}yzabcd..") == [(2, LONG + 8)]
    assert words.spans(f"..{long[1:]}y..") == [(2, LONG + 1)]


# ── how much is looked at ────────────────────────────────────────────────────────────────────


class Counted(str):
    """A text that counts how many of its characters are looked at."""

    looked = 0

    def of(self, text: str) -> "Counted":
        part = Counted(text)
        part.__dict__ = self.__dict__
        return part

    def note(self, many: int) -> None:
        self.__dict__["looked"] = self.looked + many

    def __contains__(self, word: Any) -> bool:
        self.note(len(self))
        return str.__contains__(self, word)

    def find(self, word: str, first: Any = 0, last: Any = None) -> int:
        at = str.find(self, word, first, last)
        end = len(self) if last is None else last
        self.note((end if at < 0 else at + len(word)) - (first or 0))
        return at

    def replace(self, word: str, by: str, many: Any = -1) -> "Counted":
        self.note(len(self))
        return self.of(str.replace(self, word, by, many))

    def __getitem__(self, part: Any) -> "Counted":
        found = str.__getitem__(self, part)
        self.note(len(found))
        return self.of(found)


class CountedBytes(bytes):
    """The same as JSON, whose text is what is looked at."""

    def __init__(self, _: bytes) -> None:
        self.text = Counted(bytes(self).decode("latin-1"))

    def decode(self, *_: Any) -> Counted:
        return self.text

    def __contains__(self, word: Any) -> bool:
        self.text.note(len(self))
        return bytes.__contains__(self, word)

    def replace(self, word: Any, by: Any, many: Any = -1) -> "CountedBytes":
        self.text.note(len(self))
        made = CountedBytes(bytes.replace(self, word, by, many))
        made.text.__dict__ = self.text.__dict__
        return made


FILLER = "nothing that anybody knows; "
MANY = [f'pä55/w+rd-{number:04} "x" & mo\'re' for number in range(100)]
HELD = {
    "one secret, once": ([SPECIAL], FILLER * 1000 + SPECIAL + FILLER * 1000),
    "one secret, everywhere": ([SPECIAL], f"{SPECIAL}; " * 1000),
    "a hundred secrets, one of them once": (MANY, FILLER * 1000 + MANY[7] + FILLER * 1000),
    "a hundred secrets everywhere": (MANY, "; ".join(MANY) * 10),
    "beginnings everywhere": ([SPECIAL * 30], SPECIAL * 1000),
}


@pytest.mark.parametrize("case", HELD)
def test_a_text_is_looked_through_a_few_times_whatever_is_known(case: str) -> None:
    """Hundreds of forms of each secret were looked for in all of a text that held one."""
    secrets, text = HELD[case]
    masking = Masking()
    masking.add_many(secrets)
    looks: list[Callable[[Any], Any]] = [masking.masked, masking.holds]
    for look in looks:
        counted = Counted(text)
        look(counted)
        assert 0 < counted.looked < 60 * len(text)
    encoded = json.dumps({"a": text}, ensure_ascii=False).encode()
    looks = [masking.masked_json, masking.all_in, masking.found_in]
    for look in looks:
        held = CountedBytes(encoded)
        look(held)
        assert 0 < held.text.looked < 60 * len(encoded)


def test_a_secret_more_costs_no_look_more() -> None:
    """With each secret the whole text was looked through some hundred times more."""

    def looked(known: int) -> int:
        masking = Masking()
        masking.add_many(MANY[:known])
        text = Counted("; ".join(MANY) * 10)
        masking.masked(text)
        return text.looked

    assert looked(100) < 2 * looked(50)


def test_forms_are_put_in_order_when_a_mark_is_met() -> None:
    """Most secrets are never met, and a credential with many is registered one by one."""
    made: list[str] = []
    entered = WordIndex.__init__.__code__

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is entered:
            made.append(event)

    masking = Masking()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        for secret in MANY:
            masking.add(secret)
            assert masking.masked(FILLER) == FILLER
        assert not made
        assert masking.masked(f"{MANY[3]} {MANY[5]}") == f"{MASK} {MASK}"
        assert masking.masked(MANY[9]) == MASK
    finally:
        sys.setprofile(before)
    assert len(made) == 1
