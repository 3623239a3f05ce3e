"""What templates give out: plain data, fresh containers, errors that name the place."""

from typing import Any

import pytest

from noetl.errors import TemplateFailed, TemplateFault
from noetl.expression.reads import reads
from noetl.expression.syntax import check_template, is_template
from noetl.expression.template import compile_text, compile_value

SCOPE: dict[str, Any] = {
    "workload": {"items": [1, 2], "keys": "k", "x": "{{7*7}}", "name": "w", "_id": 9},
    "ctx": {"name": "c", "rows": [{"a": 1}], "get": 1},
    "iter": {"name": "i", "index": 3},
    "args": {"page": 2},
    "execution_id": "e1",
    "_prev": {"data": [1]},
    "_task": "fetch",
    "_attempt": 1,
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("{{ x", True),
        ("{% x", True),
        ("a {{ b }}", True),
        ("{# x #}", False),
        ("{ { x } }", False),
        ("", False),
        (None, False),
        (3, False),
        (["{{ x }}"], False),
    ],
)
def test_what_is_a_template(value: object, expected: bool) -> None:
    assert is_template(value) is expected


@pytest.mark.parametrize(
    "literal", ["", "text", "{# no comment #}", "{ {", "}} %}", "50 % {x}", "\n"]
)
def test_text_without_braces_is_never_rendered(literal: str) -> None:
    assert compile_text(literal)({}) == literal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ workload.items }}", [1, 2]),
        ("{{ workload.keys }}", "k"),
        ("{{ workload['items'] }}", [1, 2]),
        ("{{ ctx.get }}", 1),
        ("{{ ctx.values() | list | length }}", 3),
        ("{{ name }}", "c"),
        ("{{ page }}", 2),
        ("{{ index }}", 3),
        ("{{ items }}", [1, 2]),
        ("{{ _prev.data[0] }}{{ _task }}{{ _attempt }}{{ execution_id }}", "1fetch1e1"),
        ("{{ workload._id }}", 9),
        ("{{ workload.x }}", "{{7*7}}"),
        ("a {{ workload.x }}", "a {{7*7}}"),
        ("{{ workload.x ~ '{{ 1 }}' }}", "{{7*7}}{{ 1 }}"),
        (" \n{{ 3 }}\t\n ", 3),
        ("{# note #}{{ 3 }}", 3),
        ("{{- 3 -}}", 3),
        ("{{ 3 }}{{ 4 }}", "34"),
        ("{{ '3' }}", "3"),
        ("{{ '[1]' }}", "[1]"),
        ("{{ 1, 2 }}", [1, 2]),
        ("{{ (1, (2, 3)) }}", [1, [2, 3]]),
        ("{{ {1: 'a', true: 'b', none: 'c', 2.5: 'd'} }}", {"1": "b", "null": "c", "2.5": "d"}),
        ("{{ '<b>' | e }}", "&lt;b&gt;"),
        ("{{ range(3) }}", [0, 1, 2]),
        ("{{ ctx.rows | map(attribute='a') }}", [1]),
        ("{{ {'a': ctx.rows | map(attribute='a')} }}", {"a": [1]}),
        ("{{ {'a': 1}.keys() }}", ["a"]),
        ("{{ [3, 1] | reverse }}", [1, 3]),
        ("x{{ [3, 1] | reverse }}", "x[1, 3]"),
        ("{{ nothing.at.all | default(4) }}", 4),
        ("{{ outcome.result.data.paging.hasMore | default(false) }}", False),
        ("{{ nothing is defined }}", False),
        ("{{ '' if false }}", ""),
        ("{% if nothing.at.all is defined %}x{% else %}y{% endif %}", "y"),
        ("{% for k in workload.items %}{{ k }}{% endfor %}", "12"),
        ("{% set name = 'own' %}{{ name }}", "own"),
        ("{% if false %}{{ 1() }}{{ 0[1:] }}{{ 'a'() }}{% endif %}x", "x"),
    ],
)
def test_values(text: str, expected: object) -> None:
    value = compile_text(text)(SCOPE)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "undefined"),
    [
        ("{{ workload.api_url }}", "workload.api_url"),
        ("{{ workload.a.b.c }}", "workload.a.b.c"),
        ("{{ workload['a b'] }}", "workload['a b']"),
        ("{{ workload.items[7] }}", "workload.items[7]"),
        ("{{ nothing }}", "nothing"),
        ("{{ nothing.more }}", "nothing.more"),
        ("{{ outcome.status }}", "outcome.status"),
        ("x {{ workload.api_url }}", "workload.api_url"),
        ("{{ [workload.api_url] }}", "workload.api_url"),
        ("{{ {'a': [workload.api_url]} }}", "workload.api_url"),
        ("{{ workload.api_url + 1 }}", "workload.api_url"),
        ("{{ workload.api_url | upper }}", "workload.api_url"),
        ("{{ (ctx.rows | first).b }}", "b"),
        ("{% if true %}{{ nothing }}{% endif %}", "nothing"),
        ("{% for x in ctx.rows %}{{ x.b }}{% endfor %}", "x.b"),
    ],
)
def test_the_undefined_value_is_named(text: str, undefined: str) -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_text(text)(SCOPE)
    assert failed.value.undefined == undefined
    assert f"'{undefined}' is undefined" in failed.value.message.replace('"', "'")
    assert failed.value.text == text
    assert text[:20] in failed.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{{ ctx.items }}", "there is no key 'items' here, and 'items' of a dict is a method"),
        ("{{ [ctx.name.upper] }}", "there is no key 'upper' here, and 'upper' of a str"),
        ("{{ range }}", "a template gave a function, not a value; call it, with (…)"),
    ],
)
def test_a_method_is_not_a_value(text: str, says: str) -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_text(text)(SCOPE)
    assert says in failed.value.message


def test_containers_with_templates_come_fresh() -> None:
    constant = {"k": [1]}
    evaluate = compile_value(
        {"a": "{{ ctx.name }}", "b": [1, "x{{ page }}"], "c": constant, "d": None}
    )
    first, second = evaluate(SCOPE), evaluate(SCOPE)
    assert first == {"a": "c", "b": [1, "x2"], "c": {"k": [1]}, "d": None}
    assert first is not second
    assert first["b"] is not second["b"]
    assert compile_value(constant)(SCOPE) is constant


def test_the_failing_template_of_several_is_named() -> None:
    evaluate = compile_value({"a": "{{ ctx.name }}", "b": ["{{ page }}", "{{ nowhere }}"]})
    with pytest.raises(TemplateFailed) as failed:
        evaluate(SCOPE)
    assert failed.value.text == "{{ nowhere }}"


def test_a_fault_inside_a_value_names_its_template() -> None:
    with pytest.raises(TemplateFault) as refused:
        compile_value({"a": "{{ ctx.name }}", "b": ["{{ | }}"]})
    assert refused.value.text == "{{ | }}"


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("{{ a ", 0, "nexpected end of template"),
        ("{{ a }}\n{{ b | nope }}", 1, "there is no filter named 'nope'"),
        ("\n\n{{ a is nope }}", 2, "there is no test named 'nope'"),
        ("x\n{{ a.__class__ }}", 1, "'__class__' is not allowed"),
        ("{% include 'a' %}", 0, "`include` is not available"),
        ("{{ a | random }}", 0, "templates have no randomness"),
        ("{% for %}", 0, "xpected"),
        ("{{ a b }}", 0, "expected token"),
        ("{{ ( }}", 0, "unexpected '}'"),
    ],
)
def test_a_fault_has_its_line(text: str, line: int, part: str) -> None:
    fault = check_template(text)
    assert fault is not None
    assert (fault.line, fault.text) == (line, text)
    assert part in fault.message


@pytest.mark.parametrize(
    "text", ["plain", "{{ a }}", "{{ a._b }}", "{% if a %}{% endif %}", "{# x #}"]
)
def test_no_fault(text: str) -> None:
    assert check_template(text) is None


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("text", set()),
        (3, set()),
        ("{{ ctx.total }}", {("ctx", "total")}),
        ("{{ ctx.total.deep[0].er }}", {("ctx", "total")}),
        ("{{ ctx['total'] }}", {("ctx", "total")}),
        ("{{ ctx }}", {("ctx",)}),
        ("{{ ctx[page] }}", {("ctx",), ("page",)}),
        ("{{ ctx.rows[args.index] }}", {("ctx", "rows"), ("args", "index")}),
        ("{{ ctx | length }}", {("ctx",)}),
        ("{{ page }}", {("page",)}),
        ("{{ page.number }}", {("page", "number")}),
        ("{{ range(page) }}", {("page",)}),
        ("{{ ctx.a if ctx.b else ctx.c }}", {("ctx", "a"), ("ctx", "b"), ("ctx", "c")}),
        ("{{ ctx.a.upper() | default(ctx.b) }}", {("ctx", "a"), ("ctx", "b")}),
        ({"a": ["{{ ctx.x }}", {"b": "{{ iter.y }}"}]}, {("ctx", "x"), ("iter", "y")}),
        ("{% for r in ctx.rows %}{{ r.a }}{% endfor %}", {("ctx", "rows"), ("r", "a")}),
        ("{{ broken", set()),
    ],
)
def test_reads(value: object, paths: set[tuple[str, ...]]) -> None:
    assert reads(value) == paths


def test_a_template_among_very_many_fails_as_it_would_alone() -> None:
    many = {f"x{n}": "{{ 1 // args.zero }}" if n == 250 else "{{ args.zero }}" for n in range(300)}
    with pytest.raises(TemplateFailed, match=r"1 // args\.zero"):
        compile_value(many)({"args": {"zero": 0}})
