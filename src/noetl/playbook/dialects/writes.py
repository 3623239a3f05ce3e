"""
Where do the writes of `set` go? (DIA-UP)

Public playbooks write at a task, at a step, at an arc and in a rule, with the scope in the key:
`ctx.page`, `iter.rows`. Here a rule of a task writes, before its directive takes effect (TASK-5).
"""

import re
from copy import deepcopy
from typing import Final, Literal, NamedTuple

from noetl.playbook.dialects.draft import (
    Draft,
    arcs_of,
    own_tasks,
    rules_of,
    tasks_of,
    templates_below,
    then_of,
)
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.pipeline import (
    IS_ERROR,
    add_task,
    as_iterator,
    free_label,
    plain_task,
    quoted,
    rule_slot,
    tasks_in,
    then_node,
)
from noetl.playbook.dialects.public_shapes import add_step, fresh_step
from noetl.playbook.dialects.shapes import covers_errors
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, flowing

Scope = Literal["ctx", "iter", "args"]
IS_OK: Final = "outcome.status == 'ok'"
_WORDS: Final[tuple[tuple[str, Scope | None], ...]] = (
    ("set", None),
    ("set_ctx", "ctx"),
    ("set_iter", "iter"),
)
_ARC_WORDS: Final = (("input", "args"), ("with", "args"), ("condition", "when"))
_SCOPES: Final[dict[str, Scope]] = {"ctx": "ctx", "vars": "ctx", "iter": "iter", "step": "iter"}
_ERROR_ONLY: Final = re.compile(r"outcome\.status\s*==\s*['\"]error['\"]|\boutcome\.error\b")
_EITHER: Final = re.compile(r"\bor\b|\bnot\b|!=|\belse\b|is\s+none")
_TRUE: Final = re.compile(r"\{\{\s*true\s*\}\}", re.IGNORECASE)
_ALWAYS_THERE: Final = frozenset({"ctx", "iter", "workload", "args", "execution_id"})
_ENDS_STEP: Final = ("continue", "break")
_GOES_ON: Final = ("continue", "break", "jump")


class Write(NamedTuple):
    """One value, and where it is kept."""

    scope: Scope
    key: str
    slot: TreeSlot


# ── reading `set` ──


def writes_of(
    draft: Draft, holder: Mapping, otherwise: Scope
) -> tuple[list[Write], TreeSlot | None]:
    """The writes of a block, taken out of it, and the slot of the first word."""
    found: list[Write] = []
    first: TreeSlot | None = None
    for word, scope in _WORDS:
        slot = holder.slot(word)
        if slot is None:
            continue
        found += writes_below(draft, slot, scope or otherwise)
        if isinstance(slot.node, Mapping):
            holder.pop(word)
            first = first or slot
    return found, first


def writes_below(draft: Draft, given: TreeSlot, scope: Scope = "ctx") -> list[Write]:
    """The writes of one word."""
    if not isinstance(given.node, Mapping):
        said = f"'{given.key}' is not a mapping"
        draft.refuse(given, said, f"write {given.key}: {{ ctx.name: value }}")
        return []
    return [one for slot in given.node.slots for one in _writes_below(draft, slot, scope)]


def _writes_below(draft: Draft, slot: TreeSlot, scope: Scope) -> list[Write]:
    key = slot.key or ""
    if key in _SCOPES and isinstance(slot.node, Mapping):
        inside = slot.node.slots
        return [one for below in inside for one in _writes_below(draft, below, _SCOPES[key])]
    head, _, rest = key.partition(".")
    name = rest if rest else head
    if (rest and head not in _SCOPES) or not name.isidentifier():
        draft.refuse(
            slot,
            f"'{key}' names no place that can be written",
            "write ctx.name or iter.name: a write replaces the value of one name",
        )
        return []
    return [Write(_SCOPES[head] if rest else scope, name, slot)]


# ── writing in rules ──


def write_in(then: Mapping, write: Write, *, copied: bool = False) -> TreeSlot:
    """One write of a directive; what is there already stays."""
    key = f"set_{write.scope}"
    then.flow = False
    target = then.within(key)
    found = target.slot(write.key)
    if found is not None:
        return found
    like = write.slot
    node: Node = deepcopy(like.node) if copied else like.node
    again = TreeSlot(node, line=like.line, path=like.path)
    made = target.put(write.key, node, like=again if copied else like)
    made.gap = " "
    made.key_text = like.key_text if like.key == write.key else made.key_text
    holder = then.slot(key)
    assert holder is not None
    holder.line, holder.path = holder.line or like.line, holder.path or like.path
    return made


def write_on_success(task: Mapping, writes: list[Write], *, last: bool, goes_on: bool) -> None:
    """
    Writes that happen when a task has succeeded, in every rule that such an outcome may match.

    Without a policy an error fails the step (TASK-2): the rule that says so comes first.
    `last`: of a pipeline, where `continue` is its end; `goes_on`: wherever the task goes on to.
    """
    like = writes[0].slot
    policy = task.within("spec", like=like).within("policy", like=like)
    task.flow = False
    rules = policy.sequence("rules")
    if rules is None or not rules.slots:
        rules = Sequence(line=like.line)
        policy.put("rules", rules)
        if task.text("kind") != "noop":  # which cannot fail
            _append_rule(rules, IS_ERROR, "fail", like)
    directives = _GOES_ON if goes_on else _ENDS_STEP if last else ("break",)
    fresh, risky = True, any(map(_is_risky, writes))
    for rule in rules_of(task):
        then = _matches_success(rule, rules, risky=risky)
        if then is not None and (then.text("do") or "continue") in directives:
            for one in writes:
                write_in(then, one, copied=not fresh)
            fresh = False
    if not any(map(is_catch_all, rules.mappings())) and "continue" in directives:
        alone = covers_errors(rules) or not rules.slots
        guard = None if alone else IS_OK
        then = _append_rule(rules, guard, "continue", like)
        for one in writes:
            write_in(then, one, copied=not fresh)


def _append_rule(rules: Sequence, guard: str | None, do: str, like: TreeSlot) -> Mapping:
    then = then_node(like, do=do)
    rules.slots.append(rule_slot(guard, then, like.bare))
    otherwise = rules.mappings()[-1].mapping("else")
    if otherwise is not None:
        otherwise.flow = False
    return then


def is_catch_all(rule: Mapping) -> bool:
    guard = rule.node("when")
    always = isinstance(guard, Scalar) and guard.value is True
    return "else" in rule or always or bool(_TRUE.fullmatch((rule.text("when") or "").strip()))


def only_errors(rule: Mapping) -> bool:
    """Whether no success matches a rule."""
    text = (rule.text("when") or "").replace("output.", "outcome.")
    return bool(_ERROR_ONLY.search(text) and not _EITHER.search(text))


def _matches_success(rule: Mapping, rules: Sequence, *, risky: bool) -> Mapping | None:
    """
    The directive of a rule that a success may match.

    A rule for everything is split where a value can only be made from a success.
    """
    then = then_of(rule)
    if then is None or not is_catch_all(rule):
        return None if only_errors(rule) else then
    place = next(n for n, slot in enumerate(rules.slots) if slot.node is rule)
    handled = covers_errors(Sequence(rules.slots[:place]))
    if handled or not risky or (then.text("do") or "continue") != "continue":
        return then
    own = _append_rule(rules, IS_OK, "continue", rules.slots[place])
    rules.slots.insert(place, rules.slots.pop())
    for slot in then.slots:
        if slot.key is not None and slot.key != "do":
            own.put(slot.key, deepcopy(slot.node))
            own.flow = False
    return own


def _is_risky(write: Write) -> bool:
    """Whether a value may be missing after an error: it reads below a result."""
    paths = list(paths_read(write.slot.text))
    whole = [("outcome", "result"), ("output", "data")]
    return any(path[0] not in _ALWAYS_THERE and path not in whole for path in paths)


# ── rows ──


def set_of_rule(draft: Draft, rule: Mapping) -> None:
    """`set` of a directive → `set_ctx` and `set_iter`."""
    then = then_of(rule)
    if then is None:
        return
    written = [then.mapping(word) or Mapping() for word, _ in _WORDS[1:]]
    dotted = any("." in (slot.key or "") for one in written for slot in one.slots)
    if "set" not in then and not dotted:
        return
    places = {word: then.place(word) for word, _ in _WORDS}
    writes, first = writes_of(draft, then, "iter")
    if first is None:
        return
    at = min(places.values())
    for write in writes:
        made = write_in(then, write)
        draft.tell(write.slot, f"set: {write.slot.key}", f"set_{write.scope}", now=made)
    scopes = dict.fromkeys(write.scope for write in writes)
    for number, scope in enumerate(scopes):
        slot = then.slot(f"set_{scope}")
        assert slot is not None
        then.slots.remove(slot)
        then.slots.insert(min(at + number, len(then.slots)), slot)


def set_of_task(draft: Draft, task: Mapping) -> None:
    """`set` beside `kind`: written when the task has succeeded."""
    if "kind" not in task:
        return
    writes, first = writes_of(draft, task, "iter")
    if not writes or first is None:
        return
    write_on_success(task, writes, last=False, goes_on=True)
    _tell(draft, writes, "set of the task")


def set_of_step(draft: Draft, step: Mapping) -> None:
    """`set` beside `tool`: written when the step has succeeded."""
    if not any(word in step for word, _ in _WORDS):
        return
    slot = next(step.slot(word) for word, _ in _WORDS if word in step)
    assert slot is not None
    as_iterator(draft, step)  # what is written once, when all iterations are done
    tasks = own_tasks(step)
    if not tasks:
        draft.refuse(
            slot,
            "'set' of a step without tasks has no place",
            "lead to a step of its own with args: { … }, and let a noop task there set_ctx",
        )
        return
    writes, _ = writes_of(draft, step, "ctx")
    if writes:
        if _reads_own(step, writes):
            _write_after(step, writes)
        else:
            write_at_end(tasks, writes)
        _tell(draft, writes, "set of the step")


def _reads_own(step: Mapping, writes: list[Write]) -> bool:
    """Whether a value reads what is written by the very rule that would write it (TASK-5)."""
    tasks = tasks_in(own_tasks(step))
    inner = tasks_in(tasks_of(tasks[-1]))  # what iterations write together is there after them
    thens = [
        (task, then_of(rule) or Mapping()) for task in (*tasks, *inner) for rule in rules_of(task)
    ]
    written = {
        (scope, slot.key)
        for task, then in thens
        if task is tasks[-1] or task in inner or then.text("do") == "break"
        for word, scope in _WORDS[1:]
        for slot in (then.mapping(word) or Mapping()).slots
    }
    keys = {key for _, key in written}
    return any(
        (_SCOPES[str(path[0])], path[1]) in written
        if path[0] in _SCOPES and len(path) > 1
        else path[0] in keys
        for one in writes
        for text in _templates_of(one.slot)
        for path in paths_read(text.text)
    )


def _templates_of(slot: TreeSlot) -> list[TreeSlot]:
    return [slot] if isinstance(slot.node, Scalar) else list(templates_below(slot.node))


def _write_after(step: Mapping, writes: list[Write]) -> None:
    """A task of its own at the end, for what can be read only when the others have written."""
    like = writes[0].slot
    bare = like.bare
    label = free_label(step, "keep")
    for task in own_tasks(step):
        for rule in rules_of(task.node) if isinstance(task.node, Mapping) else ():
            then = then_of(rule)
            if then is not None and then.text("do") == "break":
                then.put("do", "jump")
                then.put("to", label, at=then.place("do") + 1)
    made = plain_task("noop", bare)
    add_task(step, label, made, bare)
    write_on_success(made, writes, last=True, goes_on=False)


def write_at_end(tasks: list[TreeSlot], writes: list[Write]) -> None:
    """Writes of a whole pipeline: at its last task, and where it ends before."""
    for number, slot in enumerate(tasks, 1):
        task, last = slot.node, number == len(tasks)
        assert isinstance(task, Mapping)
        breaks = any((then_of(rule) or Mapping()).text("do") == "break" for rule in rules_of(task))
        if last or breaks:
            again = [one._replace(slot=_again(one.slot)) for one in writes]
            write_on_success(task, writes if last else again, last=last, goes_on=False)


def _again(slot: TreeSlot) -> TreeSlot:
    return TreeSlot(deepcopy(slot.node), line=slot.line, path=slot.path)


def _tell(draft: Draft, writes: list[Write], what: str) -> None:
    for write in writes:
        draft.tell(write.slot, f"{what}: {write.slot.key}", f"set_{write.scope} of a rule")


def set_of_arcs(draft: Draft, step: Mapping) -> None:
    """
    `set` of an arc: of the only one, it is the step's own; else a step in between writes it.

    A name without a scope is what the token carries.
    """
    arcs = arcs_of(step)
    for arc in arcs:
        for word, new in _ARC_WORDS:
            slot = arc.slot(word)
            if slot is not None and new not in arc:
                arc.rename(word, new)
                draft.tell(slot, f"{word} of an arc", new)
        writes, first = writes_of(draft, arc, "args")
        if first is None:
            continue
        carried = [one for one in writes if one.scope == "args"]
        kept = [one for one in writes if one.scope != "args"]
        for one in carried:
            made = arc.within("args", like=first).put(one.key, one.slot.node, like=one.slot)
            made.key_text = one.slot.key_text if one.slot.key == one.key else made.key_text
            draft.tell(one.slot, f"set of an arc: {one.slot.key}", "args", now=made)
        if kept and len(arcs) == 1 and "when" not in arc and _is_plain(step, kept):
            write_at_end(own_tasks(step), kept)
            _tell(draft, kept, "set of an arc")
        elif kept:
            _write_between(draft, step, arc, kept)


def _is_plain(step: Mapping, writes: list[Write]) -> bool:
    """Whether the step itself can write: it has tasks, no loop, and no value needs the event."""
    event = any(path[0] == "event" for one in writes for path in paths_read(one.slot.text))
    return "loop" not in step and bool(own_tasks(step)) and not event


def _write_between(draft: Draft, step: Mapping, arc: Mapping, writes: list[Write]) -> None:
    target, like = arc.text("step") or "", writes[0].slot
    name = fresh_step(draft, f"{step.text('step')}_to_{target}")
    carried = [slot.key for slot in (arc.mapping("args") or Mapping()).slots]
    forwarded = {key: f"{{{{ args.{key} }}}}" for key in carried if key is not None}
    args = arc.within("args", like=like)
    for one in writes:
        args.put(one.key, one.slot.node, like=one.slot)
    leads = arc.slot("step")
    assert leads is not None
    leads.say(name)
    sets = {one.key: f"{{{{ args.{one.key} }}}}" for one in writes}
    rule = {"else": {"then": {"do": "continue", "set_ctx": sets}}}
    onward: dict[str, object] = {"step": target}
    if forwarded:
        onward["args"] = flowing(forwarded)
    task = {"kind": "noop", "spec": {"policy": {"rules": [rule]}}}
    made = add_step(
        draft, step, {"step": name, "tool": [{"keep": task}], "next": {"arcs": [onward]}}, like
    )
    for one in writes:
        draft.tell(
            one.slot, f"set of an arc: {one.slot.key}", f"set_ctx of step '{name}'", now=made
        )


# ── results that are read by name ──


def keep_task(draft: Draft, label: TreeSlot, at: TreeSlot) -> None:
    """A task's result, for those after it."""
    assert isinstance(label.node, Mapping)
    write = Write(
        "iter",
        label.key or "",
        TreeSlot(quoted("{{ outcome.result }}", at.line), line=at.line, path=at.path),
    )
    write_on_success(label.node, [write], last=False, goes_on=True)
    told = (f"the result of task '{label.key}'", f"iter.{label.key}")
    draft.tell(at, *told, now=write.slot, code="up-result")


def keep_step(draft: Draft, name: str, step: Mapping, at: TreeSlot) -> None:
    """A step's result, for the steps after it; a loop's is the list of its results."""
    slot = step.slot("step") or at
    write = Write(
        "ctx",
        name,
        TreeSlot(quoted("{{ outcome.result }}", slot.line), line=slot.line, path=slot.path),
    )
    write_at_end(own_tasks(step), [write])
    loop = step.mapping("loop")
    if loop is not None:
        policy = loop.within("spec", like=slot).within("policy", like=slot)
        policy.within("reduce", like=slot).put(name, "append")
    told = (f"the result of step '{name}'", f"ctx.{name}")
    draft.tell(slot, *told, now=write.slot, code="up-result")
