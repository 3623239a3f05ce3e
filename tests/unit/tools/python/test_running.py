"""What code is given, and what becomes of it."""

from datetime import date
from textwrap import dedent
from typing import Any

import pytest
from tests.unit.tools.python.bench import Bench

from noetl.masking import KNOWN

SECRET = "qwjkzmwptrvnldshfgbcyaeuio"

ADD = "def main(a, b):\n    return a + b"


@pytest.mark.parametrize(
    ("code", "args", "result"),
    [
        ("result = 1 + 1", {}, 2),
        ("1 + 1", {}, None),
        ("", {}, None),
        ("result = [name, len(rows)]", {"name": "x", "rows": [1, 2]}, ["x", 2]),
        (ADD, {"a": 1, "b": 2}, 3),
        (ADD, {"a": 1, "b": 2, "unused": 3}, 3),
        ("def main(a, /, b=5): return [a, b]", {"a": 1}, [1, 5]),
        ("def main(*, b): return b", {"a": 1, "b": 2}, 2),
        ("def main(**all): return all", {"a": 1, "b": 2}, {"a": 1, "b": 2}),
        ("def main(*all): return all", {"a": 1}, []),
        ("def main(): return a", {"a": 1}, 1),
        ("def main(): return 2\nresult = 1", {}, 1),
        ("def main(): return result", {"result": 7}, 7),
        ("runs = []\ndef main(): runs.append(1)\nmain()\nresult = len(runs)", {}, 1),
        ("result = result + 1", {"result": 1}, 2),
        ("result = 3", {"result": 3}, 3),
        ("main = lambda a: a", {"a": 1}, 1),
        ("class main:\n    def __new__(cls, a): return a", {"a": 1}, 1),
        ("import functools\nmain = functools.partial(int, '7')", {}, 7),
        ("async def main(a): return a", {"a": 1}, 1),
        ("if __name__ == '__main__': 1 / 0\nresult = __name__", {}, "task"),
        ("result = 1\nraise SystemExit", {}, 1),
        ("import sys\ndef main(): sys.exit(0)", {}, None),
        (
            "from dataclasses import *\n@dataclass\nclass A:\n    x: 'int'\nresult = A(1).x",
            {},
            1,
        ),
        ("import pickle\nclass A: pass\nresult = pickle.loads(pickle.dumps(A)) is A", {}, True),
        ("result = (1, (2,))", {}, [1, [2]]),
        ("result = {'a': None, 'b': [True, 1.5, 'ü']}", {}, {"a": None, "b": [True, 1.5, "ü"]}),
        ("result = {1: 'a', 'b': [{2: 3}]}", {}, {"1": "a", "b": [{"2": 3}]}),
        ("result = 10 ** 30", {}, 10**30),
        ("from enum import IntEnum\nresult = IntEnum('E', 'a b').b", {}, 2),
        ("from collections import OrderedDict\nresult = OrderedDict(a=1)", {}, {"a": 1}),
        (
            "result = value",
            {"value": {"deep": [1.5, None, "\x00", 2**80]}},
            {"deep": [1.5, None, "\x00", 2**80]},
        ),
    ],
)
def test_results(bench: Bench, code: str, args: dict[str, Any], result: Any) -> None:
    assert bench.result(code, **args) == result


HELD = "which JSON cannot hold; use"
KEYS = "; use text as keys, such as str(key)"
PLAIN = "text, numbers, booleans, None, lists and mappings with text as keys"
NO_JSON = {
    "float('nan')": f"result is nan, {HELD} None or text",
    "[1, {'a': float('-inf')}]": f"result[1].a is -inf, {HELD} None or text",
    "b'x'": "result is of type bytes, which JSON cannot hold; decode it, or use "
    "base64.b64encode(...).decode()",
    "{'rows': [{1}]}": f"result.rows[0] is of type set, {HELD} sorted(...) or list(...)",
    "{1: 2, '1': 3}": f"result has the key 1 of type int{KEYS}",
    "{1.5: 2}": f"result has the key 1.5 of type float{KEYS}",
    "[{'a': {None: 2}}]": f"result[0].a has the key None of type NoneType{KEYS}",
    "{(1, 2): 3}": f"result has the key (1, 2) of type tuple{KEYS}",
    "10 ** 4300": "result is an integer of more than 4300 digits; use text, as hex(...) makes it",
    "__import__('datetime').date.min": f"result is of type date, {HELD} .isoformat()",
    "{'n': __import__('decimal').Decimal(1)}": f"result.n is of type Decimal, {HELD} "
    "str(...) or float(...)",
    "__import__('uuid').uuid4()": f"result is of type UUID, {HELD} str(...)",
    "object": f"result is of type type, {HELD} {PLAIN}",
    "(n for n in [1])": f"result is of type generator, {HELD} list(...)",
    "'\\ud800'": "result holds a lone surrogate, which is not a character; decode it another way",
    "{'\\ud800': 1}": "result has the key '\\ud800', which is not text; decode it another way",
}


@pytest.mark.parametrize("value", NO_JSON)
def test_what_is_no_json_is_refused_with_its_place(bench: Bench, value: str) -> None:
    error = {"kind": "result", "message": NO_JSON[value], "retryable": False}
    assert bench.error(f"result = {value}") == error


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "result = []\nresult.append(result)",
            "result[0] is a list that contains itself; break the circle",
        ),
        (
            "result = {'a': {}}\nresult['a']['b'] = result",
            "result.a.b is a dict that contains itself; break the circle",
        ),
        (
            "result = []\nfor _ in range(5000): result = [result]",
            "result is nested too deeply; flatten it",
        ),
    ],
)
def test_circles_and_towers_are_refused(bench: Bench, code: str, message: str) -> None:
    assert bench.error(code)["message"] == message


def test_what_is_too_deep_for_the_worker_alone_is_refused(bench: Bench) -> None:
    tower = "result = []\nfor _ in range(3000): result = [result]"
    code = f"import sys\nsys.setrecursionlimit(100_000)\n{tower}"
    assert bench.error(code)["kind"] == "result"


def test_the_same_part_twice_is_no_circle(bench: Bench) -> None:
    assert bench.result("part = [1]\nresult = [part, part]") == [[1], [1]]


def test_an_exception_tells_the_lines_of_the_code_alone(bench: Bench) -> None:
    code = dedent(
        """\
        import json

        def read(text):
            return json.loads(text)

        result = read("[1")
        """
    )
    outcome = bench.run(code)
    message = "JSONDecodeError: Expecting ',' delimiter: line 1 column 3 (char 2)"
    assert outcome.error == {"kind": "python", "message": message, "retryable": False}
    assert outcome.block == {
        "exception_type": "JSONDecodeError",
        "traceback": dedent(
            f"""\
            Traceback (most recent call last):
              File "<code>", line 6, in <module>
                result = read("[1")
              File "<code>", line 4, in read
                return json.loads(text)
            {message}"""
        ),
    }


CAUSES = [
    ("from gone", "\nwhich caused:\n", "KeyError: 'a'"),
    ("", "\nthen:\n", "KeyError: 'a'"),
    ("from None", "", ""),
]


@pytest.mark.parametrize(("how", "between", "first"), CAUSES)
def test_causes_are_told_too(bench: Bench, how: str, between: str, first: str) -> None:
    code = f"try:\n    {{}}['a']\nexcept KeyError as gone:\n    raise ValueError('no a') {how}"
    block = bench.run(code).block or {}
    assert block["exception_type"] == "ValueError"
    assert block["traceback"].endswith("ValueError: no a")
    assert between in block["traceback"]
    assert (first in block["traceback"]) is True
    assert ("KeyError" in block["traceback"]) is bool(first)


@pytest.mark.parametrize(
    ("code", "message", "exception_type"),
    [
        ("x = 1\nx = = 2", "SyntaxError: invalid syntax (line 2)", "SyntaxError"),
        (
            "if True:\nx = 1",
            "IndentationError: expected an indented block after 'if' statement on line 1 (line 2)",
            "IndentationError",
        ),
        ("raise SystemExit(3)", "SystemExit: 3", "SystemExit"),
        ("raise SystemExit('no more')", "SystemExit: no more", "SystemExit"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", "KeyboardInterrupt"),
        (
            "class Odd(Exception):\n    def __str__(self): return 1\nraise Odd",
            "Odd: (its text cannot be shown)",
            "Odd",
        ),
        (
            "def main(a): pass",
            "TypeError: main() missing 1 required positional argument: 'a'",
            "TypeError",
        ),
        ("async def main(): raise ValueError('late')", "ValueError: late", "ValueError"),
        ("raise ValueError('\\ud800')", "ValueError: ?", "ValueError"),
        (
            "import numpy",
            "ModuleNotFoundError: No module named 'numpy'; let the task install it: libs: [numpy]",
            "ModuleNotFoundError",
        ),
        ("import noetl", "ModuleNotFoundError: No module named 'noetl'", "ModuleNotFoundError"),
        (
            "'\\0'\n\0",
            "SyntaxError: source code string cannot contain null bytes",
            "SyntaxError",
        ),
    ],
)
def test_exceptions(bench: Bench, code: str, message: str, exception_type: str) -> None:
    outcome = bench.run(code)
    assert outcome.error == {"kind": "python", "message": message, "retryable": False}
    assert (outcome.block or {})["exception_type"] == exception_type


def test_a_syntax_error_shows_its_line(bench: Bench) -> None:
    block = bench.run("a = 1\nb = = 2\n").block or {}
    assert '  File "<code>", line 2, in <module>\n    b = = 2' in block["traceback"]


def test_lines_are_counted_as_python_counts_them(bench: Bench) -> None:
    block = bench.run("a = '\u2028\x0c'\nb = 1 / 0\n").block or {}
    assert '  File "<code>", line 2, in <module>\n    b = 1 / 0\n' in block["traceback"]


def test_a_deep_recursion_is_told_briefly(bench: Bench) -> None:
    outcome = bench.run("def down(): down()\ndown()")
    traceback = (outcome.block or {})["traceback"]
    assert (outcome.block or {})["exception_type"] == "RecursionError"
    assert traceback.count("in down") == 19
    assert " more\n" in traceback


def test_a_long_message_is_cut(bench: Bench) -> None:
    assert len(bench.error("raise ValueError('x' * 1_000_000)")["message"]) == 8_192


def test_half_a_secret_is_in_no_message_that_is_cut(bench: Bench) -> None:
    KNOWN.add(SECRET)
    for before in (8_168, 8_175, 8_180, 8_191):
        code = f"raise ValueError('-' * {before - len('ValueError: ')} + secret)"
        outcome = bench.run(code, secret=SECRET)
        assert outcome.error is not None
        assert before < len(outcome.error["message"]) <= 8_192
        assert SECRET[:6] not in str(outcome)


def test_a_traceback_has_an_end(bench: Bench) -> None:
    block = bench.run("raise ValueError('xy\\n' * 200_000)").block
    assert block is not None
    assert 60_000 < len(block["traceback"]) < 70_000


def test_args_that_are_no_plain_values_are_refused(bench: Bench) -> None:
    assert bench.error("result = 1", a=object())["kind"] == "input"


def test_args_of_known_types_become_plain(bench: Bench) -> None:
    assert bench.result("result = a", a={"day": date(2026, 1, 2)}) == {"day": "2026-01-02"}
