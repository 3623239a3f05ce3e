"""References: passed through whole they travel, touched they need their body (RES-1)."""

from typing import Any

import pytest

from noetl.errors import NeedsBody, TemplateFailed
from noetl.expression.template import compile_guard, compile_text, compile_value
from noetl.messages.reference import Reference

BIG = Reference(store="files", key="r1", size=1000, checksum="00")
OTHER = Reference(store="files", key="r2", size=1000, checksum="00")
UNLOADED: dict[str, Any] = {"ctx": {"big": BIG, "list": [BIG, OTHER]}, "_prev": OTHER}
LOADED = UNLOADED | {"$bodies": {"r1": {"rows": [1, 2], "name": "n"}, "r2": "text"}}

PASSED = [
    ("{{ ctx.big }}", BIG),
    ("{{ big }}", BIG),
    ("{{ _prev }}", OTHER),
    ("{{ [ctx.big, 1] }}", [BIG, 1]),
    ("{{ {'a': ctx.big} }}", {"a": BIG}),
    ("{{ ctx.list }}", [BIG, OTHER]),
    ("{{ ctx.list[0] }}", BIG),
    ("{{ ctx.list | first }}", BIG),
    ("{{ ctx.big if true else 1 }}", BIG),
    ("{{ ctx.big | default(1) }}", BIG),
    ("{{ ctx.list | length }}", 2),
    ("{{ ctx.big is defined }}", True),
]
TOUCHED = [
    ("{{ ctx.big.name }}", "n"),
    ("{{ ctx.big['rows'][1] }}", 2),
    ("{{ ctx.big.rows | length }}", 2),
    ("{{ ctx.big | length }}", 2),
    ("{{ _prev | upper }}", "TEXT"),
    ("{{ _prev.upper() }}", "TEXT"),
    ("{{ _prev ~ '!' }}", "text!"),
    ("{{ _prev + '!' }}", "text!"),
    ("{{ _prev[1:] }}", "ext"),
    ("x{{ _prev }}", "xtext"),
    ("{{ _prev == 'text' }}", True),
    ("{{ 'text' == _prev }}", True),
    ("{{ _prev == _prev }}", True),
    ("{{ 'ex' in _prev }}", True),
    ("{{ 'text' in ctx.list }}", True),
    ("{{ _prev in ['text'] }}", True),
    ("{{ not _prev }}", False),
    ("{{ _prev and 1 }}", 1),
    ("{{ _prev or 1 }}", "text"),
    ("{{ 1 if _prev else 2 }}", 1),
    ("{{ _prev is string }}", True),
    ("{{ ctx.big is mapping }}", True),
    ("{{ ctx.list[1] | upper }}", "TEXT"),
    ("{{ ctx.list | last | upper }}", "TEXT"),
    ("{{ [_prev] | join(',') }}", "text"),
    ("{{ [_prev] | map('upper') | list }}", ["TEXT"]),
    ("{{ [ctx.big] | map(attribute='name') | list }}", ["n"]),
    ("{{ [ctx.big] | selectattr('name', 'eq', 'n') | list | length }}", 1),
    ("{{ [_prev] | tojson }}", '["text"]'),
    ("{{ [_prev] == ['text'] }}", True),
    ("{{ '%s' % _prev }}", "text"),
    ("{{ '{}'.format(_prev) }}", "text"),
    ("{{ {_prev: 1} }}", {"text": 1}),
    ("{% if ctx.big.name == 'n' %}{{ _prev }}{% endif %}", "text"),
    ("{% for x in ctx.list %}{{ loop.index }}{% endfor %}", "12"),
    ("{% set x = _prev %}{{ x }}", "text"),
]


@pytest.mark.parametrize(("text", "value"), PASSED)
def test_passed_whole_it_stays_a_reference(text: str, value: object) -> None:
    assert compile_text(text)(UNLOADED) == value
    assert compile_text(text)(LOADED) == value


@pytest.mark.parametrize(("text", "value"), TOUCHED)
def test_touched_it_stands_for_its_body(text: str, value: object) -> None:
    assert compile_text(text)(LOADED) == value


@pytest.mark.parametrize("text", [text for text, _ in TOUCHED])
def test_touched_without_its_body_it_asks_for_it(text: str) -> None:
    with pytest.raises(NeedsBody) as needs:
        compile_text(text)(UNLOADED)
    assert needs.value.reference in (BIG, OTHER)


def test_guards_and_values_ask_too() -> None:
    guard = compile_guard("{{ ctx.big.name == 'n' }}")
    assert guard(LOADED) is True
    with pytest.raises(NeedsBody):
        guard(UNLOADED)
    value = compile_value({"a": "{{ ctx.big }}", "b": "{{ ctx.big.name }}"})
    assert value(LOADED) == {"a": BIG, "b": "n"}


def test_a_body_may_lack_what_is_asked() -> None:
    with pytest.raises(TemplateFailed) as failed:
        compile_text("{{ ctx.big.nothing }}")(LOADED)
    assert failed.value.undefined == "ctx.big.nothing"


def test_a_namespace_may_itself_be_a_reference() -> None:
    scope: dict[str, Any] = {"args": BIG, "$bodies": LOADED["$bodies"]}
    assert compile_text("{{ name }} {{ args.name }}")(scope) == "n n"
