"""Loops over a cursor of a database: rows that tasks take until there are none (DIA-UP)."""

import re
from typing import Final

from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.former_results import SQL
from noetl.playbook.dialects.inputs import as_expression
from noetl.playbook.dialects.pipeline import (
    IS_ERROR,
    add_task,
    as_iterator,
    quoted,
    rule_slot,
    rules_in,
    then_node,
)
from noetl.playbook.dialects.tree import Mapping, Scalar, TreeSlot, flowing, node_of

NO_LIST: Final = (
    "a loop over a cursor has no list of its results",
    "let its tasks write what later steps read: set_ctx, or a table",
)
_STATEMENT: Final = ("claim", "query", "command", "sql")
_CLAIMS: Final = re.compile(r"\b(update|delete|insert|merge)\b", re.IGNORECASE)
_EMPTY: Final = "(outcome.result | length) == 0"


def loops_over_cursors(draft: Draft, step: Mapping) -> None:
    """
    `loop.cursor` → a task that takes rows, and one that does the work for each of them.

    A statement that changes what it finds is asked again until it finds nothing, by as many
    iterations as `max_in_flight` names; one that only reads gives its rows once.
    """
    loop = step.mapping("loop")
    slot = loop.slot("cursor") if loop is not None else None
    if loop is None or slot is None:
        return
    cursor = slot.node if isinstance(slot.node, Mapping) else Mapping()
    word = next((one for one in _STATEMENT if cursor.text(one)), None)
    if cursor.text("kind") not in SQL or word is None or "in" in loop:
        draft.refuse(
            slot,
            "a loop over a cursor names a database, the statement that takes rows, and nothing "
            "else to go through",
            "write cursor: { kind: postgres, auth: …, claim: UPDATE … RETURNING * }",
        )
        return
    cursor.rename(word, "command")
    text = cursor.text("command") or ""
    loop.pop("cursor")
    spec = loop.pop("spec")
    knobs = spec.node if spec is not None and isinstance(spec.node, Mapping) else Mapping()
    _leave_knobs(draft, knobs)
    loop.put("in", quoted("{{ _prev }}", slot.line), at=0)
    loop.put("iterator", loop.text("iterator") or "row")
    each = as_iterator(draft, step)
    if each is None or not isinstance(each.node, Mapping):
        return
    claim = add_task(step, "claim", cursor, slot, first=True)
    cursor.flow = cursor.flow and not _CLAIMS.search(text)
    draft.left["cursor", id(step)] = slot
    if _CLAIMS.search(text):
        _again(cursor, each.node, slot)
        _at_once(step, knobs, slot)
    elif isinstance(most := knobs.node("max_in_flight"), Scalar) and type(most.value) is int:
        each.node.put("spec", flowing({"mode": "parallel", "max_in_flight": most}, slot.line))
    draft.tell(slot, "cursor", "a task that takes rows, and one for each of them", now=claim)


def _again(claim: Mapping, each: Mapping, like: TreeSlot) -> None:
    """Take rows until there are none."""
    fails = rule_slot(IS_ERROR, then_node(like, do="fail"), like.bare)
    ends = rule_slot(_EMPTY, then_node(like, do="break"), like.bare)
    rules_in(claim, like.bare).slots += [fails, ends]
    fails = rule_slot(IS_ERROR, then_node(like, do="fail"), like.bare)
    back = rule_slot(None, then_node(like, do="jump", to="claim"), like.bare)
    rules_in(each, like.bare).slots += [fails, back]


def _leave_knobs(draft: Draft, knobs: Mapping) -> None:
    for slot in knobs.slots:
        if slot.key not in ("mode", "max_in_flight"):
            draft.refuse(
                slot,
                f"'{slot.key}' of a loop over a cursor has no counterpart",
                "let the statement itself say how many rows it takes: LIMIT",
                code="changed-meaning",
            )


def _at_once(step: Mapping, knobs: Mapping, like: TreeSlot) -> None:
    """Several that take rows at the same time."""
    most = knobs.node("max_in_flight")
    number = as_expression(most) if most is not None else "1"
    if most is None or number in (None, "1"):
        return
    loop = {
        "in": quoted(f"{{{{ range({number}) | list }}}}", like.line),
        "iterator": "taker",
        "spec": flowing({"mode": "parallel"}, like.line),
    }
    made = step.put("loop", node_of(loop, like.line), at=step.place("tool"))
    made.line, made.path = like.line, like.path
