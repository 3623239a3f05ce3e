"""
What does embedded Python read, and how does its text look with some of that replaced? (DIA-UP)

The syntax tree decides, the text is spliced: everything that does not change stays as it was.
"""

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import NamedTuple

from noetl.expression.syntax import is_template

_BRACES = re.compile(r"\{\{|\}\}|\{%|%\}|\{#")
Replacement = tuple[int, int, str]
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class ChainKey(NamedTuple):
    """One key of a chain: `.get('rows', [])` or `['rows']`, with the default it names."""

    key: str
    node: ast.expr
    default: ast.expr | None


class LookupChain(NamedTuple):
    """A name and the constant keys that are read below it."""

    root: ast.Name
    links: tuple[ChainKey, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(link.key for link in self.links)


class PythonCode:
    """A text of Python that parses, and where its parts stand."""

    def __init__(self, text: str, tree: ast.Module) -> None:
        self.text, self.tree = text, tree
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._parents = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }

    def at(self, line: int, column: int) -> int:
        """The place in the text; the tree counts columns in bytes."""
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return self._starts[line - 1] + len(text.encode()[:column].decode(errors="ignore"))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.at(node.lineno, node.col_offset), self.at(end_line, end_column)

    def source(self, node: ast.expr) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def uses(self, name: str) -> list[ast.Name]:
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        ]

    def chain(self, root: ast.Name) -> LookupChain:
        """The keys read below one use of a name, as far as they are constant."""
        links: list[ChainKey] = []
        node: ast.expr = root
        while (link := self._link(node)) is not None:
            links.append(link)
            node = link.node
        return LookupChain(root, tuple(links))

    def _link(self, node: ast.expr) -> ChainKey | None:
        above = self._parents.get(node)
        if isinstance(above, ast.Subscript) and above.value is node:
            key = _constant(above.slice)
            read = isinstance(above.ctx, ast.Load)
            return ChainKey(key, above, None) if key is not None and read else None
        if not isinstance(above, ast.Attribute) or above.attr != "get":
            return None
        call = self._parents.get(above)
        if not isinstance(call, ast.Call) or call.func is not above or call.keywords:
            return None
        key = _constant(call.args[0]) if 1 <= len(call.args) <= 2 else None
        default = call.args[1] if len(call.args) == 2 else None
        return None if key is None else ChainKey(key, call, default)

    def chains(self, name: str) -> list[LookupChain]:
        return [self.chain(root) for root in self.uses(name)]

    def bindings(self, name: str) -> list[int]:
        """Where a name is bound: assigned, imported, defined, taken as an argument."""
        return sorted(
            getattr(node, "lineno", 1) for node in ast.walk(self.tree) if name in _bound_by(node)
        )

    @cached_property
    def comments(self) -> list[tuple[int, int]]:
        """Where the comments stand."""
        found: list[tuple[int, int]] = []
        try:
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
                if token.type == tokenize.COMMENT:
                    start = self._starts[token.start[0] - 1] + token.start[1]
                    found.append((start, start + len(token.string)))
        except (tokenize.TokenError, IndentationError):
            return []
        return found

    @property
    def is_template(self) -> bool:
        """Whether a template stands in it that is no comment."""
        return is_template(self.spliced([(*span, "") for span in self.comments]))

    @property
    def quiet(self) -> str:
        """The code without templates in its comments: those were never meant to be read."""
        return self.spliced(
            [
                (start, end, _BRACES.sub(lambda two: " ".join(two[0]), self.text[start:end]))
                for start, end in self.comments
            ]
        )

    def texts(self) -> set[str]:
        """Every constant text."""
        found = (node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant))
        return {value for value in found if isinstance(value, str)}

    def assigned_at(self, chain: LookupChain) -> ast.Assign | None:
        """The statement `key = name.get('key')` of the module that is this chain and no more."""
        above = self._parents.get(chain.links[-1].node) if len(chain.links) == 1 else None
        if not isinstance(above, ast.Assign) or above not in self.tree.body:
            return None
        target = above.targets[0] if len(above.targets) == 1 else None
        named = isinstance(target, ast.Name) and target.id == chain.links[0].key
        return above if named else None

    def line_span(self, node: ast.stmt) -> tuple[int, int] | None:
        """The whole lines of a statement, if it has them for itself."""
        start, end = self.span(node)
        last = self._starts[min(node.end_lineno or node.lineno, len(self._lines))]
        before, after = self.text[self._starts[node.lineno - 1] : start], self.text[end:last]
        alone = not before.strip() and not after.strip()  # a comment stays, with its line
        return (self._starts[node.lineno - 1], last) if alone and len(self.tree.body) > 1 else None

    def spliced(self, changes: Iterable[Replacement]) -> str:
        parts: list[str] = []
        at = 0
        for start, end, new in sorted(changes):
            parts += (self.text[at:start], new)
            at = end
        return "".join((*parts, self.text[at:]))


@lru_cache(maxsize=1024)
def read_code(text: str) -> PythonCode | None:
    """The code, or None where it is no Python (the run says so)."""
    try:
        return PythonCode(text, _tree(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _tree(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SystemError:  # the interpreter keeps one depth for all threads that make trees at once
        return ast.parse(text)


def _constant(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _bound_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.arg):
        return {node.arg}
    if isinstance(node, ast.alias):
        return {(node.asname or node.name).split(".")[0]}
    if isinstance(node, ast.ExceptHandler) and node.name:
        return {node.name}
    return set()


# ── names that stand for all arguments ──


class Through(NamedTuple):
    """The code with `name.get('key')` read as `key`, and the keys with their defaults."""

    text: str
    keys: dict[str, ast.expr | None]


def read_through(code: PythonCode, name: str, given: Mapping[str, object] | None) -> Through | None:
    """
    Reads through a mapping of all arguments as plain names, where that means the same.

    A key that is not among `given` becomes its default; None gives every key. None is the answer
    where the mapping is used as a whole, or a name of its keys is bound to something else.
    """
    chains = code.chains(name)
    if not chains or code.bindings(name) or not all(chain.links for chain in chains):
        return None
    keys: dict[str, ast.expr | None] = {}
    changes: list[Replacement] = []
    for chain in chains:
        link = chain.links[0]
        own = code.assigned_at(chain)
        if not _is_free(code, link.key, own, len([c for c in chains if c.keys[0] == link.key])):
            return None
        if given is not None and link.key not in given:
            new = "None" if link.default is None else code.source(link.default)
            changes.append((*code.span(link.node), new))
            continue
        keys.setdefault(link.key, link.default)
        lines = code.line_span(own) if own is not None else None
        changes.append((*(lines or code.span(link.node)), "" if lines else link.key))
    return Through(code.spliced(changes), keys)


def _is_free(code: PythonCode, key: str, own: ast.Assign | None, reads: int) -> bool:
    """Whether `key` means the argument at this place."""
    if not key.isidentifier() or keyword.iskeyword(key):
        return False
    bound = code.bindings(key)
    if own is None:
        return not bound
    return reads == 1 and bound[0] == own.lineno


# ── `return` outside of functions ──


def returns_of(body: Iterable[ast.AST]) -> Iterator[ast.Return]:
    """The `return` statements that belong to no function."""
    for node in body:
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, _SCOPES):
            yield from returns_of(ast.iter_child_nodes(node))


def without_return(code: PythonCode, args: Iterable[str]) -> str | None:
    """
    The code with its `return` outside of functions made legal, or None where that is impossible.

    A single one at the end sets `result`; with others the code becomes the body of `main`.
    """
    body = code.tree.body
    found = list(returns_of(body))
    if found == [body[-1]]:
        start, _ = code.span(found[0])
        value = "result =" if found[0].value is not None else "result = None"
        return code.spliced([(start, start + len("return"), value)])
    if any(_only_in_modules(node) for node in ast.walk(code.tree)):
        return None
    return _as_main(code, list(args))


def _only_in_modules(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "__future__" or any(one.name == "*" for one in node.names)
    return isinstance(node, ast.Global)


def _as_main(code: PythonCode, args: list[str]) -> str:
    taken = [name for name in args if code.uses(name) or code.bindings(name)]
    inside = _lines_inside_texts(code.tree)
    lines = [f"def main({', '.join(taken)}):"]
    ends = isinstance(code.tree.body[-1], ast.Return | ast.Raise)
    keeps_result = bool(code.bindings("result")) and not ends
    if keeps_result and "result" not in taken:
        lines.append("    result = None")
    for number, line in enumerate(code.text.rstrip("\n").split("\n"), 1):
        lines.append(f"    {line}" if line.strip() and number not in inside else line)
    if keeps_result:
        lines.append("    return result")
    return "\n".join(lines) + "\n"


def _lines_inside_texts(tree: ast.Module) -> set[int]:
    """Lines whose beginning belongs to a text of several lines, which an indent would change."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for line in range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
    }


# ── what a code gives ──


def keys_of_result(code: PythonCode) -> tuple[set[str], set[str]] | None:
    """Keys that every result has, and those that some has; None where that is not written down."""
    found = [_keys_of(value) for value in _results(code.tree)]
    known = [keys for keys in found if keys is not None]
    if not found or len(known) < len(found):
        return None
    return set.intersection(*known), set.union(*known)


def _results(tree: ast.Module) -> Iterator[ast.expr | None]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == "result":
                    yield node.value
                elif _writes_into_result(target):
                    yield None
        elif isinstance(node, ast.FunctionDef) and node.name == "main":
            yield from (one.value for one in returns_of(node.body))
    yield from (one.value for one in returns_of(tree.body))


def _writes_into_result(target: ast.expr) -> bool:
    return (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id == "result"
    )


def _keys_of(value: ast.expr | None) -> set[str] | None:
    if not isinstance(value, ast.Dict):
        return None
    keys = {_constant(key) if key is not None else None for key in value.keys}
    return None if None in keys else {key for key in keys if key is not None}
