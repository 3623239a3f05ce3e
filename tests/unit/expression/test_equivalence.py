"""Ours gives stock Jinja2's value, type and class of error (deviations are tested elsewhere)."""

import pytest
from tests.unit.expression.stock import (
    our_expression,
    outcome_of,
    stock_expression,
    stock_text,
)

EXPRESSIONS = """
1
-1
+n
- n ** 2
2 ** 3 ** 2
1 + 2 * 3 - 4 / 2
7 // 2
-7 // 2
7 % 3
7.5 % 2
1 / 0
1 // 0
n / 2
f * 4
0.1 + 0.2
1e3
1_000 + 0x1f + 0b11 + 0o17
'a' 'b' "c"
'tab\\tquote\\'' ~ "é"
'ünï'
s ~ n ~ f ~ t ~ nothing ~ xs
'a' + 1
'a' + 'b'
[1] + [2, 3]
(1, 2) + (3,)
'ab' * 3
[0] * 3
2 * 'x'
'-' * -1
'a' * 'b'
n == 7
n == 7.0
n == '7'
n != 7
n < 8
n <= 7 < 8
1 < n < 5
1 < 5 < n > 3 != 4
'a' < 'b'
'a' < 3
'a' + [1]
[1] + 'a'
(1,) + [1]
none < 1
xs == [3, 1, 2]
d.b == {'c': [10, 20, {'e': 'deep'}]}
(1, 2) == [1, 2]
true and false
true or undefined_name
false and undefined_name
n and s
zero or s
zero or empty or nothing
not n
not zero
not not s
not n == 7
n in [1, 7]
n in (1, 2)
n not in xs
'ell' in s
'a' in d
'z' in d
3 in xs and 4 not in xs
n in 'abc'
n in n
[] in nested
'yes' if n else 'no'
'yes' if zero else 'no'
'yes' if zero
'a' if zero else 'b' if n else 'c'
(1 if t else 2) + 1
xs[0]
xs[-1]
xs[9]
xs[9] | default('none')
xs[1:]
xs[:2]
xs[::-1]
xs[0:3:2]
s[0]
s[-5:]
s[::2]
n[0:1]
d.a
d['a']
d['key with space']
d.b.c[2].e
d.b.c.2.e
d.b['c'][0]
d.missing
d.missing is defined
d.missing is not defined
nothing is defined
undefined_name
undefined_name is defined
undefined_name + 1
undefined_name | default
undefined_name | default('x')
empty | default('x')
empty | default('x', true)
nothing | default('x')
nothing | d('x', boolean=true)
zero | default(5, true)
[undefined_name]
{'a': undefined_name}
[1, 'two', 3.0, none, true, [4], {'five': 5}]
{'a': 1, 'b': [n, s]}
{s: n}
{}
[]
()
(1,)
(1, 2, 3)
s | upper
s | lower
s | title
s | capitalize
s | length
xs | length
d | count
n | length
s | reverse
xs | reverse | list
xs | first
xs | last
[] | first
[] | first | default('x')
s | first
xs | sum
xs | sum(start=10)
users | sum(attribute='age')
nested | sum(start=[])
xs | sort
xs | sort(reverse=true)
words | sort
words | sort(case_sensitive=true)
users | sort(attribute='age,name') | map(attribute='name') | list
['a', 1] | sort
xs | min
xs | max
words | min
users | max(attribute='age')
[] | max
xs | join
xs | join(', ')
users | join(', ', attribute='name')
n | join
words | map('upper') | list
words | map('replace', 'p', 'b') | list
users | map(attribute='name') | join('/')
users | map(attribute='zip', default='none') | list
users | map(attribute='zip') | list
words | map | list
words | map('no_such') | list
xs | select('odd') | list
xs | select('greaterthan', 1) | list
xs | reject('odd') | list
xs | select | list
users | selectattr('age', 'eq', 30) | map(attribute='name') | list
users | rejectattr('city', 'equalto', 'Rome') | list
users | selectattr('city') | list | length
users | groupby('city') | map(attribute='grouper') | list
users | groupby('city') | map(attribute=1) | map('length') | list
users | groupby('age') | map('first') | list
[1, 1, 2] | unique | list
words | unique | list
range(10) | batch(3) | list
range(4) | batch(3, 'x') | list
range(7) | slice(3) | list
range(7) | slice(3, 0) | list
d | dictsort
d.b | dictsort(true)
{'b': 1, 'a': 2} | dictsort(by='value')
d | items | list
d.items() | list
d.keys() | list
d.values() | list | length
d.get('a')
d.get('zz', 5)
'3' | int
'x' | int
'x' | int(default=9)
'ff' | int(base=16)
'3.7' | int
none | int
'3.5' | float
'x' | float
3.14159 | round(2)
3.5 | round
2.7 | round(0, 'floor')
2.2 | round(method='ceil')
2.5 | round(1, 'up')
-3 | abs
'x' | abs
n | string
f | string
xs | string
nothing | string
t | string
s | list
xs | list
n | list
range(3) | list
range(1, 10, 3) | list
range(3)
s | replace('World', 'There')
s | replace('l', 'L', 1)
'  x  ' | trim
'xxaxx' | trim('x')
s | truncate(8)
s | truncate(8, true, '..')
s | center(20)
lines | indent
lines | indent(2, true)
lines | wordcount
'a b c d e f' | wordwrap(3)
html | escape
html | e | string
html | forceescape
html | striptags
html | safe
html | e ~ '<'
'http://example.com x' | urlize
'a b&c/d' | urlencode
{'a': 1, 'b': 'x y'} | urlencode
{'class': 'x', 'id': 3} | xmlattr
d | tojson
xs | tojson(indent=2)
html | tojson
1000000 | filesizeformat
1000000 | filesizeformat(true)
'%s is %d' | format('x', 3)
'%(a)s' | format(a=1)
'%s' | format
'%5.2f|%-4s|' % (f, 'a')
'%d' % 'x'
d.b | pprint
n is number
s is string
xs is sequence
xs is iterable
d is mapping
n is even
n is odd
n is divisibleby 7
n is divisibleby(2)
n is eq 7
n is ge(7) and n is lt 8
nothing is none
t is true
t is boolean
n is integer
f is float
s is lower
s is upper
n is sameas 7
n is in [7]
'x' is in xs
'upper' is filter
'nope' is filter
'odd' is test
s is callable
s.upper is callable
not n is odd
n is not odd and true
s is even
s.upper()
s.split()
s.split('o', 1)
s.startswith('He')
s.replace('l', '')
s.find('W')
'-'.join(words)
'-'.join(xs)
'{} and {}'.format(1, 'b')
'{0:>5}|{a!r}|{d[a]}'.format(1, a='x', d=d)
'{a}'.format_map({'a': 1})
xs.index(1)
xs.index(99)
xs.count(1)
xs.append(4)
d.update({'z': 1})
d.pop('a')
s.no_such
s.no_such()
n()
dict(a=1, b=n)
dict(d, z=1).z
range(2, n) | sum
range('x')
words | map('length') | sum
[1, 2] | map('string') | join('+')
(xs | sort)[0]
(users | first).name
users[0].name ~ '!'
users[n - 7].name
d['b']['c'][xs[1]]
d[s] | default('no')
-xs[0]
(n)
((n + 1) * 2)
not (n > 3 and s)
n|string|length
n > 3 | int
"a" ~ 1 + 2
1 ~ 2 * 3
true if n is defined and n > 3 else false
xs | map('abs') | select('gt', 1) | list | length > 1
""".strip().splitlines()

TEXTS = [
    "plain {{ n }}",
    "{{ n }}{{ s }}",
    "{{ xs }}, {{ nothing }}, {{ t }}, {{ f }}",
    "{{ d.b }} and {{ (1, 2) }}",
    "a\n{{ n }}\nb\n",
    "a\n{{ n }}\n\n",
    "x {{- n -}} y",
    "x{# a comment #}{{ n }}",
    "tail {{ html }}",
    "x {{ html | e }}",
    "x {{ missing }}",
    "x {{ d.missing | default('y') }} z",
    "{% if n > 3 %}big{% elif n %}small{% else %}none{% endif %}",
    "{% for x in xs %}{{ loop.index }}:{{ x }}{% if not loop.last %},{% endif %}{% endfor %}",
    "{% for x in xs if x > 1 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }};{% endfor %}",
    "{% for u in users %}{{ u.name }}{{ loop.revindex0 }}{{ loop.length }}{% endfor %}",
    "{% for x in xs | map('string') %}{{ x }}{{ loop.first }}{% endfor %}",
    "{% for x in xs %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}",
    "{% for x in [1, [2, [3]]] recursive %}{% if x is iterable %}{{ loop(x) }}{% else %}{{ x }}"
    "{% endif %}{% endfor %}",
    "{% set x = 3 %}{{ x + n }}",
    "{% set x %}a{{ n }}b{% endset %}{{ x | upper }}",
    "{% set x | upper %}abc{% endset %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set ns = namespace(total=0) %}{% for x in xs %}{% set ns.total = ns.total + x %}"
    "{% endfor %}{{ ns.total }}",
    "{% macro hi(who, mark='!') %}hi {{ who }}{{ mark }}{% endmacro %}"
    "{{ hi('A') }}{{ hi('B', '?') }}",
    "{% macro box() %}[{{ caller() }}]{% endmacro %}{% call box() %}in{% endcall %}",
    "{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}",
    "{% macro f(k) %}{% if k > 0 %}{{ k }}{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(4) }}",
    "{% filter upper %}abc {{ s }}{% endfilter %}",
    "{% with a = n, b = 2 %}{{ a * b }}{% endwith %}",
    "{% raw %}{{ untouched }}{% endraw %}",
    "{%- if true -%}  x  {%- endif -%}",
    "{% block body %}b{{ n }}{% endblock %}{{ self.body() }}",
    "{% autoescape true %}{{ html }}{{ html ~ '<' }}{% endautoescape %}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}",
    "{% set j = joiner('|') %}{% for x in xs %}{{ j() }}{{ x }}{% endfor %}",
    "{% for x in range(3) %}{% for y in range(x) %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% if missing is defined %}x{% else %}y{% endif %}",
    "{% for x in missing %}x{% endfor %}",
    "{% for x in n %}x{% endfor %}",
    "{{ s }}{% if n == 7 and xs[1:] == [1, 2] %}yes{% endif %}",
    "{% if 'a' < 3 %}x{% endif %}",
    "{% set x = xs + [4] %}{{ x }}{{ x[1:] }}{{ 'a' ~ x[0] }}",
    "{% set x = {'a': n} %}{{ x.a }}{{ x }}",
    "{% for (a, b) in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}",
]


def test_there_are_enough_cases() -> None:
    assert len(set(EXPRESSIONS)) + len(TEXTS) >= 300


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_an_expression_equals_stock(source: str) -> None:
    assert our_expression(source) == stock_expression(source)


@pytest.mark.parametrize("template", TEXTS)
def test_text_equals_stock(template: str) -> None:
    assert outcome_of(template) == stock_text(template)
