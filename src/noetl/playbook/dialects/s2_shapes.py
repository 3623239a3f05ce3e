"""The outer shapes of the case dialect: metadata, workbook, empty inputs, loops (DIA-S2)."""

import re

from noetl.playbook.dialects.draft import Draft, respell, shown, templates_below
from noetl.playbook.dialects.names import Respelling, respelled
from noetl.playbook.dialects.s2_pipeline import is_empty
from noetl.playbook.dialects.tree import Mapping, Sequence, TreeSlot

_UNFIT = re.compile(r"[^\w./-]+")
# Inputs that the dialect writes out though they are empty.
_EMPTY_INPUTS = ("auth", "libs", "args", "params", "headers", "env")
_MODES = {"async": "parallel"}
_LOOP_KNOBS = ("mode", "max_in_flight")


def path_of_metadata(draft: Draft, root: Mapping) -> None:
    """`metadata.path` is required; a playbook without one is found by its name."""
    metadata = root.slot("metadata")
    if metadata is None or not isinstance(metadata.node, Mapping) or "path" in metadata.node:
        return
    name = metadata.node.slot("name")
    if name is None or not name.text:
        return
    path = _UNFIT.sub("-", name.text).strip("-/") or "playbook"
    slot = metadata.node.put("path", path, at=metadata.node.place("name") + 1)
    slot.line, slot.path = name.line, metadata.path
    draft.tell(name, "no path", f"path: {path}", now=slot)


def tasks_of_workbook(draft: Draft, root: Mapping) -> None:
    """A list of `{ name, tool }` → tasks by name."""
    workbook = root.slot("workbook")
    if workbook is None or not isinstance(workbook.node, Sequence):
        return
    tasks = Mapping(line=workbook.line)
    for entry in workbook.node.slots:
        _take_entry(draft, entry, tasks)
    made = Mapping(line=workbook.line)
    if tasks.slots:
        placed = made.put("tasks", tasks)
        placed.line, placed.path = workbook.line, workbook.path
    workbook.node = made
    draft.tell(workbook, "workbook: [ … ]", "workbook: { tasks: { … } }")
    if not tasks.slots:
        root.pop("workbook")


def _take_entry(draft: Draft, entry: TreeSlot, tasks: Mapping) -> None:
    node = entry.node
    name = node.slot("name") if isinstance(node, Mapping) else None
    if not isinstance(node, Mapping) or name is None or not name.text:
        draft.refuse(entry, "an entry of the workbook has no name", "write name: …, tool: { … }")
        return
    tool = node.slot("tool")
    kind = tool.text if tool is not None else None
    if kind is not None or tool is None:
        # `tool: http` and its inputs beside it.
        inputs = [slot for slot in node.slots if slot.key not in ("name", "tool", "sink", "desc")]
        task = Mapping(inputs, line=entry.line)
        _warn_of_description(draft, node)
        if kind is not None:
            task.put("kind", kind, at=0)
    elif isinstance(tool.node, Mapping):
        task = tool.node
        _refuse_rest(draft, node)
    else:
        draft.refuse(tool, "the tool of a workbook entry is no mapping", "write tool: { kind: … }")
        return
    task.flow = False
    slot = tasks.put(name.text, task)
    slot.line, slot.path = entry.line, entry.path
    slot.before = [*entry.before, *node.slots[0].before]
    if node.slots[0] is not name:
        slot.before += name.before
    slot.beside = name.beside
    sink = node.slot("sink")
    if sink is not None:
        draft.left["workbook sink", id(task)] = sink


def _warn_of_description(draft: Draft, entry: Mapping) -> None:
    slot = entry.slot("desc")
    if slot is not None:
        draft.refuse(
            slot,
            "a task of the workbook has no description",
            "write it as a comment",
            code="changed-meaning",
        )


def _refuse_rest(draft: Draft, entry: Mapping) -> None:
    _warn_of_description(draft, entry)
    for slot in entry.slots:
        if slot.key not in ("name", "tool", "sink", "desc"):
            draft.refuse(
                slot,
                f"'{slot.key}' of a workbook entry has no counterpart",
                "move it into the steps that call the task",
            )


def empty_inputs(draft: Draft, task: Mapping) -> None:
    """`auth: {}` and the like say nothing."""
    for key in _EMPTY_INPUTS:
        slot = task.slot(key)
        if slot is not None and isinstance(slot.node, Mapping) and is_empty(slot):
            task.pop(key)
            _leave_comments(task, slot)
            draft.tell(slot, f"{key}: {{}}", "")


def _leave_comments(task: Mapping, gone: TreeSlot) -> None:
    """Comments above what is gone go to what follows."""
    follows = next((slot for slot in task.slots if slot.line > gone.line), None)
    kept = [line for line in gone.before if line]
    if follows is not None:
        follows.before = [*kept, *follows.before]
    else:
        task.tail = [*kept, *task.tail]


def knobs_of_loop(draft: Draft, step: Mapping) -> None:
    """`mode` → `spec.mode`; `async` is parallel."""
    loop = step.mapping("loop")
    for key in _LOOP_KNOBS if loop is not None else ():
        assert loop is not None
        slot = loop.slot(key)
        if slot is None:
            continue
        old = shown(slot.text or getattr(slot.node, "value", ""))
        at = loop.place(key)
        loop.pop(key)
        spec = loop.mapping("spec")
        if spec is None:
            spec = Mapping(line=slot.line, flow=not (slot.before or slot.beside))
            held = loop.put("spec", spec, at=at)
            held.line, held.path = slot.line, slot.path
            held.before, held.beside = [line for line in slot.before if line], slot.beside
            slot.before, slot.beside = [], ""
            spec.flow = True
        new = _MODES.get(slot.text or "")
        if new is not None:
            slot.say(new)
        spec.slots.append(slot)
        draft.tell(slot, f"{key}: {old}", f"spec.{key}: {new or old}")
    _async_of_spec(draft, loop)


def _async_of_spec(draft: Draft, loop: Mapping | None) -> None:
    spec = loop.mapping("spec") if loop is not None else None
    mode = spec.slot("mode") if spec is not None else None
    if mode is not None and mode.text in _MODES:
        old = mode.text
        mode.say(_MODES[old or ""])
        draft.tell(mode, f"mode: {old}", f"mode: {mode.text}")


def names_of_loop(draft: Draft, step: Mapping) -> None:
    """The element and `loop_index` are below `iter`."""
    loop = step.mapping("loop")
    iterator = loop.text("iterator") if loop is not None else None

    def respell_path(path: tuple[str | int, ...]) -> Respelling | None:
        if path[0] == "loop_index" and iterator is not None:
            return Respelling(1, "iter.index")
        return Respelling(1, f"iter.{iterator}") if path[0] == iterator else None

    for key in ("tool", "args", "sink", "case", "retry", "vars"):
        node = step.node(key)
        for slot in templates_below(node) if node is not None and iterator is not None else ():
            old = slot.text
            if respell(slot, lambda text: respelled(text, respell_path)):
                draft.tell(slot, shown(old), shown(slot.text))
