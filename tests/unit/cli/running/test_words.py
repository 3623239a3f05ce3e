"""Durations, errors and values as people read them."""

from typing import Any

import pytest

from noetl.cli.running import words as words_module
from noetl.cli.running.words import count, error_words, seconds, short, value_words


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_module, "is_terminal", lambda: True)


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1500, "1.5 s"),
        (59_900, "59.9 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h 0 min"),
        (90_061_000, "25 h 1 min"),
    ],
)
def test_durations(ms: float, words: str) -> None:
    assert seconds(ms) == words


def test_a_value_that_is_stored_elsewhere_says_how_large_it_is() -> None:
    fields = {"store": "files", "key": "e1/ab", "size": 30_000_002, "schema_hint": "string"}
    told = value_words({"$ref": fields})
    assert told == "text of 30,000,002 bytes, stored outside the log in files: e1/ab"
    assert value_words([{"$ref": fields}]).startswith('[{"$ref":{"store":"files"')


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, "no error was recorded"),
        ({}, "no error was recorded"),
        ({"kind": "http", "message": "503"}, "http: 503"),
        ({"message": "two\nlines"}, "error: two lines"),
        ({"kind": "python", "message": "\x1b[2J"}, "python: \\x1b[2J"),
    ],
)
def test_errors(error: dict[str, Any] | None, words: str) -> None:
    assert error_words(error) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("text", "text"),
        (None, "null"),
        ([1, {"a": True}], '[1,{"a":true}]'),
        ("x" * 500, "x" * 199 + "…"),
        ([0] * 1000, ("[" + "0," * 1000)[:199] + "…"),
        ({1, 2}.__class__, "<class 'set'>"),
        ("ü" * 10, "ü" * 10),
    ],
)
@pytest.mark.usefixtures("terminal")
def test_values(value: Any, words: str) -> None:
    assert value_words(value) == words


@pytest.mark.usefixtures("terminal")
def test_short_keeps_what_fits() -> None:
    assert short("a b", 3) == "a b"
    assert short("a b c", 3) == "a …"


def test_nothing_is_cut_in_a_pipe() -> None:
    assert short("a b c", 3) == "a b c"
    assert value_words("x" * 500) == "x" * 500
    assert value_words([0] * 1000) == f"[{','.join('0' * 1000)}]"


def test_the_place_in_sql_is_no_part_of_one_line() -> None:
    error = {"kind": "duckdb", "message": 'near "form"\n\nLINE 2: form b\n        ^^^^; more'}
    assert error_words(error) == 'duckdb: near "form"; more'


def test_counts() -> None:
    assert [count(n, "run") for n in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
