"""
How does Python code get a result that it reads in its former shape? (DIA-UP)

Where every read is seen, the code is changed: `rows.get('command_0', {}).get('rows')` → `rows`.
Where the code does more with the value (asks for its type, hands it on), the code stays and the
argument gets the former shape instead: either way it reads what it read before.
"""

import ast
from typing import Final, NamedTuple

from noetl.playbook.dialects.code import LookupChain, PythonCode, Replacement
from noetl.playbook.dialects.former_results import NUMBERED, SQL, Source, reading, statements_in

_HTTP: Final = {"status_code": "status", "body": "data"}
_ROOT: Final = "{0}"


class Shaped(NamedTuple):
    """The form of an argument, with the root of the result in it, and the code that reads it."""

    form: str
    code: str
    reason: str = ""
    line: int = 0
    """Why nothing fits, and the line of the code that shows it."""


def shaped(source: Source, name: str, code: PythonCode) -> Shaped:
    """How the argument `name` is handed to the code, if it is the whole result of `source`."""
    if source.listed:
        return _listed(source, name, code)
    if source.kind == "http":
        return _http(name, code)
    if source.kind in SQL:
        return _sql(source, name, code)
    return Shaped(reading(source, ()).form, code.text)


def _http(name: str, code: PythonCode) -> Shaped:
    """Two keys have other names; a key that is not read needs none."""
    wanted = [node for node in _read_texts(code) if node.value in _HTTP]
    if not wanted:
        return Shaped(_ROOT, code.text)
    seen = {
        id(key): _HTTP[link.key]
        for chain in code.chains(name)
        for number, link in enumerate(chain.links)
        if link.key in _HTTP and number == 0 and (key := _key_node(link.node)) is not None
    }
    if code.bindings(name) or any(id(node) not in seen for node in wanted):
        keys = "'status_code': {0}.status, 'headers': {0}.headers, 'data': {0}.data"
        more = ", 'body': {0}.data" if any(node.value == "body" for node in wanted) else ""
        return Shaped(f"{{{{{keys}{more}}}}}", code.text)
    changes = [(*_inside(code, node), seen[id(node)]) for node in wanted]
    return Shaped(_ROOT, code.spliced(changes))


def _read_texts(code: PythonCode) -> list[ast.Constant]:
    """Constant texts that are no keys of a mapping which the code itself writes."""
    own = {
        id(key) for node in ast.walk(code.tree) if isinstance(node, ast.Dict) for key in node.keys
    }
    return [
        node
        for node in ast.walk(code.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in own
    ]


def _key_node(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Subscript):
        return node.slice
    return node.args[0] if isinstance(node, ast.Call) else None


def _inside(code: PythonCode, node: ast.Constant) -> tuple[int, int]:
    """The place of a text between its quotes."""
    start, end = code.span(node)
    quote = len(code.text[start:end]) - len(code.text[start:end].lstrip("rRuUbBfF"))
    wide = 3 if code.text[start + quote : start + quote + 3] in ("'''", '"""') else 1
    return start + quote + wide, end - wide


def _listed(source: Source, name: str, code: PythonCode) -> Shaped:
    """A loop gives a list; what was around it is gone."""
    for chain in code.chains(name):
        below = reading(source, chain.keys)
        if below.reason:
            return Shaped(_ROOT, code.text, below.reason, chain.root.lineno)
    return Shaped(_ROOT, code.text)


def _sql(source: Source, name: str, code: PythonCode) -> Shaped:
    last = max(0, len(statements_in(source.task)) - 1)
    read = _read_texts(code)
    texts = {str(node.value) for node in read}
    numbered = [(node, found) for node in read if (found := NUMBERED.fullmatch(str(node.value)))]
    for node, found in numbered:
        if int(found.group(1)) != last:
            reason = reading(source, (str(node.value),)).reason
            return Shaped(_ROOT, code.text, reason, node.lineno)
    if not numbered and not texts & {"rows", "row_count"}:
        return Shaped(_ROOT, code.text)
    changes: list[Replacement] = []
    for chain in code.chains(name):
        below = reading(source, chain.keys)
        change = _change(name, code, chain, below.parts, below.form)
        if change is None or code.bindings(name):
            named = str(numbered[0][0].value) if numbered else ""
            return Shaped(_former(named, texts), code.text)
        changes.append(change)
    return Shaped(_ROOT, code.spliced(changes))


def _change(
    name: str, code: PythonCode, chain: LookupChain, parts: int, form: str
) -> Replacement | None:
    new = {_ROOT: name, "({0} | length)": f"len({name})", "{0}.rowcount": f"{name}['rowcount']"}
    if not parts or form not in new:
        return None
    start, end = code.span(chain.root)[0], code.span(chain.links[parts - 1].node)[1]
    return start, end, new[form]


def _former(named: str, texts: set[str]) -> str:
    """The mapping that a result was, with those of its keys that the code names."""
    keys = [f"'{key}': {{0}}" for key in ("rows", "result") if key in texts or key == "rows"]
    keys += ["'row_count': {0} | length"] if "row_count" in texts else []
    inner = f"'{named}': {{{{{', '.join(keys)}}}}}" if named else ", ".join(keys)
    outer = f"{inner}, 'data': {{{{{inner}}}}}" if "data" in texts else inner
    return f"{{{{{outer}}}}}"
