"""
No comment is lost when blocks of an older dialect are taken apart.

A comment whose place is gone goes above what comes from the same line of the source, or from the
next one that is left.
"""

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
    for slot in kept:
        if missing[slot.text or ""] > 0:
            missing[slot.text or ""] -= 1
            _attach(root, slot)
    _take_away(root, missing)


def _attach(root: Mapping, comment: TreeSlot) -> None:
    """Above what has the same line in the source or comes next, and never in another step."""
    text = comment.text or ""
    places = [slot for slot in slots_below(root) if slot.line]
    end = min((line for line in _starts(root) if line > comment.line), default=None)
    own = [slot for slot in places if end is None or slot.line < end]
    later = [slot for slot in own if slot.line >= comment.line]
    if later:
        place = min(later, key=lambda slot: slot.line)
        place.before = [*place.before, text]
    elif own and end is not None:
        place = max(own, key=lambda slot: slot.line)
        place.before = [*place.before, text]
    else:
        root.tail = [*root.tail, text]


def _starts(root: Mapping) -> list[int]:
    """The lines at which steps begin, and the blocks of the root."""
    workflow = root.sequence("workflow")
    steps = workflow.slots if workflow is not None else []
    return [slot.line for slot in (*root.slots, *steps)]


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
