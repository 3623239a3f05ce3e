"""Shapes that several dialects share: rules without `then`, `next` as a name or a list."""

import re
from typing import Literal

from noetl.expression.syntax import check_guard, is_template
from noetl.playbook.dialects.draft import Draft, arcs_of, shown
from noetl.playbook.dialects.tree import Mapping, Scalar, Sequence, TreeSlot, node_of
from noetl.playbook.dialects.tree_writing import flow_text

_KNOBS = ("do", "attempts", "backoff", "delay", "max_delay", "jitter", "to")
_WRITES = ("set_iter", "set_ctx", "set_prev", "set_vars", "set_shared", "set")
DIRECTIVE_KEYS = frozenset((*_KNOBS, *_WRITES))
WIDEST_THEN = 64
_STATUS_ERROR = re.compile(r"""\{\{\s*outcome\.status\s*==\s*(['"])error\1\s*\}\}""")


def shape_rule(draft: Draft, rule: Mapping) -> None:
    """`{ expr, do, … }` → `{ when, then: { do, … } }`, and likewise below `else`."""
    expr, otherwise = rule.slot("expr"), rule.slot("else")
    public = ("eval", id(rule)) not in draft.left and otherwise is not None and expr is None
    code = "up-rule-shape" if public else ""
    if expr is not None and "when" not in rule:
        rule.rename("expr", "when")
        draft.tell(expr, "expr", "when")
    brace_guard(draft, rule)
    if otherwise is None:
        _gather(draft, rule, rule, code)
        return
    inside = otherwise.node
    if isinstance(inside, Scalar) and inside.value in (None, True):
        inside = Mapping(line=otherwise.line)
        then = rule.pop("then")
        if then is not None:
            inside.slots.append(then)
            draft.tell(then, "then beside else", "else: { then }", code=code)
        otherwise.node = inside
        _gather(draft, rule, inside, code)
    elif isinstance(inside, Mapping):
        _gather(draft, inside, inside, code)


def brace_guard(draft: Draft, block: Mapping) -> None:
    """A guard that is an expression without its braces gets them."""
    guard = block.slot("when")
    text = guard.text if guard is not None else None
    if guard is None or text is None or is_template(text):
        return
    whole = f"{{{{ {text} }}}}"
    if check_guard(whole) is None:
        guard.say(whole)
        draft.tell(guard, shown(text), shown(whole))


def _gather(draft: Draft, source: Mapping, target: Mapping, code: str) -> None:
    """Move loose directive keys of `source` into `target.then`."""
    loose = [slot for slot in source.slots if slot.key in DIRECTIVE_KEYS]
    if not loose:
        return
    then = target.mapping("then")
    at = source.slots.index(loose[0]) if source is target else 0
    source.slots = [slot for slot in source.slots if slot not in loose]
    target.flow = False
    if then is None:
        made = Mapping(loose, line=loose[0].line)
        slot = TreeSlot(made, key="then", key_text="then", line=loose[0].line, path=loose[0].path)
        target.slots.insert(at, slot)
    else:
        then.slots += [slot for slot in loose if slot.key is not None and slot.key not in then]
        found = target.slot("then")
        assert found is not None
        made, slot = then, found
    made.tail += source.tail if source is target else []
    source.tail = [] if source is target else source.tail
    moved = ", ".join(one.key or "" for one in loose)
    draft.tell(loose[0], moved, "then: { … }", now=slot, code=code)


def settle_then(_: Draft, rule: Mapping) -> None:
    """A short directive that was moved is written in one line; one in its place stays as it is."""
    otherwise = rule.mapping("else")
    holder = rule if otherwise is None else otherwise
    then = holder.mapping("then")
    if then is not None and not then.raw:
        compact(then)


def compact(node: Mapping) -> Mapping:
    """In flow style, if it is short, of scalars only, and without comments."""
    simple = all(
        isinstance(slot.node, Scalar)
        and not slot.before
        and not slot.beside
        and not slot.node.prefix
        for slot in node.slots
    )
    shown_flow = flow_text(node)
    node.flow = simple and not node.tail and len(shown_flow) <= WIDEST_THEN
    node.flow = node.flow and "\n" not in shown_flow
    return node


def covers_errors(rules: Sequence) -> bool:
    """Whether no error can pass the rules unmatched."""
    for rule in rules.mappings():
        guard = rule.node("when")
        if "else" in rule or (isinstance(guard, Scalar) and guard.value is True):
            return True
        text = rule.text("when")
        if text is not None and _STATUS_ERROR.fullmatch(text.strip()):
            return True
    return False


def list_mode(draft: Draft, step: Mapping) -> Literal["exclusive", "inclusive", "open"]:
    """
    How a step meant `next` as a list: the eval dialect took the first match, the case dialect and
    public playbooks all of them. Guards and a mode of its own belong to the eval dialect.
    """
    arcs = arcs_of(step)
    own, all_over = draft.spoken(step), draft.dialects
    knobs = step.mapping("spec")
    marked = knobs is not None and "next_mode" in knobs
    listed = step.sequence("next")
    names = [slot for slot in listed.slots if slot.text] if listed is not None else []
    if names and not marked:  # bare names can have no guards: all of them are meant
        return "inclusive" if listed is not None and len(listed.slots) > 1 else "exclusive"
    if marked or len(arcs) < 2 or any("when" in arc for arc in arcs):
        return "exclusive"
    for dialects in (own, all_over):
        if "eval" in dialects and "case" not in dialects:
            return "exclusive"
        if "case" in dialects and "eval" not in dialects:
            return "inclusive"
    return "open" if "eval" in all_over else "inclusive"


def next_as_router(slot: TreeSlot) -> Mapping | None:
    """`next` as a name or a list → `{ arcs: [ … ] }`; None where it is a router already."""
    node = slot.node
    if isinstance(node, Scalar) and isinstance(node.value, str):
        node = Sequence([TreeSlot(node, line=slot.line, path=slot.path)], line=slot.line)
    if isinstance(node, Mapping) and "step" in node and "arcs" not in node:
        node = Sequence([TreeSlot(node, line=slot.line, path=slot.path)], line=slot.line)
    if not isinstance(node, Sequence):
        return None
    for entry in node.slots:
        if isinstance(entry.node, Scalar) and isinstance(entry.node.value, str):
            name = entry.bare
            entry.node = node_of({"step": name}, entry.line)
            node.flow = False
    router = Mapping(line=slot.line)
    router.put("arcs", node)
    slot.node = router
    return router
