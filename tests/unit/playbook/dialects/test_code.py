"""Embedded Python: what it reads is seen in its tree, and only that is replaced in its text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.playbook.dialects.code import (
    PythonCode,
    keys_of_result,
    read_code,
    read_through,
    returns_of,
    without_return,
)


def code(text: str) -> PythonCode:
    found = read_code(text)
    assert found is not None
    return found


def ran(text: str, **names: Any) -> Any:
    """What a task would give (OUT-3)."""
    scope = dict(names)
    exec(compile(text, "<code>", "exec"), scope)
    if "result" not in scope and "main" in scope:
        taken = scope["main"].__code__.co_varnames[: scope["main"].__code__.co_argcount]
        return scope["main"](**{name: names[name] for name in taken})
    return scope.get("result")


@pytest.mark.parametrize("text", ["if", "x = (", "\x00", "def f(:\n"])
def test_what_does_not_parse_is_no_code(text: str) -> None:
    assert read_code(text) is None


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("x = a.get('b')", [("b",)]),
        ("x = a.get('b', {}).get('c', [])[0]", [("b", "c")]),
        ("x = a['b']['c'].get('d')", [("b", "c", "d")]),
        ("x = a", [()]),
        ("x = a.get(key)", [()]),
        ("x = a.get('b', c, d)", [()]),
        ("x = a.get('b', default=1)", [()]),
        ("x = a.keys()", [()]),
        ("x = a.get", [()]),
        ("a['b'] = 1", [()]),
        ("del a['b']", [()]),
        ("x = a[0]['b']", [()]),
        ("x = f'{a.get(\"b\")}'", [("b",)]),
        ("x = lambda: a['b']", [("b",)]),
        ("x = b.a['c']", []),
    ],
)
def test_chains_of_constant_keys_are_seen(text: str, keys: list[tuple[str, ...]]) -> None:
    assert [chain.keys for chain in code(text).chains("a")] == keys


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("a = 1", True),
        ("for a in b: pass", True),
        ("import a", True),
        ("import b as a", True),
        ("import a.b", True),
        ("from b import a", True),
        ("def a(): pass", True),
        ("def f(a): pass", True),
        ("class a: pass", True),
        ("try:\n    pass\nexcept E as a:\n    pass", True),
        ("with b as a: pass", True),
        ("(a := 1)", True),
        ("x = [a for a in b]", True),
        ("x = a", False),
        ("x.a = 1", False),
        ("f(a=1)", False),
    ],
)
def test_every_way_to_bind_a_name_is_known(text: str, bound: bool) -> None:
    assert bool(code(text).bindings("a")) is bound


GIVEN: dict[str, object] = {"num": 4, "word": "four"}


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("result = input_data.get('num')", "result = num"),
        ("result = input_data['num'] + 1  # é", "result = num + 1  # é"),
        ("result = 'é' + input_data['word']", "result = 'é' + word"),
        ("num = input_data.get('num')\nresult = num", "result = num"),
        ("num = input_data.get('num', 0)  # why\nresult = num", "num = num  # why\nresult = num"),
        ("a = 1; num = input_data['num']\nresult = num", "a = 1; num = num\nresult = num"),
        ("result = input_data.get('none')", "result = None"),
        ("result = input_data.get('none', [1])", "result = [1]"),
        ("num = int(input_data['word'])", "num = int(word)"),
        ("if 1:\n    x = input_data['num']\nresult = x", "if 1:\n    x = num\nresult = x"),
    ],
)
def test_a_mapping_of_all_is_read_as_names(text: str, new: str) -> None:
    through = read_through(code(text), "input_data", GIVEN)
    assert through is not None
    assert through.text == new
    compile(through.text, "<code>", "exec")


@pytest.mark.parametrize(
    "text",
    [
        "result = input_data",
        "result = sum(input_data.values())",
        "result = input_data.get(key)",
        "input_data = {}\nresult = input_data.get('num')",
        "def f():\n    num = input_data.get('num')\n    return num\nresult = f()",
        "num = 1\nresult = input_data.get('num') + num",
        "num = 1\nnum = input_data.get('num')\nresult = num",
        "num = input_data.get('num')\nnum += 1\nresult = input_data['num']",
        "for num in [1]:\n    pass\nresult = input_data['num']",
        "result = input_data['not a name']",
        "result = input_data['class']",
        "input_data['num'] = 1",
        "result = 1",
    ],
)
def test_where_names_would_mean_something_else_nothing_is_read_through(text: str) -> None:
    assert read_through(code(text), "input_data", GIVEN) is None


def test_without_known_names_every_key_is_taken_with_its_default() -> None:
    through = read_through(code("result = [c['a'], c.get('b', {}), c.get('b')]"), "c", None)
    assert through is not None
    assert through.text == "result = [a, b, b]"
    assert {key: default is not None for key, default in through.keys.items()} == {
        "a": False,
        "b": True,
    }


RETURNS = [
    ("return 1", 1, "result = 1"),
    ("return", None, "result = None"),
    ("return 1, 2", (1, 2), "result = 1, 2"),
    ("x = 1\nreturn {'x': x}  # so\n", {"x": 1}, "x = 1\nresult = {'x': x}  # so\n"),
    ("if n > 1:\n    return 'big'\nreturn 'small'", "big", None),
    ("if n > 9:\n    return 'big'\nresult = n", 4, None),
    ("if n > 9:\n    return 'big'\n", None, None),
    ("for i in range(9):\n    if i == n:\n        return i\nraise ValueError", 4, None),
    ("try:\n    return n\nfinally:\n    n = 0", 4, None),
    ("text = '''a\n  b\n'''\nif n:\n    return text\n", "a\n  b\n", None),
    ('text = f"""a\n{n}\n b"""\nif n:\n    return text\n', "a\n4\n b", None),
    ("def f():\n    return n\n\nif n:\n    return f() + 1\n", 5, None),
    ("n = n + 1\nif n:\n    return n\n", 5, None),
    ("x = (1,\n  2)\nif n:\n    return x\n", (1, 2), None),
    ("if n:\n    # why\n    return [\n        n,\n    ]\n", [4], None),
]


@pytest.mark.parametrize(("text", "value", "new"), RETURNS)
def test_a_return_outside_of_functions_is_made_legal(
    text: str, value: Any, new: str | None
) -> None:
    made = without_return(code(text), ["n", "other"])
    assert made is not None
    assert new is None or made == new
    assert ran(made, n=4, other=1) == value


@pytest.mark.parametrize(
    "text",
    [
        "from os import *\nif 1:\n    return 1\nx = 2",
        "from __future__ import annotations\nif 1:\n    return 1\nx = 2",
        "global x\nif 1:\n    return 1\nx = 2",
    ],
)
def test_what_only_a_module_may_do_cannot_become_a_function(text: str) -> None:
    assert without_return(code(text), []) is None


def test_returns_of_functions_are_their_own() -> None:
    text = "def f():\n    return 1\nclass C:\n    def g(self):\n        return 2\nx = lambda: 3\n"
    assert list(returns_of(code(text).tree.body)) == []


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("result = {'a': 1, 'b': 2}", ({"a", "b"}, {"a", "b"})),
        ("if x:\n    result = {'a': 1}\nelse:\n    result = {'b': 1}", (set(), {"a", "b"})),
        ("def main():\n    return {'a': 1}", ({"a"}, {"a"})),
        ("return {'a': 1}", ({"a"}, {"a"})),
        ("result = x", None),
        ("result = {**x}", None),
        ("result = {x: 1}", None),
        ("result = {'a': 1}\nresult['b'] = 2", None),
        ("x = 1", None),
    ],
)
def test_keys_of_a_result_are_known_where_they_are_written(
    text: str, keys: tuple[set[str], set[str]] | None
) -> None:
    assert keys_of_result(code(text)) == keys


@given(
    st.lists(st.sampled_from(["num", "word", "none"]), min_size=1, max_size=6),
    st.sampled_from(["{}.get('{}')", '{}["{}"]', "{}.get('{}', 7)"]),
)
def test_code_that_was_changed_gives_what_it_gave(keys: list[str], form: str) -> None:
    reads = [form.format("input_data", key) for key in keys if key != "none" or "[" not in form]
    text = f"x = 'ü'\nresult = [{', '.join(reads)}]\n"
    through = read_through(code(text), "input_data", GIVEN) if reads else None
    if through is not None:
        assert ran(through.text, **GIVEN) == ran(text, input_data=GIVEN)
