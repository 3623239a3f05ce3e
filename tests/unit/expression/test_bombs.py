"""A corpus of escapes and bombs: each is refused at load or stopped by a count (TPL-5)."""

import pytest

from noetl.errors import TemplateError, TemplateFailed, TemplateFault
from noetl.expression.template import compile_guard, compile_text

pytestmark = pytest.mark.rule("TPL-5")

FIELDS = {"deep": [[[1]]], "text": "a" * 1000, "many": list(range(1000)), "d": {"k": 1}}
SCOPE = {"workload": FIELDS, "ctx": {"wide": ["x" * 1000] * 1000}}

REFUSED_AT_LOAD = [
    "{{ ''.__class__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ workload.__init__.__globals__ }}",
    "{{ range.__self__ }}",
    "{{ x | random }}",
    "{{ x | no_such_filter }}",
    "{{ x is no_such_test }}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% from 'x' import y %}",
    "{% extends 'x' %}",
    "{% do x %}",
    "{% debug %}",
    "{% set ns = namespace() %}{% set ns.x = ns.__class__ %}",
    "{% filter random %}a{% endfilter %}",
    "{{ '\\ud800' }}",
    "{{ " + "(" * 10_000 + "1" + ")" * 10_000 + " }}",
    "{{ " + "[" * 10_000 + "]" * 10_000 + " }}",
    "{{ " + "not " * 10_000 + "1 }}",
    "{{ " + "-" * 10_000 + "1 }}",
    "{{ " + "1 if 1 else " * 10_000 + "1 }}",
    "{{ 1" + " + 1" * 10_000 + " }}",
    "{{ x" + " | abs" * 10_000 + " }}",
    "{{ 1" + " < 1" * 10_000 + " }}",
    "{{ x" + ".y" * 20_000 + "[0:1] }}",
    "{{ ctx" + ".y" * 20_000 + " }}",
    "{{ dict(a=1, a=2) }}",
    "{{ x | center(width=1, width=2) }}",
    "{% if 1 %}" * 2_000 + "{% endif %}" * 2_000,
    "{% if 1 %}" * 150 + "{% endif %}" * 150,
    "{% for a in x %}" * 25 + "{% endfor %}" * 25,
    "{% if 0 %}" + "{% elif 0 %}" * 4_000 + "{% endif %}",
    "{% set a = 1 %}" * 5_000,
    "{% block a %}{% endblock %}{% block a %}{% endblock %}",
    "{% macro m(a, a) %}{% endmacro %}",
    "{% macro m(a) %}{% endmacro %}{{ m(a=1, a=2) }}",
    "{{ " + "9" * 5_000 + " }}",
    "{{ a",
    "{{ a }",
    "{{ }}",
    "{% if %}",
    "{{ 'a }}",
    "{{ a..b }}",
]

LARGE = 2**61 - 1  # multiples of it have the same hash
STOPPED = [
    "{{ [[[0] * 1000] * 1000] * 1000 }}",
    "{{ ([[[0] * 1000] * 1000] * 1000) | map('list') }}",
    "{{ (range(999) | list + [1]) in [range(999) | list + [2]] * 99999 }}",
    "{{ ('a' * 99999 ~ 1) in ['a' * 99999 ~ 2] * 99999 }}",
    "{{ ([range(999) | list + [1]] * 99999).count(range(999) | list + [2]) }}",
    "{{ ([range(999) | list + [1]] * 99999).index(range(999) | list + [2]) }}",
    "{% set b = range(999) | list %}{% if [b + [1]] * 99999 == [b + [1]] * 99999 %}{% endif %}",
    "{% set b = range(999) | list %}{% if b + [1] in [b + [2]] * 99999 %}{% endif %}",
    f"{{{{ dict(range(0, {LARGE} * 99999, {LARGE}) | batch(2)) | length }}}}",
    "{{ range(10**30) }}",
    "{{ '%((a))999999999d' % {'(a)': 1} }}",
    "{{ '%(a' % {'a': 1} }}",
    "{{ ('a' | e).center(10**9) }}",
    "{{ ('a' | safe).ljust(10**9) }}",
    "{{ (('a' * 9999) | safe).replace('a', 'b' * 9999) }}",
    "{{ (('a ' * 2999999) | safe).split() | length }}",
    "{{ ('\U0001d54f ' * 2999999).split() | length }}",
    "{{ ('a\n' * 2999999).splitlines() | length }}",
    "{{ ('\u0390' * 9999999).upper() | length }}",
    "{{ ('\U0001d54f' * 9999999) | urlencode | length }}",
    "{{ 15 | round(-10**9) }}",
    "{{ range(99999) | sort(attribute='real,' * 9999) }}",
    "{{ range(99999) | sort(false, false, 'real.' * 9999) }}",
    "{{ range(99999) | min(attribute='real.' * 9999) }}",
    "{{ range(99999) | map(attribute='real.' * 9999) | list }}",
    "{{ range(99999) | selectattr('real.' * 9999) | list }}",
    "{{ range(99999) | groupby('real.' * 9999) }}",
    "{{ range(99999) | sum(attribute='real.' * 9999) }}",
    "{{ range(99999) | join(',', attribute='real.' * 9999) }}",
    "{{ range(99999) | unique(attribute='real.' * 9999) | list }}",
    "{{ cycler(*('a' * 9999999)) }}",
    "{% set c = cycler(*('a' * 9999999)) %}",
    "{{ 1e999 }}",
    "{% set ns = namespace() %}{{ ns[''] }}",
    "{{ [" + ", ".join(f"'a' * {9_000_000 + n}" for n in range(40)) + "] | length }}",
    "{% for i in range(99999) %}" + "{% if workload.d %}{% endif %}" * 500 + "{% endfor %}",
    "{% macro m() %}" + "{% if workload.d %}{% endif %}" * 500 + "{% endmacro %}"
    "{% for i in range(99999) %}{{ m() }}{% endfor %}",
    "{{ '' | attr('__class__') }}",
    "{{ '' | attr('_x') }}",
    "{{ ''['__class__'] }}",
    "{{ workload['__class__'] }}",
    "{{ ['__class__'] | map('attr', '__class__') | list }}",
    "{{ [''] | map(attribute='__class__') | list }}",
    "{{ [''] | groupby('__class__') | list }}",
    "{{ [''] | sort(attribute='__class__') }}",
    "{{ [''] | sum(attribute='__class__') }}",
    "{{ [''] | selectattr('__class__') | list }}",
    "{{ [''] | map(attribute='upper.__self__') | list }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{0[__class__]}'.format(1) }}",
    "{{ '{a.__class__}'.format_map({'a': 1}) }}",
    "{{ ('{0.__class__}' | attr('format'))(1) }}",
    "{{ ['{0.__class__}'.format] | first }}",
    "{{ '{:>999999999}'.format(1) }}",
    "{{ '{:{w}}'.format(1, w=999999999) }}",
    "{{ ('{0}' * 100000).format(workload.text) }}",
    "{{ '%999999999d' | format(1) }}",
    "{{ '%999999999d' % 1 }}",
    "{{ '%.999999999f' % 1.0 }}",
    "{{ '%*d' % (999999999, 1) }}",
    "{{ ('%(a)s' * 100000) % {'a': workload.text} }}",
    "{{ 'a'.center(10**9) }}",
    "{{ 'a'.ljust(10**9) }}",
    "{{ 'a'.rjust(10**9) }}",
    "{{ 'a'.zfill(10**9) }}",
    "{{ '\\t'.expandtabs(10**9) }}",
    "{{ '\\t'.expandtabs(tabsize=10**9) }}",
    "{{ workload.text.replace('a', workload.text * 100) }}",
    "{{ workload.text | replace('a', workload.text * 100) }}",
    "{{ (workload.text * 100).join(workload.text) }}",
    "{{ workload.text | join(workload.text * 100) }}",
    "{{ workload.many | join(workload.text * 100) }}",
    "{{ 'a' | center(10**9) }}",
    "{{ 'a' | indent(10**9, true) }}",
    "{{ 'a\\nb' | indent(width=10**9) }}",
    "{{ workload.text | wordwrap(1, wrapstring=workload.text * 100) }}",
    "{{ [1] | batch(10**9, 0) | list }}",
    "{{ [1] | slice(10**9) | list }}",
    "{{ range(10**9) | list }}",
    "{{ range(100001) }}",
    "{{ range(0, 10**9, 2) | sum }}",
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ [0] * 10**9 }}",
    "{{ (0,) * 10**7 }}",
    "{{ 'a' * 9999999 ~ 'b' * 9999999 }}",
    "{{ 'a' * 9999999 + 'b' * 9999999 }}",
    "{{ 10**3000000 }}",
    "{{ 10**3000000 > 1 }}",
    "{{ (10**4000) * (10**4000) }}",
    "{{ (-10)**4301 }}",
    "{{ 10**4299 + 10**4300 }}",
    "{{ 1.5 | round(10**9) }}",
    "{{ ('f' * 100000) | int(base=16) }}",
    "{{ workload.deep | tojson(indent=10**9) }}",
    "{{ (workload.text * 1000) | striptags }}",
    "{{ (workload.text * 1000) | urlize }}",
    "{{ (workload.text * 1000) | wordwrap }}",
    "{{ (workload.text * 1000) | pprint }}",
    "{{ ([ctx.wide] * 100) | tojson }}",
    "{{ ([ctx.wide] * 100) | string }}",
    "{{ 'x' ~ [ctx.wide] * 100 }}",
    "{{ ([ctx.wide] * 100) | pprint }}",
    "{{ range(100000) | map('string') | map('upper') | map('lower') | map('trim') | map('upper')"
    " | map('title') | list }}",
    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
    "{% for a in range(100000) %}{% for b in range(100) if false %}{% endfor %}{% endfor %}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{% for x in [9] recursive %}{% if x %}{{ loop([x - 1] * 50) }}{% endif %}{% endfor %}",
    "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
    "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
    "{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% endfor %}",
    "{% set ns = namespace(x=1) %}{% for i in range(99) %}{% set ns.x = {'a': ns.x, 'b': ns.x} %}"
    "{% endfor %}",
    "{% set ns = namespace(x=1) %}{% for i in range(99) %}{% set ns.x = dict(a=ns.x, b=ns.x) %}"
    "{% endfor %}",
    "{% set ns = namespace(x=3) %}{% for i in range(99) %}{% set ns.x = ns.x * ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
    "{% for i in range(100000) %}{{ workload.text }}{% endfor %}",
    "{% set x %}{% for i in range(100000) %}{{ workload.text }}{% endfor %}{% endset %}",
    "{% set big = workload.text * 5000 %}{% for i in range(100000) %}{% if big == big ~ '' %}"
    "{% endif %}{% endfor %}",
    "{% set big = workload.text * 5000 %}{% for i in range(100000) %}"
    "{% set y = big[1:] %}{% endfor %}",
    "{% set x = namespace() %}{{ x }}",
    "{% set x = [namespace()] %}{{ x }}",
    "{{ range }}",
    "{{ dict }}",
    "{{ ''.upper }}",
    "{{ [''.upper] }}",
    "{{ cycler }}",
    "{{ lipsum() }}",
    "{{ workload.many.append(1) }}",
    "{{ workload.d.update({'x': 1}) }}",
    "{{ workload.d.clear() }}",
    "{% set _ = workload.many.pop() %}",
    "{{ 'a'.encode() }}",
    "{{ 'a'.translate({97: 'b'}) }}",
    "{{ dict.fromkeys(range(9)) }}",
    "{{ dict.mro() }}",
    "{{ namespace.mro() }}",
    "{{ cycler.mro() }}",
    "{{ (5).to_bytes(10**9) }}",
    "{{ 1e308 * 10 }}",
    "{{ 'nan' | float }}",
    "{{ (-1) ** 0.5 }}",
    "{{ {(1, 2): 3} }}",
    "{{ self }}",
    "{% block b %}{% endblock %}{{ self._TemplateReference__context }}",
    "{% for x in [1] %}{{ loop._iterator }}{% endfor %}",
    "{% for x in [1] %}{{ loop }}{% endfor %}",
    "{% macro m() %}{% endmacro %}{{ m._func }}",
    "{% macro m() %}{% endmacro %}{{ m }}",
    "{{ workload.many | map('$built') | list }}",
    "{{ workload.many | map('random') | list }}",
    "{{ workload.many | map('center', 100000) | list }}",
    "{{ [ctx.wide] * 100 }}",
    "{{ (workload.text * 9000) | list }}",
    "{{ (workload.text * 9000) | sort }}",
    "{{ (workload.text * 9000) | unique | list }}",
    "{{ (workload.text * 9000) | map('upper') | list }}",
    "{{ (workload.text * 9000).split('a') }}",
    "{{ ('&' * 3000000) | e }}",
    "{{ workload.text.center(*[10**9]) }}",
    "{{ 'a' | center(**{'width': 10**9}) }}",
    "{{ ['%999999999d'] | map('format', 3) | list }}",
    "{{ '%c' % 55296 }}",
    "{{ '{:c}'.format(55296) }}",
    "{% block a %}{{ self.a() }}{% endblock %}",
    "{% set ns = namespace(x=1) %}{% set ns.y = ns %}{{ [ns] }}",
    "{% filter indent(width=10000000) %}a{% endfilter %}",
]


def test_the_corpus_is_large() -> None:
    assert len({*REFUSED_AT_LOAD, *STOPPED}) >= 100


@pytest.mark.parametrize("text", REFUSED_AT_LOAD, ids=lambda text: text[:60])
def test_refused_at_load(text: str) -> None:
    with pytest.raises(TemplateFault) as refused:
        compile_text(text)
    assert refused.value.text == text
    assert refused.value.message


@pytest.mark.parametrize("text", STOPPED, ids=lambda text: text[:80])
def test_stopped_when_evaluated(text: str) -> None:
    evaluate = compile_text(text)
    with pytest.raises(TemplateFailed) as stopped:
        evaluate(SCOPE)
    assert stopped.value.text == text
    assert stopped.value.message.startswith("template ")


@pytest.mark.parametrize(
    "guard",
    ["{{ 10**3000000 > 1 }}", "{{ 'a' * 10**9 }}", "{{ ''['__class__'] }}", "{{ range(10**9) }}"],
)
def test_guards_have_the_same_limits(guard: str) -> None:
    with pytest.raises(TemplateError):
        compile_guard(guard)(SCOPE)


def test_within_the_limits_nothing_is_refused() -> None:
    assert len(compile_text("{{ 'a' * 10000000 }}")(SCOPE)) == 10_000_000
    assert len(compile_text("{{ range(100000) | list }}")(SCOPE)) == 100_000
    assert compile_text("{{ 10**4299 }}")(SCOPE) == 10**4299
    loops = "{% for a in range(900) %}{% for b in range(1000) %}{% endfor %}{% endfor %}done"
    assert compile_text(loops)(SCOPE) == "done"


def test_a_tall_pile_of_lazies_is_taken_down() -> None:
    pile = (
        "{% set ns = namespace(x=[1]) %}{% for i in range(9000) %}"
        "{% set ns.x = ns.x | map('string') %}{% endfor %}{{ ns.x | list }}"
    )
    assert compile_text(pile)(SCOPE) == "['1']"


def test_numbers_of_the_same_hash_are_told_apart_quickly() -> None:
    numbers = f"range(0, {LARGE} * 99999, {LARGE})"
    assert compile_text(f"{{{{ {numbers} | unique | list | length }}}}")(SCOPE) == 99_999
    assert (
        compile_text("{{ [2**70, 2.0**70, 'a', 'A', (2**70,)] | unique | list | length }}")(SCOPE)
        == 3
    )


@pytest.mark.parametrize(
    "text",
    ["{{ '%s' % (range(2) | map('string')) }}", "{{ '%r' | format(range(2) | map('string')) }}"],
)
def test_no_address_in_memory_reaches_a_text(text: str) -> None:
    assert compile_text(text)(SCOPE) == "['0', '1']"


@pytest.mark.parametrize(
    "text",
    ["{{ workload['a' * 9000000] }}", "{{ ('{' ~ 'a' * 5000000 ~ '}').format() }}"],
)
def test_a_message_never_repeats_a_large_value(text: str) -> None:
    with pytest.raises(TemplateFailed) as stopped:
        compile_text(text)(SCOPE)
    assert len(stopped.value.message) < 2_500


def test_marked_text_stays_marked_in_a_pattern() -> None:
    text = "{{ ('<i>%s %s</i>' | safe) % ('<b>' | safe, '<b>') }}"
    assert compile_text(text)(SCOPE) == "<i><b> &lt;b&gt;</i>"


def test_a_text_in_brackets_is_no_width() -> None:
    assert compile_text("{{ '(tel) 0123456789 %(a(b))s' % {'a(b)': 1} }}")(SCOPE) == (
        "(tel) 0123456789 1"
    )


def test_the_scope_is_never_changed() -> None:
    assert FIELDS["many"] == list(range(1000))
    assert FIELDS["d"] == {"k": 1}
