"""From a tree back to YAML text, with the way from each new line to the old one (DIA)."""

from typing import NamedTuple

from noetl.playbook.dialects.spelling import spelled
from noetl.playbook.dialects.tree import (
    Collection,
    Document,
    Manners,
    Mapping,
    Node,
    Scalar,
    TreeSlot,
)

WIDEST_FLOW = 88
_FLOW_SIGNS = frozenset(",[]{}")


class Written(NamedTuple):
    """A text, the source line of each of its lines, and the new line of each slot."""

    text: str
    origins: list[int]
    places: dict[int, int]
    """Identity of a slot → its line, from 1."""


def write_tree(document: Document) -> Written:
    """The text of a document."""
    writing = _Writing(document.manners)
    for line in document.head:
        writing.line(line, 1)
    root = document.root
    if isinstance(root, Scalar) or root.flow:
        writing.value("", TreeSlot(root, gap="", line=1), 0)
        if not isinstance(root, Scalar):
            writing.comments(root.tail, 0, 1)
    else:
        writing.block(root, 0)
    text = document.ending.join(writing.lines)
    if document.last_newline:
        text += document.ending
    return Written(text, writing.origins, writing.places)


class _Writing:
    def __init__(self, manners: Manners) -> None:
        self.manners = manners
        self.lines: list[str] = []
        self.origins: list[int] = []
        self.places: dict[int, int] = {}
        self.origin = 1

    def line(self, text: str, origin: int) -> None:
        """One line; what is new stands where the line before it stood."""
        self.origin = origin or self.origin
        self.lines.append(text)
        self.origins.append(self.origin)

    def comments(self, comments: list[str], column: int, origin: int) -> None:
        for comment in comments:
            self.line(" " * column + comment if comment else "", origin)

    def block(self, node: Collection, column: int, lead: str | None = None) -> None:
        """The slots of a block collection; `lead` stands before the first instead of blanks."""
        for slot in node.slots:
            if lead is None:
                self.comments(slot.before, column, slot.line)
            start = " " * column if lead is None else lead
            lead = None
            self.places[id(slot)] = len(self.lines) + 1
            if isinstance(node, Mapping):
                self.value(f"{start}{slot.key_text}:", slot, column)
            else:
                self.element(start, slot, column)
        self.comments(node.tail, column, 0)

    def element(self, start: str, slot: TreeSlot, column: int) -> None:
        """One element of a list; a collection inside begins on the line of its dash."""
        node = opened(slot.node)
        if node is None or node.prefix or slot.beside:
            self.value(f"{start}-", slot, column)
            return
        indent = max(2, node.indent or 2)
        if node.slots[0].before:
            self.comments(node.slots[0].before, len(start), slot.line)
            self.places[id(slot)] = len(self.lines) + 1
        self.block(node, column + indent, f"{start}-{' ' * (indent - 1)}")

    def value(self, start: str, slot: TreeSlot, column: int) -> None:
        """What stands after a key or a dash."""
        node = slot.node
        inside = opened(node)
        if inside is not None:
            self.line(f"{start} {inside.prefix}".rstrip() + slot.beside, slot.line)
            self.block(inside, column + self.indent_of(inside, slot))
            return
        first, *more = (
            node.lines if isinstance(node, Scalar) else flow_lines(node, self.manners.room)
        )
        text = f"{node.prefix}{first}"
        head = f"{start}{slot.gap or ' '}{text}" if text and start else f"{start}{text}"
        # A comment beside a block text stands in its first line already.
        block = isinstance(node, Scalar) and node.style in ("|", ">")
        self.line(head if more else head + slot.beside, node.line or slot.line)
        for number, line in enumerate(more, 1):
            last = number == len(more) and not block
            shown = f"{' ' * column}{line}" if line else ""
            origin = node.line + number if node.line else 0
            self.line(shown + (slot.beside if last else ""), origin)

    def indent_of(self, node: Collection, slot: TreeSlot) -> int:
        """A list may stand below its key without indent, a mapping may not."""
        if isinstance(node, Mapping):
            return max(2, node.indent)
        if slot.key is None:
            return max(2, node.indent or 2)
        return self.manners.list_indent if node.indent is None else node.indent


def opened(node: Node) -> Collection | None:
    """The collection, if it is written in block style, below its key."""
    if isinstance(node, Scalar) or not node.slots:
        return None
    if not node.flow:
        return node
    shown = flow_text(node)
    if shown == node.fresh:
        return None
    too_much = len(shown) > WIDEST_FLOW or "\n" in shown or _has_comments(node)
    return node if too_much else None


def _has_comments(node: Node) -> bool:
    if isinstance(node, Scalar):
        return False
    return any(slot.before or slot.beside or _has_comments(slot.node) for slot in node.slots)


def flow_lines(node: Collection, room: str) -> list[str]:
    """A flow collection as it was, or anew where it has changed."""
    return node.raw if node.raw and flow_text(node) == node.fresh else [flow_text(node, room)]


def flow_text(node: Node, room: str = " ", *, known: bool = False) -> str:
    """
    A node in flow style, in one line; a line break in it says that it does not fit.

    `known`: what is inside has not changed since it was read, and need not be put together again.
    """
    if isinstance(node, Scalar):
        return node.prefix + _flow_scalar(node)
    if known and node.fresh:
        return node.fresh
    inside = [flow_text(slot.node, room, known=known) for slot in node.slots]
    if not isinstance(node, Mapping):
        return f"{node.prefix}[{', '.join(inside)}]"
    keys = [slot.key_text for slot in node.slots]
    pairs = [f"{key}: {text}".rstrip(" ") for key, text in zip(keys, inside, strict=True)]
    return f"{node.prefix}{{{room}{', '.join(pairs)}{room}}}" if pairs else f"{node.prefix}{{}}"


def _flow_scalar(node: Scalar) -> str:
    if node.style in ("|", ">"):
        return "\n"
    if node.style == "" and isinstance(node.value, str) and _FLOW_SIGNS & set(node.value):
        return spelled(node.value)
    return " ".join(line.strip() for line in node.lines)
