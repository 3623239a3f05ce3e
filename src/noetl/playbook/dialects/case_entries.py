"""`case` of the case dialect: its entries become arcs, writes, sinks and retries (S2 §8)."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from noetl.messages.names import canonical
from noetl.playbook.dialects.draft import Draft
from noetl.playbook.dialects.guards import (
    ENDS,
    FALSE,
    TRUE,
    End,
    comparisons_in,
    expression_of,
    guard_of,
    settled,
)
from noetl.playbook.dialects.names import Respelling, paths_read, respelled
from noetl.playbook.dialects.pipeline import main_task, quoted
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, node_of, plain

OTHERWISE = "event.name == 'step.exit'"
"""`else` of a case: a way on after a success, as `next` is (NEXT-3)."""
_WRITES = ("set", "vars", "collect", "result")
_ACTIONS = ("next", "sink", "retry", *_WRITES)
_INSTEAD = {
    "call": "let a rule of the task set_iter what the next call needs, and do: jump to the task",
}
RESULT = "_prev"
"""The key of a write that is what a last step gives."""
_EVENT_KEYS = ("name", "step", "result", "error", "loop")
_OF_FAILURES = ("error", "status", "status_code", "success")
_IN_CALLS = ("call.done", "call.error")


@dataclass
class CaseEntry:
    """One entry of a `case`: its guard, and what it asks for."""

    slot: TreeSlot
    expression: str
    targets: list[TreeSlot] = field(default_factory=list)
    actions: dict[str, TreeSlot] = field(default_factory=dict)

    @property
    def guard(self) -> TreeSlot:
        """Where its guard stands; its own place where it has none."""
        held = self.slot.node.slot("when") if isinstance(self.slot.node, Mapping) else None
        return held or self.slot

    def at(self, end: End) -> str:
        """What is left of the guard at one end of the step."""
        return settled(self.expression, end)

    @property
    def in_call(self) -> bool:
        """Whether it only reacts to the call of the tool, not to the end of the step."""
        names = {name for one in comparisons_in(self.expression) for name in one.names}
        return bool(names) and names <= set(_IN_CALLS)

    @property
    def minds_failures(self) -> bool:
        """Whether its guard speaks of failures; others are about results, which those lack."""
        if self.at("error") in (FALSE, TRUE):
            return self.at("error") == TRUE
        named = any(
            ENDS.get(canonical(name)) == "error"
            for one in comparisons_in(self.expression)
            for name in one.names
        )
        return named or any(
            path[0] in ("response", "this") and len(path) > 1 and path[1] in _OF_FAILURES
            for path in paths_read(guard_of(self.expression))
        )

    def taken(self, action: str) -> TreeSlot | None:
        """A copy of what it asks for: both ends of a step may need it, each in its own words."""
        return deepcopy(self.actions.get(action))

    @property
    def blocks(self) -> bool:
        """Whether a match leads nowhere: nothing below it is asked any more (S2 §8.2)."""
        return not self.targets and not self.in_call


def entries_of(draft: Draft, step: Mapping, case: TreeSlot) -> list[CaseEntry] | None:
    """The entries of a `case`; None where one of them cannot be read."""
    if not isinstance(case.node, Sequence):
        draft.refuse(
            case, "'case' is not a list", 'write case: [ { when: "{{ … }}", then: { … } } ]'
        )
        return None
    found = [_entry(draft, slot) for slot in case.node.slots]
    entries = [entry for entry in found if entry is not None]
    leads_on = "next" in step or any(entry.targets for entry in entries)
    needed = draft.needed.get(step.text("step") or "")
    given = needed.home if needed is not None else "" if leads_on else RESULT
    looped = "loop" in step or ("listed", id(main_task(step))) in draft.left
    for entry in entries:
        if looped and entry.in_call and "result" in entry.actions:
            draft.refuse(
                entry.actions["result"],
                "each iteration would say what the result of the loop is",
                "collect what you mean: collect: { from: …, into: name }",
            )
        _gather_writes(draft, entry, given)
    return None if None in found else entries


def _entry(draft: Draft, slot: TreeSlot) -> CaseEntry | None:
    node = slot.node if isinstance(slot.node, Mapping) else Mapping()
    guard, then = node.slot("when"), node.slot("then")
    otherwise = node.slot("else")
    if otherwise is not None and guard is None:
        inside = otherwise.node
        held = inside.slot("then") if isinstance(inside, Mapping) else None
        then = held or (otherwise if then is None else then)
    elif guard is None:
        draft.refuse(slot, "an entry of a case has no 'when'", 'write when: "{{ … }}", then: { … }')
        return None
    if then is not None and isinstance(then.node, Sequence):
        then.node = _merged(then.node)
    if then is None or not isinstance(then.node, Mapping):
        draft.refuse(then or slot, "'then' of a case is not a mapping", "write then: { next: … }")
        return None
    expression = OTHERWISE if guard is None else expression_of(plain(guard.node))
    if expression is None:
        draft.refuse(guard or slot, "'when' is not one expression", 'write when: "{{ … }}"')
        return None
    if not (_knows_events(draft, guard or slot, expression) and _knows_actions(draft, then.node)):
        return None
    entry = CaseEntry(slot, expression)
    for one in then.node.slots:
        if one.key == "next":
            targets = targets_of(draft, one)
            if targets is None:
                return None
            entry.targets = targets
        else:
            entry.actions[one.key or ""] = one
    return entry


def _gather_writes(draft: Draft, entry: CaseEntry, given: str) -> None:
    """
    `set`, `vars`, `collect` and `result` as one `set`.

    The result of a step is read by its name, so that it is kept there; only a last step gives it.
    """
    words = [entry.actions.pop(word) for word in _WRITES if word in entry.actions]
    if len(words) == 1 and words[0].key in ("set", "vars"):
        entry.actions["set"] = words[0]
    elif words:
        made = Mapping(line=words[0].line)
        for word in words:
            if word.key == "collect":
                made.slots += _collected(draft, word)
            elif word.key == "result":
                made.slots += _given(word, given, made) if given else []
            elif isinstance(word.node, Mapping):
                made.slots += word.node.slots
        entry.actions["set"] = TreeSlot(made, key="set", line=words[0].line, path=words[0].path)


def _named(node: Node, *words: str) -> str | None:
    """An expression, with or without braces, at the first of some keys that is there."""
    held = node if isinstance(node, Mapping) else Mapping()
    text = next((text for word in words if (text := held.text(word))), None)
    return None if text is None else expression_of(text) or expression_of(guard_of(text))


def _collected(draft: Draft, slot: TreeSlot) -> list[TreeSlot]:
    """`collect: { from, into, mode }`: the list so far, and what is added to it."""
    held = slot.node if isinstance(slot.node, Mapping) else Mapping()
    value, into = _named(held, "from", "path"), held.text("into")
    mode = held.text("mode") or held.text("strategy") or "append"
    form = COLLECTED.get(mode)
    if value is None or into is None or form is None:
        draft.refuse(
            slot,
            "'collect' says not what is collected, or where",
            f"write collect: {{ from: …, into: name, mode: {' | '.join(COLLECTED)} }}",
        )
        return []
    node = quoted(guard_of(form.format(into, value)), slot.line)
    made = TreeSlot(node, into, into, line=slot.line, path=slot.path)
    draft.left["collect", id(made)] = TreeSlot(quoted(guard_of(value), slot.line), mode)
    return [made]


COLLECTED = {
    "append": "(ctx.{0} | default([])) + [{1}]",
    "extend": "(ctx.{0} | default([])) + ({1})",
    "replace": "{1}",
}


def _given(slot: TreeSlot, name: str, written: Mapping) -> list[TreeSlot]:
    """`result: { from: … }`; what the entry itself writes is read as it will be (TASK-5)."""
    value = _named(slot.node, "from")
    if value is None:
        return [TreeSlot(slot.node, name, name, line=slot.line, path=slot.path)]

    def will_be(path: tuple[str | int, ...]) -> Respelling | None:
        parts = 2 if path[0] in ("ctx", "vars") and len(path) > 1 else 1
        text = expression_of(written.text(str(path[parts - 1])))
        return None if text is None else Respelling(parts, f"({text})")

    node = quoted(respelled(guard_of(value), will_be), slot.line)
    return [TreeSlot(node, name, name, line=slot.line, path=slot.path)]


def _merged(listed: Sequence) -> Node:
    """`then` as a list: its entries together, as long as none says twice what to do."""
    entries = listed.mappings()
    keys = [slot.key for entry in entries for slot in entry.slots]
    if len(entries) < len(listed.slots) or len(set(keys)) < len(keys):
        return listed
    return Mapping([slot for entry in entries for slot in entry.slots], line=listed.line)


def _knows_events(draft: Draft, slot: TreeSlot, expression: str) -> bool:
    """Every event that the guard waits for ends a step."""
    for one in comparisons_in(expression):
        for name in one.names:
            if canonical(name) not in ENDS:
                draft.refuse(
                    slot,
                    f"the case waits for '{name}', which ends no step",
                    "wait for 'step.exit', 'call.done' or 'call.error'",
                )
                return False
    for path in paths_read(guard_of(expression)):
        if path[0] == "event" and (len(path) < 2 or path[1] not in _EVENT_KEYS):
            said = ".".join(map(str, path[:2]))
            draft.refuse(
                slot, f"`{said}` is not known here", f"an event has {', '.join(_EVENT_KEYS)}"
            )
            return False
    return True


def _knows_actions(draft: Draft, then: Mapping) -> bool:
    unknown = [slot for slot in then.slots if slot.key not in _ACTIONS]
    for slot in unknown:
        draft.refuse(
            slot,
            f"'{slot.key}' in 'then' of a case has no counterpart",
            _INSTEAD.get(slot.key or "", f"a case knows {', '.join(_ACTIONS)}"),
        )
    return not unknown


def targets_of(draft: Draft, slot: TreeSlot) -> list[TreeSlot] | None:
    """The arcs of `next`: a name, a mapping, or a list of them. None where one is refused."""
    node = slot.node
    if isinstance(node, Mapping) and isinstance(node.node("arcs"), Sequence):
        node = node.node("arcs") or node
    entries = node.slots if isinstance(node, Sequence) else [slot]
    found = [_target(draft, entry) for entry in entries]
    return None if None in found else [one for one in found if one is not None]


def _target(draft: Draft, slot: TreeSlot) -> TreeSlot | None:
    node = slot.node
    if isinstance(node, Scalar) and isinstance(node.value, str):
        name = TreeSlot(node, key="step", line=slot.line, path=slot.path)
        return TreeSlot(node_of({"step": name}, slot.line), line=slot.line, path=slot.path)
    wrong = _conditional(node) if isinstance(node, Mapping) else None
    if wrong is not None:
        draft.refuse(wrong, *CONDITIONAL)
        return None
    if not isinstance(node, Mapping) or "step" not in node:
        draft.refuse(slot, "an entry of 'next' names no step", "write next: [ { step: … } ]")
        return None
    node.flow = node.flow and len(node.slots) == 1
    return slot.bare


# S2 §9.2: rejected there, and rejected here.
CONDITIONAL = (
    "'next' holds a condition, which the case dialect rejects",
    'write case: [ { when: "{{ … }}", then: { next: [ { step: … } ] } } ], and next for the rest',
)


def _conditional(node: Mapping) -> TreeSlot | None:
    return next((slot for key in ("then", "else", "when") if (slot := node.slot(key))), None)


def acting(entries: list[CaseEntry], end: End) -> Iterator[tuple[CaseEntry, str]]:
    """The entries that count at one end, with what is left of their guards."""
    for entry in entries:
        expression = entry.at(end)
        if expression != FALSE:
            yield entry, expression
            if expression == TRUE:
                return
