"""A workbook that is a list → tasks by name, with the arguments that their callers give (DIA)."""

from noetl.playbook.dialects.draft import Draft, below_path
from noetl.playbook.dialects.inputs import as_expression
from noetl.playbook.dialects.pipeline import fail_on_error, quoted, rule_slot, rules_in, then_node
from noetl.playbook.dialects.tree import Mapping, Sequence, TreeSlot

_NOTED = ("desc", "description")
_NO_NAME = {
    True: ("an entry of the workbook has no name", "write name: …, tool: { … }"),
    False: (
        "an entry of the workbook has no name of its own",
        "write workbook: { tasks: { name: { kind: … } } }",
    ),
}


def tasks_of_workbook(draft: Draft, root: Mapping) -> None:
    """A list of `{ name, tool }`, or of tasks with a name → tasks by name."""
    slot = root.slot("workbook")
    if slot is None or not isinstance(slot.node, Sequence):
        return
    tasks = Mapping(line=slot.line, tail=slot.node.tail)
    for entry in slot.node.slots:
        _place(draft, tasks, entry)
    made = Mapping(line=slot.line)
    placed = made.put("tasks", tasks)
    placed.line, placed.path = slot.line, slot.path
    slot.node = made
    if not draft.case:
        draft.left["workbook", id(root)] = slot
    code = "case-workbook" if draft.case else ""
    draft.tell(slot, "workbook: [ … ]", "workbook: { tasks: { … } }", code=code)


def _place(draft: Draft, tasks: Mapping, entry: TreeSlot) -> None:
    node = entry.node if isinstance(entry.node, Mapping) else Mapping()
    word = next((one for one in ("name", "task") if one in node), "")
    named = node.slot(word)
    if named is None or named.text in (None, "", *tasks.keys()):
        draft.refuse(entry, *_NO_NAME[draft.case])
        return
    task = _task_of(draft, node, entry)
    if task is None:
        return
    label = named.text or ""
    tasks.slots.append(TreeSlot(task, label, label, line=entry.line, path=entry.path))


def _task_of(draft: Draft, entry: Mapping, at: TreeSlot) -> Mapping | None:
    """`{ tool: { kind: … }, … }`, `{ tool: http, … }` and `{ kind: … }` → the task itself."""
    tool = entry.slot("tool")
    rest = [slot for slot in entry.slots if slot.key not in ("name", "task", "tool")]
    if tool is None or tool.text is not None:
        task = Mapping(line=at.line)
        if tool is not None:
            task.put("kind", tool.text)
    elif isinstance(tool.node, Mapping):
        task = tool.node
    else:
        draft.refuse(
            tool, "the tool of a workbook entry is not a mapping", "write tool: { kind: … }"
        )
        return None
    task.flow = task.flow and not draft.case and len(rest) == 0
    task.indent = 2
    for slot in rest:
        if slot.key == "sink":
            draft.left["workbook sink", id(task)] = slot
        elif slot.key in _NOTED:
            _left_out(draft, slot, "a task of the workbook has no description", "a comment")
        elif slot.key == "assert":
            draft.left["assert", id(task)] = slot
        else:
            task.slots.append(slot)
    return task


def _left_out(draft: Draft, slot: TreeSlot, message: str, instead: str) -> None:
    if draft.case:
        draft.refuse(slot, message, f"write it as {instead}", code="changed-meaning")
    else:
        draft.tell(slot, f"workbook {slot.key}", "removed")


def asserts_of_workbook(draft: Draft, root: Mapping) -> None:
    """`assert: { returns: [ … ] }` → a rule that fails where a key of the result is missing."""
    for label in (below_path(root, "workbook", "tasks") or Mapping()).slots:
        slot = draft.left.get(("assert", id(label.node)))
        if slot is None or not isinstance(label.node, Mapping):
            continue
        block = slot.node if isinstance(slot.node, Mapping) else Mapping()
        wanted = block.sequence("returns")
        keys = [one.text for one in wanted.slots if one.text] if wanted is not None else []
        if keys:
            rules = rules_in(label.node, slot)
            label.node.flow = False
            fail_on_error(rules, slot)
            missing = " or ".join(f"outcome.result['{key}'] is not defined" for key in keys)
            rules.slots.append(rule_slot(missing, then_node(slot, do="fail"), slot))
        draft.tell(slot, "workbook assert", "a rule that fails" if keys else "removed")


def lent_tasks(draft: Draft, root: Mapping) -> None:
    """A task of a workbook list got its caller's input as names; here it reads them from `args`."""
    if ("workbook", id(root)) not in draft.left:
        return
    calls = [task for task in draft.tasks() if task.text("kind") == "workbook"]
    for label in (below_path(root, "workbook", "tasks") or Mapping()).slots:
        task = label.node
        if not isinstance(task, Mapping) or task.text("kind") != "python":
            continue
        own = [call for call in calls if call.text("name") == label.key]
        given = [set((call.mapping("args") or Mapping()).keys()) for call in own]
        for name in dict.fromkeys(key for keys in given for key in sorted(keys)):
            _bind(draft, task, name, label, always=all(name in keys for keys in given))


def _bind(draft: Draft, task: Mapping, name: str, label: TreeSlot, *, always: bool) -> None:
    args = task.within("args", at=1)
    own = args.slot(name)
    former = as_expression(own.node) if own is not None else None
    if own is not None and former is None:
        return
    otherwise = "" if always else f" | default({former or 'none'})"
    text = f"{{{{ args.{name}{otherwise} }}}}"
    node = quoted(text, label.line)
    if own is None:
        own = args.put(name, node)
        own.line, own.path = label.line, label.path
    own.node = node
    draft.tell(own, f"{name} of the caller", text)
