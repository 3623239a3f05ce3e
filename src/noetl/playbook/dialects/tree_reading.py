"""From a YAML text to a tree that keeps comments, order and spelling (DIA)."""

import re
from collections import Counter
from operator import itemgetter
from typing import Any

import yaml
from yaml.nodes import ScalarNode

from noetl.playbook.dialects.tree import (
    Collection,
    Document,
    Manners,
    Mapping,
    Node,
    Scalar,
    Sequence,
    TreeSlot,
    plain,
)
from noetl.playbook.dialects.tree_writing import flow_text
from noetl.playbook.reader import below
from noetl.playbook.yaml_text import PLAIN, TEXT, Tree

_BLOCKS = ("|", ">")
_BRACE = re.compile(r"(?<!\{)\{ ?(?=[\w\"'])")


def read_tree(tree: Tree) -> Document:
    """The document of a text that the loader could read, and whose keys are plain text."""
    return _Reading(tree).document()


class _Reading:
    """Walks the parser's events beside the text; what lies between two events is comment."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.ending = "\r\n" if "\r\n" in tree.text else "\n"
        self.text = tree.text.replace("\r\n", "\n")
        self.events = iter(yaml.parse(self.text, Loader=yaml.CSafeLoader))
        self.at = 0
        self.event: Any = None
        self.owner: TreeSlot | None = None
        self.anchors: dict[str, Node] = {}
        self.indents: Counter[int] = Counter()
        self.pending: list[tuple[int, str]] = []
        self.closed: list[tuple[int, Collection]] = []

    def document(self) -> Document:
        self.step()
        self.step()
        self.step()
        head = self.head()
        root = self.node(TreeSlot(Scalar(None, [""])), 0, "")
        rest = self.text[self.at :]
        self.between(rest if rest.endswith("\n") or not rest else rest + "\n")
        above = self.take(-1)
        if isinstance(root, Scalar) or root.flow:
            head += above
        return Document(root, head, self.manners(), self.ending, self.text.endswith("\n"))

    def manners(self) -> Manners:
        """The author's ways, by the majority."""
        indent, _ = max(self.indents.items(), key=itemgetter(1), default=(2, 0))
        braces = Counter(_BRACE.findall(self.text))
        return Manners(indent, "" if braces["{"] > braces["{ "] else " ")

    def step(self) -> None:
        self.event = next(self.events)

    def head(self) -> list[str]:
        """Lines above the root that are no comments: `---` and directives."""
        above = self.text[: self.event.start_mark.index]
        lines = above.split("\n")
        marks = [n for n, line in enumerate(lines) if line.startswith(("---", "%"))]
        if not marks:
            return []
        end = marks[-1] + 1
        if end == len(lines):  # the root begins on the line of the mark
            self.at = self.event.start_mark.index
            return [*lines[:-1], lines[-1].rstrip()]
        self.at = len("\n".join(lines[:end])) + 1
        return lines[:end]

    # ── what stands between two events ──

    def between(self, gap: str) -> None:
        """The rest of the present line to its owner, whole lines of comment to what follows."""
        first, *more = gap.split("\n")
        if self.owner is not None and "#" in first:
            before, _, comment = first.partition("#")
            room = before[len(before.rstrip()) :] or "  "
            self.owner.beside = f"{room}#{comment}"
        elif "#" in first:
            self.pending.append((0, first[first.index("#") :]))
        elif self.owner is None and more:
            self.pending.append((0, ""))
        for line in more[:-1]:
            start = line.find("#")
            if start >= 0:
                self.pending.append((start, line[start:].rstrip()))
            elif not line.strip():
                self.pending.append((0, ""))

    def advance(self) -> None:
        """Up to the present event, which begins here."""
        self.between(self.text[self.at : self.event.start_mark.index])
        self.at = self.event.start_mark.index

    def take(self, column: int) -> list[str]:
        """The pending comments, for a slot at `column`; deeper ones go to what was closed."""
        comments = self.pending
        self.pending = []
        for number in reversed(range(len(comments))):  # a blank line goes with what follows it
            at, text = comments[number]
            follows = comments[number + 1][0] if number + 1 < len(comments) else max(column, 0)
            comments[number] = (at if text else follows, text)
        deep = next((n for n, (at, _) in enumerate(comments) if at <= column), len(comments))
        deep = deep if self.closed else 0
        for at, text in comments[:deep]:
            within, collection = self.home(at)
            collection.tail.append(" " * max(0, at - within) + text if text else "")
        self.closed = []
        own = max(column, 0)
        return [" " * max(0, at - own) + text if text else "" for at, text in comments[deep:]]

    def home(self, column: int) -> tuple[int, Collection]:
        """The deepest of the closed collections that a comment at `column` can belong to."""
        return next((one for one in self.closed if one[0] <= column), self.closed[-1])

    # ── nodes ──

    def node(self, slot: TreeSlot, column: int, path: str) -> Node:
        """The node of the present event; steps beyond its last one."""
        event = self.event
        if isinstance(event, yaml.MappingStartEvent):
            return self.collection(Mapping(), slot, column, path)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.collection(Sequence(), slot, column, path)
        self.advance()
        if self.pending and slot.path:
            slot.before += self.take(column)
        if isinstance(event, yaml.AliasEvent):
            node: Node = self.alias(event)
        else:
            node = self.scalar(event, column)
        self.step()
        return node

    def alias(self, event: Any) -> Scalar:
        self.at = event.end_mark.index
        target = self.anchors.get(event.anchor)
        value = plain(target) if target is not None else None
        return Scalar(value, [f"*{event.anchor}"], "*", "", event.start_mark.line + 1)

    def scalar(self, event: Any, column: int) -> Scalar:
        start, end = event.start_mark.index, event.end_mark.index
        raw = self.text[start:end]
        if event.style in _BLOCKS:
            kept = raw.rstrip("\n") if "+" not in raw.split("\n", 1)[0] else raw.removesuffix("\n")
            raw = kept.rstrip(" ") if not kept.rstrip(" ").endswith("\n") else kept.rstrip()
        self.at = start + len(raw)
        prefix, raw = self.prefix(event, raw)
        lines = raw.split("\n")
        indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
        cut = min([column, *indents])
        tag = PLAIN if event.implicit[0] else event.tag or TEXT
        value = self.tree.value(ScalarNode(tag, event.value, event.start_mark, event.end_mark))
        made = Scalar(
            value,
            [lines[0], *(line[cut:] for line in lines[1:])],
            event.style or "",
            prefix,
            event.start_mark.line + 1,
        )
        self.anchored(event, made)
        return made

    def prefix(self, event: Any, raw: str) -> tuple[str, str]:
        """Anchor and tag, cut off the spelling."""
        words: list[str] = []
        while raw[:1] in ("&", "!") and (event.anchor or event.tag):
            word, _, rest = raw.partition(" ")
            words.append(word)
            raw = rest.lstrip(" ")
        return "".join(f"{word} " for word in words), raw

    def anchored(self, event: Any, node: Node) -> None:
        if event.anchor:
            self.anchors[event.anchor] = node

    def begin(self, made: Collection, slot: TreeSlot, column: int) -> int:
        """Open a collection; the column of its slots."""
        event = self.event
        self.advance()
        made.line = event.start_mark.line + 1
        made.flow = bool(event.flow_style)
        raw = self.text[event.start_mark.index : event.end_mark.index]
        made.prefix = self.prefix(event, raw)[0] if event.anchor or event.tag else ""
        self.at = (
            event.end_mark.index if made.flow else event.start_mark.index + len(raw.rstrip("-"))
        )
        self.anchored(event, made)
        self.step()
        if isinstance(self.event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            return column
        inner: int = self.event.start_mark.column
        if isinstance(made, Sequence) and not made.flow:
            inner = event.start_mark.column
            if made.prefix:
                inner = self.event.start_mark.column - 2
        made.indent = 2 if made.flow else inner - column
        if isinstance(made, Sequence) and slot.key is not None and not made.flow:
            self.indents[made.indent] += 1
        return inner

    def finish(self, made: Collection, start: int, slot: TreeSlot, column: int) -> None:
        """Close a collection at its end event."""
        if made.flow:
            self.advance()
            self.at = self.event.end_mark.index
            lines = self.text[start : self.at].split("\n")
            indents = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
            cut = min([column, *indents])
            made.raw = [lines[0], *(line[cut:] for line in lines[1:])]
            made.fresh = flow_text(made, known=True)
            self.owner = slot
        else:
            self.closed.append((column + (made.indent or 0), made))
        self.step()

    def collection(self, made: Collection, slot: TreeSlot, column: int, path: str) -> Collection:
        start = self.event.start_mark.index
        inner = self.begin(made, slot, column)
        start += len(made.prefix)
        while not isinstance(self.event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self.advance()
            entry = TreeSlot(Scalar(None, [""]), line=self.event.start_mark.line + 1)
            entry.path = f"{path}[{len(made.slots)}]"
            if not made.flow:
                entry.before = self.take(inner)
            if isinstance(made, Mapping):
                key = self.node(TreeSlot(Scalar(None, [""])), inner, "")
                assert isinstance(key, Scalar)
                entry.key, entry.key_text = str(key.value), key.prefix + "\n".join(key.lines)
                entry.path = below(path, entry.key)
                gap = self.text[self.at : self.event.start_mark.index]
                entry.gap = gap.partition(":")[2] if "\n" not in gap else " "
            self.owner = entry
            made.slots.append(entry)
            entry.node = self.node(entry, inner, entry.path)
        self.finish(made, start, slot, column)
        return made
