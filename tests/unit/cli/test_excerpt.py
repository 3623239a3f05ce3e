"""The source line and its carets."""

import pytest

from noetl.cli.findings import excerpt, reach
from noetl.cli.terminal import width_of


def meant(line: str, column: int) -> str:
    """The part of the line that the carets cover."""
    return line[column - 1 : reach(line, column - 1)]


@pytest.mark.parametrize(
    ("line", "column", "part"),
    [
        ("- step: validate_result", 9, "validate_result"),
        ("- step: validate_result", 3, "step"),
        ("when: '{{ it''s }}' # why", 7, "'{{ it''s }}'"),
        ('when: "a \\" b" x', 7, '"a \\" b"'),
        ('when: "never closed', 7, '"never closed'),
        ("desc: some words # a comment", 7, "some words"),
        ("desc: a#b and c:d", 7, "a#b and c:d"),
        ("url: https://example.org/x", 6, "https://example.org/x"),
        ("in: [one, two]", 6, "one"),
        ("next: { mode: parallel }", 15, "parallel"),
        ("in: [ one two , three ]", 7, "one two"),
        ("in: {a: b}", 5, "{"),
        ("when: {{ ctx.a, b }} tail", 7, "{{ ctx.a, b }}"),
        ("code: |", 7, "|"),
        ("x", 2, ""),
    ],
)
def test_carets_cover_one_scalar(line: str, column: int, part: str) -> None:
    assert meant(line, column) == part


@pytest.mark.parametrize(
    ("line", "column", "shown", "carets"),
    [
        ("  a: b", 6, "  a: b", "     ^"),
        ("\ta: bad", 2, "    a: bad", "    ^"),
        ("日本: 値", 5, "日本: 値", "      ^^"),
        ("a: \x1b[31m", 4, "a: \\x1b[31m", "   ^^^^"),
        ("e\u0301: bad", 5, "e\u0301: bad", "   ^^^"),
        ("", 1, "", "^"),
        ("short", 99, "short", "     ^"),
    ],
)
def test_carets_stand_below_what_they_mean(line: str, column: int, shown: str, carets: str) -> None:
    assert excerpt(line, column, 80) == (shown, carets)


@pytest.mark.parametrize("column", [1, 500, 1_000, 1_999_990])
@pytest.mark.parametrize("filling", ["x ", "日 ", "\t ", "\x1b "])
def test_a_long_line_is_cut_with_the_place_in_view(column: int, filling: str) -> None:
    line = filling * 1_000_000
    line = line[: column - 1] + "HERE" + line[column + 3 :]
    shown, carets = excerpt(line, column, 60)
    assert width_of(shown) <= 60
    assert len(carets) <= 61
    before = 0
    for place, char in enumerate(shown):
        if before == carets.index("^"):
            assert shown[place : place + 4] == "HERE"
            break
        before += width_of(char)
    assert shown.endswith("…") or column > 1_000_000
    assert shown.startswith("…") or column == 1


def test_a_line_that_fits_is_shown_whole() -> None:
    line = "a" * 60
    assert excerpt(line, 60, 60)[0] == line
    assert excerpt(line + "b", 1, 60)[0] == "a" * 58 + "…"
