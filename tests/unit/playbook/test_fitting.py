"""Which values fit which type of the tables, and the words for both."""

from typing import Any

import pytest

from noetl.playbook.fitting import described, misfit, shown
from noetl.playbook.shape import (
    Boolean,
    Choice,
    Either,
    Free,
    FreeList,
    FreeMapping,
    Number,
    Template,
    Text,
    TextList,
    Type,
    article,
)

COUNT = Number(minimum=1, whole=True)
SHARE = Number(minimum=0, maximum=1)


@pytest.mark.parametrize(
    ("type_", "fitting", "wrong_type", "wrong_value"),
    [
        (Text(), ["a"], [1, None, [], {}], ["", "  "]),
        (Text(empty=True), ["a", ""], [1, None], []),
        (COUNT, [1, 2.0, 10**30], ["1", True, None], [0, 1.5, -1]),
        (SHARE, [0, 0.5, 1], ["0.5", False], [-0.1, 1.1]),
        (Number(), [-5, 1.5], ["x"], []),
        (Boolean(), [True, False], ["true", 1, None], []),
        (Choice(("a", "b")), ["a"], [1, None], ["c", "A"]),
        (Free(), ["a", 1, None, [], {}], [], []),
        (FreeMapping(), [{}], [[], "a", None], []),
        (FreeList(), [[]], [{}, "a"], []),
        (FreeList(least=1), [[1]], [{}], [[]]),
        (TextList(), [["a"]], ["a", [1]], [[]]),
        (Template(), ["{{ a }}", "x {% if a %}{% endif %}"], [1, []], ["a", ""]),
        (Either((Template(), FreeList())), ["{{ a }}", []], [1], ["a"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_misfit(
    type_: Type, fitting: list[Any], wrong_type: list[Any], wrong_value: list[Any]
) -> None:
    assert [value for value in fitting if misfit(type_, value) is not None] == []
    assert [value for value in wrong_type if misfit(type_, value) != "wrong-type"] == []
    assert [value for value in wrong_value if misfit(type_, value) != "wrong-value"] == []


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (Text(), "text"),
        (COUNT, "a whole number of 1 or more"),
        (SHARE, "a number from 0 to 1"),
        (Number(), "a number"),
        (Choice(("a",)), "'a'"),
        (Choice(("a", "b")), "'a' or 'b'"),
        (Choice(("a", "b", "c")), "one of 'a', 'b' or 'c'"),
        (Either((Boolean(), TextList())), "true or false or a list of names"),
        (FreeList("step", least=1), "a list of steps"),
    ],
)
def test_described(type_: Type, words: str) -> None:
    assert described(type_) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", "'a'"),
        ("x" * 50, "'" + "x" * 37 + "...'"),
        ("", "empty"),
        ([], "empty"),
        (True, "true"),
        (0, "the number 0"),
        (1.5, "the number 1.5"),
        (10**50, "the number 1" + "0" * 39),
        (None, "null"),
        ([1], "a list"),
        ({}, "a mapping"),
    ],
)
def test_shown(value: Any, words: str) -> None:
    assert shown(value) == words


@pytest.mark.parametrize(
    ("block", "words"),
    [("step", "a step"), ("arc", "an arc"), ("then", "'then'"), ("admit else", "'else'")],
)
def test_article(block: str, words: str) -> None:
    assert article(block) == words
