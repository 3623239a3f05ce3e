"""The front door of templates: literals, native values, text, guards and rule lists."""

from typing import Any

import pytest

from noetl.errors import TemplateFailed
from noetl.expression.reads import reads
from noetl.expression.template import compile_guard, compile_rules, compile_text, compile_value

SCOPE: dict[str, Any] = {
    "workload": {"a": 1, "items": [1, 2], "x": "{{7*7}}"},
    "ctx": {"total": 5},
    "outcome": {"status": "error", "http": {"status": 503}},
}
FLAKY = "{{ outcome.status == 'error' and outcome.http.status in [429, 503] }}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("  {{ 3 }}\n", 3),
        ("a {{ workload.a }} b", "a 1 b"),
        ("{{ workload.x }}", "{{7*7}}"),
        ("{{ workload.items }}", [1, 2]),
        ("{{ total }}", 5),
        ("{{ workload.no.such | default(3) }}", 3),
        ("{% for i in range(3) %}{{ i }}{% endfor %}", "012"),
    ],
)
def test_text_gives_its_value(text: str, value: object) -> None:
    assert compile_text(text)(SCOPE) == value


def test_an_undefined_value_is_named_in_full() -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_text("{{ workload.api_url }}")(SCOPE)
    assert failed.value.undefined == "workload.api_url"


def test_guards_and_rule_lists() -> None:
    assert compile_guard(FLAKY)(SCOPE) is True
    assert compile_guard(FLAKY)({}) is False
    assert compile_rules(["{{ outcome.status == 'ok' }}", FLAKY, None])(SCOPE) == 1
    assert compile_rules([False, "{{ nothing }}"])(SCOPE) == -1


def test_values_are_compiled_to_one_callable() -> None:
    value = {"a": "{{ ctx.total }}", "b": [1, "x{{ total }}"], "c": {"k": 1}}
    assert compile_value(value)(SCOPE) == {"a": 5, "b": [1, "x5"], "c": {"k": 1}}


def test_reads_names_root_paths() -> None:
    value = {"a": "{{ ctx.total + page }}", "b": ["{{ ctx[page] }}"]}
    assert reads(value) == {("ctx", "total"), ("ctx",), ("page",)}
