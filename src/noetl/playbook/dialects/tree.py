"""
A YAML text as a tree that can be changed and written again, everything untouched as it was.

Comments and blank lines belong to what stands below them, as people read them; a comment at the
end of a line to that line. Every part knows the line and the path that it had in the source.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from noetl.playbook.dialects.spelling import block_lines, spelled


@dataclass(eq=False, slots=True)
class Scalar:
    """One value. `lines` is its spelling; all but the first count their indent from the slot."""

    value: Any
    lines: list[str]
    style: str = ""
    prefix: str = ""
    """Anchor and tag, with the space after them."""
    line: int = 0


@dataclass(eq=False, slots=True)
class Branch:
    """Slots in order, and how they are written."""

    slots: list["TreeSlot"] = field(default_factory=list)
    flow: bool = False
    prefix: str = ""
    line: int = 0
    tail: list[str] = field(default_factory=list)
    """Comments after the last slot, at the collection's own indent."""
    raw: list[str] = field(default_factory=list)
    """The spelling of a flow collection in the source, good as long as `fresh` holds."""
    fresh: str = ""


@dataclass(eq=False, slots=True)
class Mapping(Branch):
    """Slots with keys."""

    indent: int = 2
    """Columns from the slot that holds it to its own."""

    def slot(self, key: str) -> "TreeSlot | None":
        for slot in self.slots:
            if slot.key == key:
                return slot
        return None

    def node(self, key: str) -> "Node | None":
        for slot in self.slots:
            if slot.key == key:
                return slot.node
        return None

    def mapping(self, key: str) -> "Mapping | None":
        node = self.node(key)
        return node if isinstance(node, Mapping) else None

    def sequence(self, key: str) -> "Sequence | None":
        node = self.node(key)
        return node if isinstance(node, Sequence) else None

    def text(self, key: str) -> str | None:
        """The text at `key`; None where there is none."""
        node = self.node(key)
        return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None

    def keys(self) -> list[str]:
        return [slot.key or "" for slot in self.slots]

    def __contains__(self, key: str) -> bool:
        return self.slot(key) is not None

    def place(self, key: str) -> int:
        """The number of a key's slot; the end where there is none."""
        return next((n for n, slot in enumerate(self.slots) if slot.key == key), len(self.slots))

    def pop(self, key: str) -> "TreeSlot | None":
        """Take a slot out, with its comments."""
        slot = self.slot(key)
        if slot is not None:
            self.slots.remove(slot)
        return slot

    def rename(self, old: str, new: str) -> None:
        slot = self.slot(old)
        if slot is not None:
            slot.key, slot.key_text = new, spelled(new)

    def put(
        self, key: str, value: Any, *, like: "TreeSlot | None" = None, at: int = -1
    ) -> "TreeSlot":
        """Set a key. `like` lends line, path and comments; `at` is where a new slot goes."""
        node = node_of(value, like.line if like else self.line)
        slot = self.slot(key)
        if slot is not None:
            slot.node = node
            return slot
        slot = TreeSlot(node, key=key, key_text=spelled(key), line=self.line)
        if like is not None:
            slot.line, slot.path = like.line, like.path
            slot.before, slot.beside, slot.gap = like.before, like.beside, like.gap
        self.slots.insert(len(self.slots) if at < 0 else at, slot)
        return slot

    def within(self, key: str, *, like: "TreeSlot | None" = None, at: int = -1) -> "Mapping":
        """The mapping at `key`, made where there is none."""
        found = self.mapping(key)
        if found is None:
            made = Mapping(line=like.line if like else self.line)
            slot = self.put(key, made, at=at)
            if like is not None:
                slot.line, slot.path = like.line, like.path
            return made
        found.flow = False if like is not None else found.flow
        return found


@dataclass(eq=False, slots=True)
class Sequence(Branch):
    """Slots without keys."""

    indent: int | None = None
    """None: as the other lists of the document."""

    def append(self, value: Any, *, line: int = 0) -> "TreeSlot":
        slot = TreeSlot(node_of(value, line or self.line), line=line or self.line)
        self.slots.append(slot)
        return slot

    def mappings(self) -> list[Mapping]:
        return [slot.node for slot in self.slots if isinstance(slot.node, Mapping)]


Node = Scalar | Mapping | Sequence
Collection = Mapping | Sequence


@dataclass(eq=False, slots=True)
class TreeSlot:
    """One value in its place: its key, and the comments that belong to it."""

    node: Node
    key: str | None = None
    key_text: str = ""
    before: list[str] = field(default_factory=list)
    """Whole lines above, indented from the slot's own column; blank ones are empty."""
    beside: str = ""
    """The comment at the end of the line, with the spaces before it."""
    gap: str = " "
    line: int = 0
    path: str = ""

    @property
    def text(self) -> str | None:
        node = self.node
        return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None

    @property
    def bare(self) -> "TreeSlot":
        """Its place and what it holds, without key and comments."""
        return TreeSlot(self.node, line=self.line, path=self.path)

    def say(self, value: Any) -> None:
        """Replace a scalar, in the style that it had."""
        old = self.node
        if isinstance(old, Scalar) and isinstance(value, str) and old.style in ("|", ">"):
            old.lines = [old.lines[0], *block_lines(value, old.lines)]
            old.value = value
            return
        style = old.style if isinstance(old, Scalar) else ""
        prefix = old.prefix if isinstance(old, Scalar) else ""
        self.node = Scalar(value, spelled(value, style).split("\n"), style, prefix, self.line)


class Manners(NamedTuple):
    """How the author spaces things, for what is written anew."""

    list_indent: int = 2
    room: str = " "
    """What stands inside the braces of a flow mapping."""


@dataclass(eq=False, slots=True)
class Document:
    """The root, what stands above it, and how its lines end."""

    root: Node
    head: list[str]
    manners: "Manners"
    ending: str = "\n"
    last_newline: bool = True


def node_of(value: Any, line: int = 0) -> Node:
    """A node for a plain value; nodes and slots inside stay what they are."""
    if isinstance(value, Scalar | Mapping | Sequence):
        return value
    if isinstance(value, dict):
        made = Mapping(line=line)
        for key, one in value.items():
            slot = one if isinstance(one, TreeSlot) else TreeSlot(node_of(one, line), line=line)
            slot.key, slot.key_text = key, spelled(key)
            made.slots.append(slot)
        return made
    if isinstance(value, list):
        slots = [
            one if isinstance(one, TreeSlot) else TreeSlot(node_of(one, line), line=line)
            for one in value
        ]
        return Sequence(slots, line=line)
    return Scalar(value, spelled(value).split("\n"), line=line)


def flowing(value: Any, line: int = 0) -> Node:
    """As `node_of`, in flow style: `{ do: fail }`."""
    node = node_of(value, line)
    if not isinstance(node, Scalar):
        node.flow = True
    return node


def plain(node: Node) -> Any:
    """The plain value of a node."""
    if isinstance(node, Mapping):
        return {slot.key: plain(slot.node) for slot in node.slots}
    if isinstance(node, Sequence):
        return [plain(slot.node) for slot in node.slots]
    return node.value


def slots_below(node: Node) -> Iterator[TreeSlot]:
    """Every slot at any depth, in the order of the text."""
    waiting = [] if isinstance(node, Scalar) else [iter(node.slots)]
    while waiting:
        slot = next(waiting[-1], None)
        if slot is None:
            waiting.pop()
            continue
        yield slot
        if not isinstance(slot.node, Scalar):
            waiting.append(iter(slot.node.slots))
