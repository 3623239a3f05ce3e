"""Parameters are bound before anybody parses, and nothing but the parameters is touched."""

from typing import Any

import pytest

from noetl.tools.quantum.circuits import bound, version_of
from noetl.tools.refusal import Refusal

TWO = "OPENQASM 2.0;\n"
THREE = "OPENQASM 3.0;\n"

BOUND: dict[str, tuple[str, dict[str, Any], str]] = {
    "a name alone": (f"{TWO}rx(a) q[0];", {"a": 0.5}, f"{TWO}rx(0.5) q[0];"),
    "within an expression": (f"{TWO}rx(2*a+pi) q[0];", {"a": 3}, f"{TWO}rx(2*3+pi) q[0];"),
    "negative and alone": (f"{TWO}u2(a, b) q;", {"a": -1, "b": -0.5}, f"{TWO}u2(-1, -0.5) q;"),
    "negative in an expression": (f"{TWO}rx(1-a) q;", {"a": -1}, f"{TWO}rx(1-(-1)) q;"),
    "a gate of the same name stays": (f"{TWO}x q; rx(x) q;", {"x": 1}, f"{TWO}x q; rx(1) q;"),
    "comments stay": (f"{TWO}// rx(a)\nrx(a) q;", {"a": 1}, f"{TWO}// rx(a)\nrx(1) q;"),
    "a gate's own parameter stays": (
        f"{TWO}gate g(a) q {{ rx(a) q; }}\ng(a) q;",
        {"a": 1},
        f"{TWO}gate g(a) q {{ rx(a) q; }}\ng(1) q;",
    ),
    "part of a name is not a name": (f"{TWO}rx(a1+a) q;", {"a": 1}, f"{TWO}rx(a1+1) q;"),
    "an exponent is not a name": (f"{TWO}rx(1e5+e5) q;", {"e5": 1}, f"{TWO}rx(1e5+1) q;"),
    "declared": (f"{THREE}input float a;\nrx(a) q;", {"a": 1.5}, f"{THREE}\nrx(1.5) q;"),
    "a whole number where a real one is declared": (
        f"{THREE}input float[64] a;\nrx(a) q;",
        {"a": -2},
        f"{THREE}\nrx(-2.0) q;",
    ),
    "declared over two lines": (
        f"{THREE}input float[64]\n  a;\nrx(a) q;",
        {"a": 1.5},
        f"{THREE}\n\nrx(1.5) q;",
    ),
    "declared and outside of brackets": (
        f"{THREE}input int n;\nfor int i in [0:n] {{ }}",
        {"n": 4},
        f"{THREE}\nfor int i in [0:4] {{ }}",
    ),
    "a boolean": (f"{THREE}input bool b;\nif (b) {{ }}", {"b": True}, f"{THREE}\nif (true) {{ }}"),
    "a boolean in the older language": (f"{TWO}rx(b) q;", {"b": True}, f"{TWO}rx(1) q;"),
    "without parameters": (f"{TWO}rx(pi) q;", {}, f"{TWO}rx(pi) q;"),
    "a library": (f'{TWO}include "qelib1.inc";', {}, f'{TWO}include "qelib1.inc";'),
}


@pytest.mark.parametrize("case", BOUND)
def test_parameters_are_bound(case: str) -> None:
    circuit, parameters, expected = BOUND[case]
    assert bound(circuit, parameters) == expected


REFUSED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "an unknown name": (TWO, {"a": 1}, "input", "has no parameter 'a'"),
    "not declared": (f"{THREE}rx(a) q;", {"a": 1}, "input", "has no parameter 'a'"),
    "without a value": (f"{THREE}input float a;", {}, "input", "input 'a' (line 2) has no value"),
    "text": (f"{TWO}rx(a) q;", {"a": "1"}, "input", "parameters.a is '1'; expected a number"),
    "infinite": (f"{TWO}rx(a) q;", {"a": float("inf")}, "input", "expected a number"),
    "a file": (f'{TWO}include "/etc/passwd";', {}, "quantum", "includes '/etc/passwd' (line 2)"),
    "no version": ("qreg q[1];", {}, "quantum", "does not begin with a version (line 1)"),
    "nothing": ("", {}, "quantum", "expected OpenQASM 2 or 3"),
    "another version": ("OPENQASM 4.0;", {}, "quantum", "is in OpenQASM 4; expected 2 or 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_bound_is_refused(case: str) -> None:
    circuit, parameters, kind, words = REFUSED[case]
    with pytest.raises(Refusal) as refusal:
        bound(circuit, parameters)
    error = refusal.value.outcome.error
    assert error is not None
    assert (error["kind"], error["retryable"]) == (kind, False)
    assert words in error["message"]


@pytest.mark.parametrize(
    ("text", "version"),
    [("OPENQASM 2.0;", 2), ("OPENQASM 3;", 3), ("// a\n/* b\n */ OPENQASM 3.1 ;", 3)],
)
def test_the_first_statement_names_the_language(text: str, version: int) -> None:
    assert version_of(text) == version
