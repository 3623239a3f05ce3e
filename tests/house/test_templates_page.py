"""The tables of docs/reference/templates.md say what templates do."""

import re
from collections.abc import Iterator

import pytest
import yaml
from tests.house.tree import ROOT

from noetl.errors import TemplateFailed
from noetl.expression.syntax import check_template
from noetl.expression.template import compile_guard, compile_text

PAGE = (ROOT / "docs" / "reference" / "templates.md").read_text("utf-8")
TYPES = {"number": int, "text": str, "list": list}
CELL = re.compile(r"(?<!\\)\|")


def rows_under(heading: str) -> Iterator[list[str]]:
    """The rows of the first table below a heading, without its head."""
    part = PAGE.partition(f"## {heading}")[2].partition("\n## ")[0]
    rows = [line for line in part.splitlines() if line.startswith("|")]
    for row in rows[2:]:
        yield [cell.strip().replace("\\|", "|") for cell in CELL.split(row)[1:-1]]


def expressions() -> Iterator[tuple[str, str, str]]:
    for written, in_guard, elsewhere in rows_under("Undefined"):
        for expression in re.findall(r"`([^`]+)`", written):
            yield expression, in_guard, elsewhere


@pytest.mark.parametrize(("written", "shown", "kind"), [*rows_under("The value of a string")])
def test_the_value_of_a_string(written: str, shown: str, kind: str) -> None:
    value = compile_text(yaml.safe_load(written.strip("`")))({})
    assert str(value) == shown.strip("`")
    assert type(value) is TYPES[kind.partition(":")[0]]


@pytest.mark.parametrize(("expression", "in_guard", "elsewhere"), [*expressions()])
def test_undefined_in_a_guard(expression: str, in_guard: str, elsewhere: str) -> None:
    assert elsewhere
    expected = in_guard.rpartition(" ")[2]
    assert compile_guard("{{ " + expression + " }}")({}) is yaml.safe_load(expected)


@pytest.mark.parametrize(("expression", "in_guard", "elsewhere"), [*expressions()])
def test_undefined_elsewhere(expression: str, in_guard: str, elsewhere: str) -> None:
    assert in_guard
    evaluate = compile_text("{{ " + expression + " }}")
    if elsewhere.startswith("error"):
        with pytest.raises(TemplateFailed, match=r"'x[.\w]*' is undefined"):
            evaluate({})
    else:
        assert evaluate({}) == yaml.safe_load(elsewhere)


@pytest.mark.parametrize(
    "text",
    [
        "{% include 'a' %}",
        "{% import 'a' as b %}",
        "{% extends 'a' %}",
        "{{ [1] | random }}",
        "{{ ''.__class__ }}",
    ],
)
def test_what_is_not_there_is_refused_at_load(text: str) -> None:
    assert check_template(text) is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{% for x in [1, 2] %}{{ x }}{% endfor %}", "12"),
        ("{% if true %}a{% endif %}", "a"),
        ("{% set x = 3 %}{{ x }}", "3"),
        ("{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(1) }}", "<1>"),
        ("{% filter upper %}a{% endfilter %}", "A"),
        ("{% with x = 3 %}{{ x }}{% endwith %}", "3"),
    ],
)
def test_the_statements_that_the_page_names(text: str, value: str) -> None:
    assert compile_text(text)({}) == value
