"""What a character becomes on a terminal, and when colour is used."""

import pytest

from noetl.cli.events import line_of
from noetl.cli.output import print_line, tell, tell_each
from noetl.cli.terminal import (
    Paint,
    cell,
    columns,
    plain,
    steady,
    wants_colour,
    width_of,
    wrapped,
)


@pytest.mark.parametrize(
    ("char", "column", "shown"),
    [
        ("a", 0, ("a", 1)),
        ("\t", 0, ("    ", 4)),
        ("\t", 3, (" ", 1)),
        ("\x1b", 0, ("\\x1b", 4)),
        ("\x00", 0, ("\\x00", 4)),
        ("\x9b", 0, ("\\x9b", 4)),
        ("\u202e", 0, ("\\u202e", 6)),  # right-to-left override
        ("\u200b", 0, ("\\u200b", 6)),  # zero-width space
        ("\U000e0001", 0, ("\\U000e0001", 10)),  # a tag character
        ("日", 0, ("日", 2)),
        ("ｗ", 0, ("ｗ", 2)),  # noqa: RUF001
        ("😀", 0, ("😀", 2)),
        ("é", 0, ("é", 1)),
        ("\u0301", 0, ("\u0301", 0)),  # a combining accent
    ],
)
def test_a_character_takes_its_columns(char: str, column: int, shown: tuple[str, int]) -> None:
    assert cell(char, column) == shown


def test_text_cannot_steer_the_terminal() -> None:
    assert plain("a\x1b[31mb\nc") == "a\\x1b[31mb\\x0ac"
    assert plain("two\nlines\r", keep="\n") == "two\nlines\\x0d"
    assert plain("日本 é") == "日本 é"


def test_lines_keep_their_breaks_and_our_colours_alone() -> None:
    line = f"{Paint(True)('good', 'done')}\ta\x1b]0;x\x07\n\x1b[7m\u202e"
    shown = "\ta\\x1b]0;x\\x07\n\\x1b[7m\\u202e"
    assert steady(line, colour=True) == f"\x1b[1;32mdone\x1b[0m{shown}"
    assert steady(line, colour=False) == f"\\x1b[1;32mdone\\x1b[0m{shown}"


def test_width_counts_columns_not_characters() -> None:
    assert width_of("a日e\u0301") == 4


def test_paint_adds_colour_only_where_wanted() -> None:
    assert Paint(True)("error", "x") == "\x1b[1;31mx\x1b[0m"
    assert Paint(False)("error", "x") == "x"


@pytest.mark.parametrize(
    ("terminal", "environment", "wanted"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),  # an empty value does not count: no-color.org
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colour_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, environment: dict[str, str], wanted: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert wants_colour() is wanted


def test_without_a_terminal_the_width_is_always_the_same() -> None:
    assert columns() == 100


def test_nothing_is_cut_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    long = "word " * 100 + "end"
    print_line(long)
    assert capsys.readouterr().out == long + "\n"
    event = {
        "seq": 1,
        "timestamp": "2026-01-01T00:00:00.000Z",
        "name": "token.dropped",
        "step": "s" * 90,
        "task_run_id": None,
        "data": {"reason": "limit"},
    }
    assert line_of(event, 40).endswith("s reason=limit")


@pytest.mark.parametrize(
    ("line", "room", "lines"),
    [
        ("a short line", 40, ["a short line"]),
        ("one two three four", 10, ["one two", "three four"]),
        ("  one two three", 40, ["  one two three"]),
        ("  " + "word " * 9, 40, ["  " + " ".join(["word"] * 7), "      word word "]),
        ("x" * 50, 40, ["x" * 50]),
        ("see http://a/" + "x" * 40, 40, ["see", "    http://a/" + "x" * 40]),
        ("first\nsecond", 40, ["first", "second"]),
        ("\x1b[1;31mred\x1b[0m and on", 40, ["\x1b[1;31mred\x1b[0m and on"]),
        ("", 40, [""]),
    ],
)
def test_lines_wrap_between_words(line: str, room: int, lines: list[str]) -> None:
    assert wrapped(line, room).split("\n") == lines


def test_data_with_a_break_in_it_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    title = "Pay?\nnothing waits for a person\r\x1b[2K"
    tell({}, f"x1: {title}", as_json=False)
    tell_each([title], str, as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"x1: {second}"
    assert second == "Pay?\\x0anothing waits for a person\\x0d\\x1b[2K"
