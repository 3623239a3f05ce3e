"""
No comment is lost when blocks of an older dialect are taken apart.

A comment whose place is gone goes above what comes from the same line of the source, or from the
next one that is left.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator

from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, TreeSlot, node_of, slots_below

_WORD = "comment"


def remember(draft: Draft, root: Mapping) -> None:
    """Take down every comment and its line."""
    for number, (line, text) in enumerate(_comments(root)):
        draft.left[_WORD, number] = TreeSlot(node_of(text), line=line)


def _comments(root: Node, line: int = 0) -> Iterator[tuple[int, str]]:
    """Line and text of each comment, in the order of the document."""
    if isinstance(root, Scalar):
        return
    for slot in root.slots:
        for comment in slot.before:
            if comment:
                yield slot.line, comment.strip()
        if slot.beside:
            yield slot.line, slot.beside.strip()
        yield from _comments(slot.node, slot.line)
        line = slot.line
    for comment in root.tail:
        if comment:
            yield line, comment.strip()


def restore(draft: Draft, root: Mapping) -> None:
    """Put back what is gone, and take away what stands twice."""
    kept = [slot for (word, _), slot in draft.left.items() if word == _WORD]
    if not draft.notes:
        return
    now = Counter(text for _, text in _comments(root))
    missing = Counter(slot.text or "" for slot in kept)
    missing.subtract(now)
    homes = CommentHomes(root)
    for slot in kept:
        if missing[slot.text or ""] > 0:
            missing[slot.text or ""] -= 1
            homes.attach(slot)
    _take_away(root, missing)


class CommentHomes:
    """What stands at which line of the source, in the order of lines."""

    def __init__(self, root: Mapping) -> None:
        workflow = root.sequence("workflow")
        steps = workflow.slots if workflow is not None else []
        self.root = root
        self.starts = sorted(slot.line for slot in (*root.slots, *steps))
        self.slots = sorted((slot for slot in slots_below(root) if slot.line), key=_line_of)
        self.lines = [slot.line for slot in self.slots]

    def attach(self, comment: TreeSlot) -> None:
        """
        Above what has the same line in the source or comes next, and never in another step.

        What is left of a block of the root that is gone stands above the next block.
        """
        at = bisect_left(self.lines, comment.line)
        number = bisect_right(self.starts, comment.line)
        end = self.starts[number] if number < len(self.starts) else None
        place = self.slots[at] if at < len(self.slots) else None
        if place is not None and end is not None and place.line >= end:
            block = next((slot for slot in self.root.slots if slot.line == end), None)
            place = block or self.slots[bisect_left(self.lines, self.lines[max(at, 1) - 1])]
        if place is None:
            self.root.tail = [*self.root.tail, comment.text or ""]
        else:
            place.before = [*place.before, comment.text or ""]


def _line_of(slot: TreeSlot) -> int:
    return slot.line


def _take_away(root: Mapping, surplus: Counter[str]) -> None:
    """From the end on, so that the first of two stays."""
    for slot in reversed(list(slots_below(root))):
        if surplus[slot.beside.strip()] < 0 and slot.beside:
            surplus[slot.beside.strip()] += 1
            slot.beside = ""
        for comment in reversed(slot.before):
            if comment and surplus[comment.strip()] < 0:
                surplus[comment.strip()] += 1
                slot.before = [one for one in slot.before if one is not comment]
