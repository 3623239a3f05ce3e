"""The text of a circuit before anybody parses it: its language, its includes, its parameters."""

import math
import re
from collections.abc import Mapping
from typing import Any

from noetl.tools.refusal import Refusal

TOKEN = re.compile(
    r"""
    (?P<skip> //[^\n]* | /\*.*?\*/ | \bgate\b[^{;]*\{[^}]*\} )
  | \binclude\s*"(?P<include>[^"\n]*)"
  | (?P<input> \binput\s+(?P<type>\w+)[^;]*?(?P<declared>[A-Za-z_]\w*)\s*; )
  | (?P<text> "[^"\n]*" )
  | (?P<number> \.?\d[\w.]* )
  | (?P<name> [A-Za-z_]\w* )
  | (?P<bracket> [()] )
    """,
    re.VERBOSE | re.DOTALL,
)
"""A gate's body sees its own parameters alone, in either language, and is passed over."""
VERSION = re.compile(r"(?:\s|//[^\n]*\n|/\*.*?\*/)*OPENQASM\s+(\d+)(?:\.\d+)?\s*;", re.DOTALL)
REAL = frozenset({"float", "angle"})
LIBRARIES = frozenset({"qelib1.inc", "stdgates.inc"})
"""What may be included; any other name would read a file of the worker."""


def version_of(circuit: str) -> int:
    """2 or 3, the languages there are."""
    found = VERSION.match(circuit)
    if found is None:
        says = "the circuit does not begin with a version"
        expected = "expected OpenQASM 2 or 3: 'OPENQASM 2.0;' or 'OPENQASM 3.0;'"
        raise Refusal("quantum", f"{says} (line 1); {expected}", line=1, column=1)
    version = int(found[1])
    if version not in (2, 3):
        says = f"the circuit is in OpenQASM {found[1]}; expected 2 or 3"
        raise Refusal("quantum", says, line=circuit[: found.start(1)].count("\n") + 1, column=1)
    return version


def bound(circuit: str, parameters: Mapping[str, Any]) -> str:
    """
    The circuit with the values of its parameters in it, line for line as it was.

    OpenQASM 3 declares parameters (`input float theta;`). OpenQASM 2 has none: there a name
    between the brackets of a gate that `parameters` holds is one.
    """
    version = version_of(circuit)
    values = {name: written(name, value, version) for name, value in parameters.items()}
    binding = Binding(values, declares=version == 3)
    text = TOKEN.sub(binding.replaced, circuit)
    unknown = [name for name in values if name not in binding.used]
    if unknown:
        raise Refusal("input", f"the circuit has no parameter '{unknown[0]}'; see 'parameters'")
    return text


class Binding:
    """Walks once over the tokens of a circuit."""

    def __init__(self, values: Mapping[str, str], *, declares: bool) -> None:
        self._values = dict(values)
        self._declares = declares
        self._declared: set[str] = set()
        self._depth = 0
        self.used: set[str] = set()

    def replaced(self, token: re.Match[str]) -> str:
        whole = token[0]
        match token.lastgroup:
            case "include":
                return self._included(token)
            case "input":
                return self._input(token)
            case "bracket":
                self._depth += 1 if whole == "(" else -1
            case "name" if whole in self._values and self._free(whole):
                self.used.add(whole)
                return alone_or_in_brackets(self._values[whole], token)
        return whole

    def _free(self, name: str) -> bool:
        return name in self._declared if self._declares else self._depth > 0

    def _included(self, token: re.Match[str]) -> str:
        if token["include"] not in LIBRARIES:
            says = f"the circuit includes '{token['include']}' (line {line_of(token)})"
            known = " and ".join(sorted(LIBRARIES))
            raise Refusal("quantum", f"{says}; only {known} can be", line=line_of(token), column=1)
        return token[0]

    def _input(self, token: re.Match[str]) -> str:
        if not self._declares:
            return token[0]
        name = token["declared"]
        if name not in self._values:
            says = f"the circuit's input '{name}' (line {line_of(token)}) has no value"
            raise Refusal("input", f"{says}; give it one in 'parameters'")
        self._declared.add(name)
        self.used.add(name)
        if token["type"] in REAL and self._values[name].lstrip("-").isdigit():
            self._values[name] += ".0"
        return "\n" * token[0].count("\n")


def alone_or_in_brackets(value: str, token: re.Match[str]) -> str:
    """A negative number within an expression needs brackets."""
    before = token.string[max(0, token.start() - 80) : token.start()].rstrip()[-1:]
    after = token.string[token.end() : token.end() + 80].lstrip()[:1]
    alone = before in ("(", ",") and after in (")", ",")
    return value if alone or not value.startswith("-") else f"({value})"


def written(name: str, value: Any, version: int) -> str:
    """A value as the language spells it."""
    if isinstance(value, bool):
        return str(value).lower() if version == 3 else str(int(value))
    if isinstance(value, int | float) and math.isfinite(value):
        return repr(value)
    raise Refusal("input", f"parameters.{name} is {value!r}; expected a number")


def line_of(token: re.Match[str]) -> int:
    return token.string.count("\n", 0, token.start()) + 1
