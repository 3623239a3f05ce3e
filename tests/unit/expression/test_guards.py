"""Guards: undefined is false at any depth; other errors are errors (TPL-3)."""

from typing import Any

import pytest

from noetl.errors import TemplateFailed, TemplateFault
from noetl.expression.syntax import check_guard
from noetl.expression.template import compile_guard, compile_rules

SCOPE: dict[str, Any] = {
    "workload": {"items": [1, 2], "name": "x", "none": None},
    "ctx": {"total": 5, "name": "ctx wins"},
    "iter": {"index": 0},
    "args": {"page": 2},
    "outcome": {"status": "error", "error": {"kind": "timeout"}},
}

FALSE = """
outcome.http.status == 500
outcome.http.status < 500
outcome.http.status > 500
outcome.http.status <= 500
outcome.http.status >= 500
500 == outcome.http.status
500 < outcome.http.status
500 > outcome.http.status
outcome.http.status in [500, 502]
outcome.http.status in workload.items
outcome.http.status in 'text'
outcome.http.status in ctx
outcome.http.status in nowhere
500 in outcome.http.statuses
outcome.http.status
outcome.http.status and true
nowhere
nowhere.at.all
nowhere == nowhere
nowhere == none
nowhere + 1 == 1
nowhere + 1 != 1
1 - nowhere > 0 or true
nowhere | upper == 'X'
nowhere | length == 0
nowhere | int == 0
nowhere ~ 'x' == 'x'
nowhere[0] == 1
nowhere()
-nowhere == 1
nowhere is defined
nowhere is even
nowhere is none
workload.items[9] == 1
workload.items.first == 1
workload.name.first == 1
workload.none.x == 1
1 < nowhere < 3
nowhere < 1 < 3
nowhere | default(false)
nowhere.deep | default(0) > 1
{nowhere: 1}
workload.items | selectattr('x', 'eq', 1) | list
'a' if nowhere
ctx.update == 1
""".strip().splitlines()

TRUE = """
outcome.http.status != 500
500 != outcome.http.status
nowhere != nowhere
not outcome.http.status
not nowhere.at.all
outcome.http.status not in [500, 502]
outcome.http.status not in 'text'
500 not in outcome.http.statuses
nowhere is not defined
nowhere is undefined
outcome.http is undefined
nowhere | default(true)
nowhere.deep.er | default(3) > 2
nowhere or ctx.total == 5
outcome.status == 'error' and outcome.error.kind == 'timeout'
outcome.error.kind in ['timeout', 'connection']
ctx.total > 3 and args.page < 3
name == 'ctx wins'
page == 2
index == 0
items == [1, 2]
workload.items == [1, 2]
workload.items | length == 2
iter.index + 1 == 1
1 < ctx.total <= 5
outcome['status'] == 'error'
workload.items[0] == 1
workload.items.0 == 1
[nowhere] | length == 1
(nowhere or 'x') == 'x'
ctx.total in range(10)
""".strip().splitlines()


@pytest.mark.parametrize("expression", FALSE)
def test_false(expression: str) -> None:
    assert compile_guard("{{ " + expression + " }}")(SCOPE) is False
    assert compile_rules(["{{ " + expression + " }}", None])(SCOPE) == 1


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    assert compile_guard("{{ " + expression + " }}")(SCOPE) is True
    assert compile_rules([False, "{{ " + expression + " }}", None])(SCOPE) == 1


@pytest.mark.parametrize(
    "expression",
    [
        "'a' < 3",
        "ctx.total < 'x'",
        "1 / 0",
        "ctx.total in 5",
        "workload.name + 1",
        "[] | max + 1 / 0",
    ],
)
def test_other_errors_are_errors(expression: str) -> None:
    text = "{{ " + expression + " }}"
    with pytest.raises(TemplateFailed) as failed:
        compile_guard(text)(SCOPE)
    assert failed.value.text == text
    assert failed.value.undefined is None
    with pytest.raises(TemplateFailed) as failed:
        compile_rules([False, text])(SCOPE)
    assert failed.value.text == text


@pytest.mark.parametrize("scope", [{}, {"ctx": {}}, {"outcome": None}, {"outcome": {"http": None}}])
def test_an_empty_scope_makes_any_guard_false(scope: dict[str, Any]) -> None:
    assert compile_guard("{{ outcome.http.status == 500 }}")(scope) is False
    assert compile_guard("{{ ctx.total }}")(scope) is False


@pytest.mark.parametrize(
    ("guards", "index"),
    [
        ([], -1),
        ([None], 0),
        ([True], 0),
        ([False], -1),
        ([False, False, None], 2),
        (["{{ ctx.total == 4 }}", "{{ ctx.total == 5 }}", "{{ ctx.total == 5 }}"], 1),
        (["{{ nowhere + ctx.total }}", "{{ ctx.total == 5 }}"], 1),
        (["{{ nowhere and ctx.total == 5 }}", "{{ ctx.total == 6 }}", "{{ ctx.total == 5 }}"], 2),
        (["{{ nowhere | upper }}", "{{ outcome.status == 'ok' }}", True, None], 2),
        (["{{ 1 < nowhere < ctx.total }}", "{{ 9 > 8 > 7 > ctx.total }}"], 1),
        (["{{ nowhere }}", "{{ nowhere.x }}"], -1),
    ],
)
def test_the_first_match_wins(guards: list[bool | str | None], index: int) -> None:
    assert compile_rules(guards)(SCOPE) == index


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (True, None),
        (False, None),
        ("{{ a }}", None),
        ("  {{ a == 'x}}' }}\n", None),
        ("{{ {'a': {}}.a }}", None),
        ("true", "not 'true'"),
        ("", "not ''"),
        ("a == 1", "not 'a == 1'"),
        ("{{ a }} {{ b }}", "not '{{ a }} {{ b }}'"),
        ("x {{ a }}", "not 'x {{ a }}'"),
        ("{% if a %}1{% endif %}", "not '{% if"),
        ("{{ a }}{% if a %}{{ b }}{% endif %}{{ c }}", "one whole"),
        (None, "not nothing"),
        (1, "not a number"),
        ([], "not a list"),
        ({}, "not a mapping"),
        ("{{ a | nope }}", "there is no filter named 'nope'"),
        ("{{ a.__b }}", "'__b' is not allowed"),
        ("{{ a == }}", "nexpected"),
    ],
)
def test_what_a_guard_may_be(value: Any, reason: str | None) -> None:
    found = check_guard(value)
    if reason is None:
        assert found is None
    else:
        assert found is not None
        assert reason in found


@pytest.mark.parametrize("guard", ["true", "{{ a }} {{ b }}", "{{ a | nope }}", "{{ a"])
def test_what_is_no_guard_does_not_compile(guard: str) -> None:
    with pytest.raises(TemplateFault) as refused:
        compile_guard(guard)
    assert refused.value.text == guard
