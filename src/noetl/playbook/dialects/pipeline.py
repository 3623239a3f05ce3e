"""How a step of the case dialect gets its tasks and rules: the pipeline, written piece by piece."""

from collections.abc import Iterable
from typing import Any

from noetl.playbook.dialects.draft import Draft, below_path, own_tasks
from noetl.playbook.dialects.guards import FALSE, TRUE, all_of, guard_of
from noetl.playbook.dialects.shapes import compact
from noetl.playbook.dialects.spelling import spelled
from noetl.playbook.dialects.tree import Mapping, Node, Scalar, Sequence, TreeSlot, node_of, plain

IS_ERROR = "outcome.status == 'error'"


def main_task(holder: Mapping) -> Mapping | None:
    """The last task; the one task of a step in the case dialect."""
    tasks = tasks_in(own_tasks(holder))
    return tasks[-1] if tasks else None


def tool_task(holder: Mapping) -> Mapping | None:
    """The last task that does something: those that only decide or keep values follow it."""
    return acting_in(own_tasks(holder))


def acting_in(labels: Iterable[TreeSlot]) -> Mapping | None:
    """The task whose result a pipeline has: `noop` passes on what was before it (SCOPE-3)."""
    tasks = tasks_in(labels)
    found = [task for task in tasks if task.text("kind") != "noop"] or tasks
    return found[-1] if found else None


def tasks_in(labels: Iterable[TreeSlot]) -> list[Mapping]:
    return [slot.node for slot in labels if isinstance(slot.node, Mapping)]


def kind_of(draft: Draft, task: Mapping | None) -> str:
    """The kind of a task; of a call to the workbook, that of the task there."""
    kind = (task.text("kind") if task is not None else None) or ""
    if kind != "workbook" or task is None:
        return kind
    named = below_path(draft.root, "workbook", "tasks", task.text("name") or "")
    return (named.text("kind") if named is not None else None) or kind


def free_label(holder: Mapping, wish: str) -> str:
    """A label that no task of the pipeline has."""
    taken = {slot.key for slot in own_tasks(holder)}
    number, label = 2, wish
    while label in taken:
        label, number = f"{wish}_{number}", number + 1
    return label


def add_task(
    holder: Mapping, label: str, task: Node, like: TreeSlot, *, first: bool = False
) -> TreeSlot:
    """A task at the end of the pipeline, or at its beginning."""
    tools = holder.sequence("tool")
    if tools is None:
        tools = Sequence(line=like.line)
        at = min(holder.place("next"), holder.place("case"), len(holder.slots))
        holder.put("tool", tools, at=at).line = like.line
    tools.flow = False
    named = TreeSlot(task, key=label, key_text=spelled(label), line=like.line, path=like.path)
    entry = TreeSlot(Mapping([named], line=like.line), line=like.line, path=like.path)
    tools.slots.insert(0 if first else len(tools.slots), entry)
    return entry


def quoted(text: str, line: int) -> Scalar:
    """A template in double quotes, as playbooks have them."""
    if '"' in text or "\\" in text or "\n" in text:
        return Scalar(text, [_single(text)], "'", "", line)
    return Scalar(text, [f'"{text}"'], '"', "", line)


def _single(text: str) -> str:
    flat = " ".join(text.split("\n"))
    return "'" + flat.replace("'", "''") + "'"


def guard_slot(expression: str, like: TreeSlot) -> TreeSlot:
    """`when`, with an expression."""
    node: Node = quoted(guard_of(expression), like.line)
    if expression in (TRUE, FALSE):
        node = Scalar(expression == TRUE, [expression], "", "", like.line)
    return TreeSlot(node, key="when", key_text="when", line=like.line, path=like.path)


def rule_slot(guard: str | None, then: Mapping, like: TreeSlot) -> TreeSlot:
    """`{ when, then }`, or `{ else: { then } }` without a guard."""
    compact(then)
    if guard is None:
        inside = Mapping(line=like.line)
        inside.put("then", then)
        made = Mapping(line=like.line)
        made.put("else", inside)
        inside.flow = then.flow and not any(isinstance(s.node, Mapping) for s in then.slots)
    else:
        made = Mapping([guard_slot(guard, like)], line=like.line)
        made.put("then", then)
    for slot in made.slots:
        slot.line, slot.path = like.line, like.path
    return TreeSlot(made, line=like.line, path=like.path)


def then_node(like: TreeSlot, **keys: Any) -> Mapping:
    """A directive; empty writes are left out."""
    kept = {key: value for key, value in keys.items() if value not in (None, {})}
    node = node_of(kept, like.line)
    assert isinstance(node, Mapping)
    return node


def rules_in(task: Mapping, like: TreeSlot) -> Sequence:
    """The rules of a task, made where there are none."""
    policy = task.within("spec", like=like).within("policy", like=like)
    rules = policy.sequence("rules")
    if rules is None:
        rules = Sequence(line=like.line)
        slot = policy.put("rules", rules)
        slot.line, slot.path = like.line, like.path
    return rules


def fail_on_error(rules: Sequence, like: TreeSlot) -> None:
    """Where a policy matches nothing it goes on (TASK-2); the dialect failed on an error."""
    if not any(_is_failing(slot) for slot in rules.slots):
        last = bool(rules.slots) and "else" in (rules.mappings()[-1])
        rule = rule_slot(IS_ERROR, then_node(like, do="fail"), like)
        rules.slots.insert(len(rules.slots) - last, rule)


def only_fails(slot: TreeSlot) -> bool:
    """Whether it is the rule that fails on any error, and does nothing else."""
    then = slot.node.mapping("then") if isinstance(slot.node, Mapping) else None
    return _is_failing(slot) and then is not None and plain(then) == {"do": "fail"}


def _is_failing(slot: TreeSlot) -> bool:
    node = slot.node
    return isinstance(node, Mapping) and node.text("when") == guard_of(IS_ERROR)


def on_success(task: Mapping, like: TreeSlot, *, fails: bool = True) -> Mapping:
    """The directive of the last rule, `else`, which every other success comes to."""
    rules = rules_in(task, like)
    if fails:
        fail_on_error(rules, like)
    found = rules.mappings()[-1].mapping("else") if rules.mappings() else None
    if found is None:
        then = then_node(like)
        rules.slots.append(rule_slot(None, then, like))
        return then
    found.flow = False
    return found.within("then", like=like)


def write(then: Mapping, key: str, name: str, value: Node, like: TreeSlot) -> TreeSlot:
    """One write below `set_ctx` or `set_iter` of a directive."""
    then.flow = False
    target = then.within(key, like=like)
    slot = target.put(name, value, like=like)
    slot.key_text = like.key_text if like.key == name else slot.key_text
    return slot


def plain_task(kind: str, like: TreeSlot) -> Mapping:
    node = node_of({"kind": kind}, like.line)
    assert isinstance(node, Mapping)
    return node


def is_empty(slot: TreeSlot) -> bool:
    """`{}`, `[]`, or nothing."""
    return plain(slot.node) in ({}, [], None)


def guarded_error(expression: str) -> str:
    """True for a failure that an expression describes."""
    return all_of([IS_ERROR, expression])


def as_iterator(draft: Draft, step: Mapping) -> TreeSlot | None:
    """The loop of a step as its one task: a rule of it sees the list of results (TOOL-2)."""
    loop, tools = step.slot("loop"), step.slot("tool")
    if loop is None or tools is None:
        return None
    if not isinstance(loop.node, Mapping) or not isinstance(tools.node, Sequence):
        return None
    iterator = plain_task("iterator", loop)
    iterator.slots += loop.node.slots
    inner = TreeSlot(tools.node, key="tool", key_text="tool", line=tools.line, path=tools.path)
    tools.node.indent = None
    iterator.slots.append(inner)
    label = f"each_{loop.node.text('iterator') or 'element'}"
    named = TreeSlot(iterator, key=label, key_text=spelled(label), line=loop.line, path=loop.path)
    tools.node = node_of([TreeSlot(node_of({label: named}, loop.line), line=loop.line)], loop.line)
    step.pop("loop")
    draft.left["listed", id(iterator)] = loop
    draft.tell(loop, "loop", f"tool: [ {{ {label}: {{ kind: iterator }} }} ]", now=named)
    return named
