"""The outer shapes of the case dialect: metadata, workbook, empty inputs, loops (DIA-S2)."""

import re

from noetl.playbook.dialects.draft import Draft, shown
from noetl.playbook.dialects.pipeline import is_empty
from noetl.playbook.dialects.tree import Mapping, TreeSlot

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
