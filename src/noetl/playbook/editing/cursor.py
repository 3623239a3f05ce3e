"""
Where in a playbook is the cursor, even while the text is half typed?

A mark is put in at the cursor, and the text is parsed as it will be once the line is complete: as
it stands, with a colon after the mark, or with everything closed that the line leaves open. Where
the rest of the text does not parse, the part above is enough, and at last the lines above that are
indented less.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from noetl.playbook.reader import below
from noetl.playbook.yaml_checks import UnreadableText
from noetl.playbook.yaml_text import Tree, read_yaml

MARK = "noetl0cursor0"
"""What no playbook holds, and what may be part of a key, a name and a text."""
BLANK = " \t"
_CLOSES = {"{": "}", "[": "]"}


class Within(NamedTuple):
    """One node on the way from the root to the cursor, and the key or index that leads on."""

    node: Node
    key: str | int


class Cursor(NamedTuple):
    """Where the cursor is in the document, and what the text is taken for."""

    tree: Tree
    whole: bool
    """Whether the tree is that of the whole text."""
    way: tuple[Within, ...]
    """From the root down; the last one leads to the key or the value at the cursor."""
    key: bool
    """Whether a key is at the cursor, or could be."""
    before: str
    """What the key or the value says before the cursor."""
    text: str
    """What it says as a whole."""
    same_line: bool
    """Whether a value stands on the line of its key: then it begins no block."""

    @property
    def flow(self) -> bool:
        """Whether a key is inside of braces."""
        around: Any = self.way[-1].node if self.way else None
        return self.key and bool(around.flow_style)

    @property
    def path(self) -> str:
        """As findings write it."""
        path = ""
        for _, key in self.way:
            path = f"{path}[{key}]" if isinstance(key, int) else below(path, key)
        return path.replace(MARK, "")


def cursor_at(text: str, line: int, column: int) -> Cursor | None:
    """The cursor before a character of a line, both counted from 0; None: no place of YAML."""
    for made, whole in _candidates(text.split("\n"), line, column):
        try:
            tree = read_yaml(made)
        except UnreadableText:
            continue
        found = _found(tree.root, ())
        if found is not None:
            return _cursor(tree, whole, *found)
    return None


def _candidates(lines: list[str], line: int, column: int) -> Iterator[tuple[str, bool]]:
    row = lines[line] if line < len(lines) else ""
    left, right = row[:column], row[column:].rstrip("\r")
    above, after = lines[:line], lines[line + 1 :]
    rows = (f"{left}{MARK}{right}", f"{left}{MARK}:", f"{left}{MARK}{_closers(left)}")
    for before, rest in ((above, after), (above, []), (_less_indented(above, left), [])):
        for made in rows:
            yield "\n".join([*before, made, *rest]), bool(rest) or not after


def _closers(left: str) -> str:
    """What a line leaves open: a template, a quote, mappings and lists within the line."""
    quote, opened, last = "", [], ":"
    for char in left:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'" and last in ":,[{-":
            quote = char
        elif char in _CLOSES and last in ":,[{-":
            opened.append(_CLOSES[char])
        elif opened and char == opened[-1]:
            opened.pop()
        last = last if char in BLANK else char
    open_template = left.rfind("{{") > left.rfind("}}")
    return (" }}" if quote and open_template else "") + quote + "".join(reversed(opened))


def _less_indented(above: list[str], left: str) -> list[str]:
    """The blocks that a line is in: the nearest lines above, each indented less than the next."""
    kept: list[str] = []
    room = _indent(left) + 1
    for row in reversed(above):
        opens = row.lstrip().startswith("- ") or row.rstrip().endswith(":")
        if opens and not row.lstrip().startswith("#") and _indent(row) < room:
            room = _indent(row)
            kept.append(row)
    return kept[::-1]


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip(BLANK))


def _found(node: Node, way: tuple[Within, ...]) -> tuple[tuple[Within, ...], Node, bool] | None:
    """The node with the mark, the way to it, and whether it is a key."""
    if type(node) is ScalarNode:
        return (way, node, False) if MARK in node.value else None
    if type(node) is SequenceNode:
        for number, child in enumerate(node.value):
            if found := _found(child, (*way, Within(node, number))):
                return found
    if type(node) is MappingNode:
        for key, child in node.value:
            if not isinstance(key.value, str):
                continue
            here = (*way, Within(node, key.value))
            if MARK in key.value:
                return here, key, True
            if found := _found(child, here):
                return found
    return None


def _cursor(tree: Tree, whole: bool, way: tuple[Within, ...], node: Node, key: bool) -> Cursor:
    before = node.value.partition(MARK)[0]
    same_line = False
    if way and not key and isinstance(way[-1].node, MappingNode):
        anchor = next(one for one, child in way[-1].node.value if child is node)
        same_line = anchor.start_mark.line == node.start_mark.line
    return Cursor(tree, whole, way, key, before, node.value.replace(MARK, ""), same_line)
