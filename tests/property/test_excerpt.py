"""Whatever stands in a line: it fits, it cannot steer the terminal, the caret is under it."""

from unicodedata import category

from hypothesis import given
from hypothesis import strategies as st
from tests.support.searching import examples

from noetl.cli.findings import excerpt
from noetl.cli.terminal import HIDDEN, cell, plain, width_of

bounded = examples(300)

odd = st.sampled_from("\t\x1b\x07\r\u202e\u200b\u0301日😀'\"{}[]:#, ")
lines = st.text(odd | st.characters(codec="utf-8"), max_size=300)


@bounded
@given(lines, st.integers(1, 400), st.integers(20, 120))
def test_a_line_always_fits(line: str, column: int, room: int) -> None:
    shown, carets = excerpt(line, column, room)
    assert width_of(shown) <= room
    assert len(carets) <= room + 1
    assert carets.strip() == "^" * carets.count("^") != ""


@bounded
@given(lines, st.integers(1, 400))
def test_nothing_hidden_is_shown(line: str, column: int) -> None:
    shown, _ = excerpt(line, column, 80)
    assert not any(category(char) in HIDDEN for char in shown)
    assert not any(category(char) in HIDDEN for char in plain(line))


@bounded
@given(lines, st.data())
def test_the_first_caret_stands_under_the_column(line: str, data: st.DataObject) -> None:
    column = data.draw(st.integers(1, max(1, len(line))))
    shown, carets = excerpt(line, column, 10_000)
    before = 0
    for char in line[: column - 1]:
        before += cell(char, before)[1]
    assert carets.index("^") == before
    assert width_of(shown) <= 10_000
