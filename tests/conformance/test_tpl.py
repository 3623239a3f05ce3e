"""TPL: templates, rule by rule."""

from typing import Any

import jinja2.environment
import jinja2.lexer
import jinja2.parser
import pytest

from noetl.errors import TemplateFailed
from noetl.expression.template import compile_guard, compile_rules, compile_text, compile_value

SCOPE: dict[str, Any] = {
    "workload": {"items": [1, 2], **dict.fromkeys("abcd", "workload")},
    "iter": {"a": "iter", "b": "iter", "c": "iter", "index": 0},
    "ctx": {"a": "ctx", "b": "ctx"},
    "args": {"a": "args"},
    "execution_id": "e1",
    "_prev": {"n": 1},
    "_task": "fetch",
    "_attempt": 2,
    "outcome": {"status": "error", "result": None},
    "event": {"name": "step.done"},
}


@pytest.mark.rule("TPL-1")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ workload.items }}", [1, 2]),
        ("{{ workload.items[0] + 1 }}", 2),
        (" {{ 1.5 }}\n", 1.5),
        ("{{ none }}", None),
        ("{{ '1' }}", "1"),
        ("n={{ 1 }}", "n=1"),
        ("{{ 1 }} {{ 2 }}", "1 2"),
        ("no braces # % { }", "no braces # % { }"),
        ("{# kept #}", "{# kept #}"),
    ],
)
def test_native_values_text_and_literals(text: str, value: object) -> None:
    found = compile_text(text)(SCOPE)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.rule("TPL-2")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{ a }}", "args"),
        ("{{ b }}", "ctx"),
        ("{{ c }}", "iter"),
        ("{{ d }}", "workload"),
        ("{{ execution_id }}", "e1"),
        ("{{ _prev.n }}", 1),
        ("{{ _task }}", "fetch"),
        ("{{ _attempt }}", 2),
        ("{{ outcome.status }}", "error"),
        ("{{ event.name }}", "step.done"),
    ],
)
def test_namespaces_and_the_order_of_unqualified_names(text: str, value: object) -> None:
    assert compile_text(text)(SCOPE) == value


@pytest.mark.rule("TPL-3")
@pytest.mark.parametrize(
    ("expression", "verdict"),
    [
        ("outcome.http.status == 503", False),
        ("outcome.http.status < 503", False),
        ("outcome.http.status > 503", False),
        ("outcome.http.status in [503]", False),
        ("outcome.http.status", False),
        ("outcome.http.status != 503", True),
        ("not outcome.http.status", True),
        ("no_such_name", False),
        ("outcome.result > 3", False),
        ("3 >= outcome.result", False),
        ("outcome.result < ctx.a", False),
        ("1 < outcome.result < 3", False),
        ("'x' in outcome.result", False),
        ("'x' not in outcome.result", True),
        ("not outcome.result > 3", True),
    ],
)
def test_in_a_guard_undefined_is_false(expression: str, verdict: bool) -> None:
    assert compile_guard("{{ " + expression + " }}")(SCOPE) is verdict


@pytest.mark.rule("TPL-3")
def test_elsewhere_undefined_is_an_error_that_names_it() -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_value({"url": "{{ workload.api_url }}/x"})(SCOPE)
    assert failed.value.undefined == "workload.api_url"
    assert "'workload.api_url' is undefined" in failed.value.message
    assert compile_text("{{ workload.api_url | default('http://x') }}")(SCOPE) == "http://x"


@pytest.mark.rule("TPL-3")
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'a' if ctx.nope else 'b'", "b"),
        ("'a' if ctx.nope.deeper > 3 else 'b'", "b"),
        ("ctx.nope or 'b'", "b"),
        ("not ctx.nope", True),
        ("ctx.nope == 3", False),
        ("[1, 2] | select('==', ctx.nope) | list", []),
    ],
)
def test_undefined_is_an_error_only_where_it_reaches_the_output(
    expression: str, value: object
) -> None:
    assert compile_text("{{ " + expression + " }}")(SCOPE) == value


@pytest.mark.rule("TPL-3")
@pytest.mark.parametrize(
    "expression", ["ctx.nope", "ctx.nope or ctx.nope", "ctx.nope + 1", "[ctx.nope]", "ctx.nope ~ 1"]
)
def test_undefined_that_reaches_the_output_is_named(expression: str) -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_text("{{ " + expression + " }}")(SCOPE)
    assert failed.value.undefined == "ctx.nope"


@pytest.mark.rule("TPL-3")
def test_any_other_error_is_an_error_in_guards_too() -> None:
    with pytest.raises(TemplateFailed):
        compile_guard("{{ 'a' < 3 }}")(SCOPE)


@pytest.mark.rule("TPL-4")
def test_nothing_is_parsed_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    statement = "{% for i in workload.items %}{{ i | string | upper }}{% endfor %}"
    evaluate = compile_value({"a": "{{ a | upper }}", "b": [statement]})
    choose = compile_rules(["{{ a == 'x' }}", "{{ b | length == 3 }}"])

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("parsed while it ran")

    monkeypatch.setattr(jinja2.parser.Parser, "parse", forbidden)
    monkeypatch.setattr(jinja2.lexer.Lexer, "tokeniter", forbidden)
    monkeypatch.setattr(jinja2.environment.Environment, "compile", forbidden)
    monkeypatch.setattr("builtins.compile", forbidden)
    assert evaluate(SCOPE) == {"a": "ARGS", "b": ["12"]}
    assert choose(SCOPE) == 1


@pytest.mark.rule("TPL-5")
@pytest.mark.parametrize(
    ("within", "beyond"),
    [
        ("'a' * 10000000", "'a' * 10000001"),
        ("range(100000)", "range(100001)"),
        ("10 ** 4299", "10 ** 4300"),
    ],
)
def test_the_documented_limits(within: str, beyond: str) -> None:
    assert compile_text("{{ (" + within + ") is defined }}")(SCOPE) is True
    with pytest.raises(TemplateFailed):
        compile_text("{{ (" + beyond + ") is defined }}")(SCOPE)


@pytest.mark.rule("TPL-5")
@pytest.mark.parametrize("turns", [999, 1001])
def test_a_million_turns_by_code_or_by_filters(turns: int) -> None:
    loop = "{% for a in range(999) %}{% for b in range(TURNS) %}{% endfor %}{% endfor %}x"
    evaluate = compile_text(loop.replace("TURNS", str(turns)))
    if turns < 1000:
        assert evaluate(SCOPE) == "x"
    else:
        with pytest.raises(TemplateFailed, match="1,000,000 turns"):
            evaluate(SCOPE)


@pytest.mark.rule("TPL-5")
@pytest.mark.parametrize("text", ["{{ '' | attr('__class__') }}", "{{ ''['__class__'] }}"])
def test_python_stays_out_of_reach(text: str) -> None:
    with pytest.raises(TemplateFailed, match="not allowed"):
        compile_text(text)(SCOPE)


@pytest.mark.rule("TPL-5")
def test_a_text_as_a_number_for_sql() -> None:
    """`bigint`: the same text, the same number, within what SQL's bigint holds."""
    one, other = (compile_text(f"{{{{ '{text}' | bigint }}}}")(SCOPE) for text in ("a", "b"))
    assert one == compile_text("{{ 'a' | bigint }}")(SCOPE) != other
    assert {type(one), type(other)} == {int}
    assert 0 <= min(one, other) < max(one, other) < 2**63
    assert compile_text("{{ 7 | bigint }}")(SCOPE) == 7
