"""Guards of the case dialect: what each comes to at the two ends of a step."""

import pytest

from noetl.playbook.dialects.guards import (
    all_of,
    any_of,
    bound,
    comparisons_in,
    expression_of,
    negation,
    parts_of,
    renamed,
    settled,
    simplified,
)


@pytest.mark.parametrize(
    ("guard", "expression"),
    [
        (True, "true"),
        (False, "false"),
        ("{{ a == 1 }}", "a == 1"),
        ("  {{- a -}}\n", "a"),
        ("{{a}}", "a"),
        ("a == 1", None),
        ("x {{ a }}", None),
        ("{{ a }} {{ b }}", None),
        (None, None),
        (3, None),
    ],
)
def test_the_expression_of_a_guard(guard: object, expression: str | None) -> None:
    assert expression_of(guard) == expression


@pytest.mark.parametrize(
    ("expression", "ok", "error"),
    [
        ("event.name == 'step.exit'", "true", "false"),
        ("event.name == 'call.error'", "false", "true"),
        ("'call.done' == event.name", "true", "false"),
        ("event.name != 'call.error'", "true", "false"),
        ("'step.failed' != event.name", "true", "false"),
        ("event.name in ['call.done', 'step.exit'] and a", "a", "false"),
        ("event.name in ('call.done', 'call.error')", "true", "true"),
        ("event.name not in ['call.error']", "true", "false"),
        ("event.name in names", "event.name in names", "event.name in names"),
        ("event.name == wanted", "event.name == wanted", "event.name == wanted"),
        ("event.name == 'call.done' and (a or b)", "a or b", "false"),
        ("a or event.name == 'call.error'", "a", "true"),
        ("not (event.name == 'call.error') and a", "a", "false"),
        ("not (event.name == 'call.error' and a)", "true", "not a"),
        ("(event.name == 'loop.done')", "true", "false"),
        ("event['name'] == 'call.done' and a", "a", "false"),
        ("response is defined and a", "a", "a"),
        ("a if event.name == 'call.done' else b", "a if true else b", "a if false else b"),
        ("a == 'event.name and b'", "a == 'event.name and b'", "a == 'event.name and b'"),
    ],
)
def test_a_guard_tells_which_end_it_is_for(expression: str, ok: str, error: str) -> None:
    assert settled(expression, "ok") == ok
    assert settled(expression, "error") == error


@pytest.mark.parametrize(
    ("expression", "new"),
    [
        ("event.name == 'step.exit' and a", "event.name == 'loop.done' and a"),
        ("event.name == 'call.error' or a", "event.name == 'step.failed' or a"),
        ("event.name == 'step.exit' and response is defined", "event.name == 'loop.done'"),
        ("event.name == 'step.enter'", "event.name == 'step.enter'"),
        ("a == 'call.done'", "a == 'call.done'"),
    ],
)
def test_names_of_events_become_those_of_the_log(expression: str, new: str) -> None:
    assert renamed(expression, "loop.done") == new


@pytest.mark.parametrize(
    ("expression", "word", "parts"),
    [
        ("a and b and c", "and", ["a", "b", "c"]),
        ("a and (b and c)", "and", ["a", "(b and c)"]),
        ("a and b or c", "and", ["a and b or c"]),
        ("a and b or c", "or", ["a and b", "c"]),
        ("a or b if c else d", "or", ["a or b if c else d"]),
        ("x['and'] == 'a and b'", "and", ["x['and'] == 'a and b'"]),
        ("f(a and b)", "and", ["f(a and b)"]),
    ],
)
def test_an_expression_is_cut_at_the_top(expression: str, word: str, parts: list[str]) -> None:
    assert parts_of(expression, word) == parts  # type: ignore[arg-type]


def test_what_decides_nothing_is_left_out() -> None:
    assert all_of(["true", "a", "true", "a", "b or c"]) == "a and (b or c)"
    assert all_of(["a", "false"]) == "false"
    assert all_of([]) == "true"
    assert any_of(["false", "a", "b"]) == "a or b"
    assert any_of(["a", "true"]) == "true"
    assert any_of([]) == "false"
    assert simplified("((True) and (a))") == "a"
    assert simplified("not true or False") == "false"


@pytest.mark.parametrize(
    ("expression", "new"),
    [
        ("a", "not a"),
        ("a.b[0]", "not a.b[0]"),
        ("a == 1", "not (a == 1)"),
        ("a and b", "not (a and b)"),
        ("true", "false"),
        ("false", "true"),
    ],
)
def test_negation(expression: str, new: str) -> None:
    assert negation(expression) == new


def test_loose_expressions_are_bound() -> None:
    assert [bound(text) for text in ("a and b", "a or b", "a if b else c", "f(a or b)")] == [
        "a and b",
        "(a or b)",
        "(a if b else c)",
        "f(a or b)",
    ]


def test_comparisons_know_their_place() -> None:
    text = "a and event.name == 'call.done' or event.name not in ['x', 'y']"
    found = comparisons_in(text)
    assert [text[one.start : one.end] for one in found] == [
        "event.name == 'call.done'",
        "event.name not in ['x', 'y']",
    ]
    assert [(one.names, one.negated) for one in found] == [
        (("call.done",), False),
        (("x", "y"), True),
    ]
