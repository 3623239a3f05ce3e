"""The outer forms of public playbooks: `tool`, its entries, workbook, loop, executor (DIA-UP)."""

import re

from noetl.kinds.table import KINDS
from noetl.playbook.dialects.draft import Draft, shown
from noetl.playbook.dialects.spelling import spelled
from noetl.playbook.dialects.tree import Mapping, Scalar, Sequence, TreeSlot, flowing

_PROFILES = frozenset({"local", "distributed"})
_ENDS = frozenset({"end", "stop", "continue", "ignore", "skip", "complete", "none"})
_FAILS = frozenset({"fail", "error", "raise"})
_WORK_KEYS = frozenset({"tool", "next", "case", "pipe", "call", "loop", "sink", "kind", "type"})


_UNFIT = re.compile(r"[^\w./-]+")


def path_of_metadata(draft: Draft, root: Mapping) -> None:
    """`metadata.path` is required; a playbook without one is found by its name."""
    metadata = root.mapping("metadata") or Mapping()
    name = metadata.slot("name")
    if name is None or not name.text or "path" in metadata:
        return
    path = _UNFIT.sub("-", name.text).strip("-/") or "playbook"
    slot = metadata.put("path", path, at=metadata.place("name") + 1)
    slot.line, slot.path = name.line, "metadata"
    draft.tell(name, "no path", f"path: {path}", now=slot)


# ── executor ──


def executor_words(draft: Draft, root: Mapping) -> None:
    """`profile`, `version`, `requires`: every runtime takes every playbook."""
    executor = root.mapping("executor")
    if executor is None:
        return
    for word in ("profile", "version", "requires"):
        slot = executor.slot(word)
        if slot is None:
            continue
        if word == "profile" and slot.text in _PROFILES and "kind" not in executor:
            executor.rename("profile", "kind")
            draft.tell(slot, "executor.profile", "executor.kind")
        else:
            executor.pop(word)
            draft.tell(slot, f"executor.{word}", "removed")
    _leaf_is_error(draft, executor)
    _defaults_of_policy(draft, executor)
    if not executor.slots and not executor.tail:
        root.pop("executor")


def _leaf_is_error(draft: Draft, executor: Mapping) -> None:
    spec = executor.mapping("spec")
    slot = spec.slot("no_next_is_error") if spec is not None else None
    if spec is None or slot is None:
        return
    if isinstance(slot.node, Scalar) and slot.node.value is True:
        draft.refuse(
            slot,
            "'no_next_is_error' makes every last step a failure, which has no counterpart",
            "remove it; where no match is a failure, add an arc without when to a step that fails",
        )
        return
    spec.pop("no_next_is_error")
    draft.tell(slot, "executor.spec.no_next_is_error", "removed")
    if not spec.slots:
        executor.pop("spec")


def _defaults_of_policy(draft: Draft, executor: Mapping) -> None:
    """`spec.policy.defaults` → `spec.defaults`."""
    spec = executor.mapping("spec")
    policy = spec.mapping("policy") if spec is not None else None
    slot = policy.slot("defaults") if policy is not None else None
    if spec is None or policy is None or slot is None or "defaults" in spec:
        return
    policy.pop("defaults")
    spec.slots.insert(spec.place("policy"), slot)
    if not policy.slots:
        spec.pop("policy")
    draft.tell(slot, "executor.spec.policy.defaults", "executor.spec.defaults")


def root_vars(draft: Draft, root: Mapping) -> None:
    """`vars` of the root: inputs with their defaults, which is what the workload is."""
    slot = root.slot("vars")
    if slot is None or not isinstance(slot.node, Mapping):
        return
    given = root.mapping("workload")
    draft.inputs = set(slot.node.keys())
    if given is None:
        root.rename("vars", "workload")
    else:
        root.pop("vars")
        given.flow = False
        given.slots += [one for one in slot.node.slots if (one.key or "") not in given]
    draft.tell(slot, "vars", "workload", now=root.slot("workload"))


# ── loop ──


def loop_words(draft: Draft, step: Mapping) -> None:
    """`collection` and `element`."""
    loop = step.mapping("loop")
    if loop is None:
        return
    for old, new in (("collection", "in"), ("element", "iterator")):
        slot = loop.slot(old)
        if slot is not None and new not in loop:
            loop.rename(old, new)
            draft.tell(slot, f"loop.{old}", f"loop.{new}")


def knobs_of_loop(draft: Draft, step: Mapping) -> None:
    """`mode` → `spec.mode`; `async` is parallel."""
    loop = step.mapping("loop") or Mapping()
    for key in ("mode", "max_in_flight"):
        slot = loop.slot(key)
        if slot is None:
            continue
        at = loop.place(key)
        loop.pop(key)
        spec = loop.mapping("spec")
        if spec is None:
            spec = Mapping(line=slot.line, flow=True)
            loop.put("spec", spec, like=slot, at=at).gap = " "
        spec.slots.append(slot)
        draft.tell(slot, key, f"spec.{key}")
    mode = (loop.mapping("spec") or Mapping()).slot("mode")
    if mode is not None and mode.text == "async":
        mode.say("parallel")
        draft.tell(mode, "mode: async", "mode: parallel")


# ── tool ──


def tool_as_list(draft: Draft, step: Mapping) -> None:
    """`tool` as one mapping, or entries with `name` and `kind` → tasks with labels."""
    if "step" not in step:
        return
    _label_tasks(draft, step, step.text("step") or "task")


def _label_tasks(draft: Draft, holder: Mapping, label: str) -> None:
    slot = holder.slot("tool")
    if slot is None:
        return
    if isinstance(slot.node, Mapping) and _is_task(slot.node):
        task = slot.node
        named = None if _takes_name(task) else task.pop("name")
        key = TreeSlot(task, named.text if named and named.text else label, line=slot.line)
        key.key_text, key.path = key.key or "", slot.path
        slot.node = Sequence(
            [TreeSlot(Mapping([key], line=slot.line), line=slot.line)], line=slot.line
        )
        draft.tell(slot, "tool: { … }", f"tool: [ {key.key}: {{ … }} ]", now=key)
    if isinstance(slot.node, Sequence):
        for number, entry in enumerate(slot.node.slots, 1):
            _label_entry(draft, entry, f"task_{number}")
        for entry_mapping in slot.node.mappings():
            for one in entry_mapping.slots:
                if isinstance(one.node, Mapping):
                    _label_tasks(draft, one.node, one.key or "task")


def _is_task(node: Mapping) -> bool:
    return any(isinstance(node.node(key), Scalar) for key in ("kind", "type"))


def _takes_name(task: Mapping) -> bool:
    """Whether `name` is an input of the kind, and not the task's own."""
    kind = KINDS.get(task.text("kind") or "")
    return kind is not None and "name" in kind.inputs.__struct_fields__ and "task" not in task


def _label_entry(draft: Draft, entry: TreeSlot, fallback: str) -> None:
    """`- name: x, kind: …` → `- x: { kind: … }`."""
    task = entry.node
    if not isinstance(task, Mapping) or not _is_task(task):
        return
    word = next((one for one in ("name", "label", "id") if one in task), None)
    named = task.slot(word) if word is not None else None
    if word is not None and not (word == "name" and _takes_name(task)):
        task.pop(word)
    label = named.text if named is not None and named.text else fallback
    key = TreeSlot(task, label, label, line=entry.line, path=entry.path)
    task.indent = 2
    entry.node = Mapping([key], line=entry.line)
    draft.tell(entry, f"- {word or 'kind'}: …", f"- {label}: {{ … }}", now=key)


def empty_step(draft: Draft, step: Mapping) -> None:
    """A step with nothing but its name does nothing, and says so."""
    name = step.slot("step")
    if name is None or any(key in step for key in _WORK_KEYS):
        return
    task = TreeSlot(flowing({"kind": "noop"}, name.line), name.text or "task", line=name.line)
    task.key_text = spelled(task.key)
    made = step.put("tool", [TreeSlot(Mapping([task], line=name.line), line=name.line)])
    made.line, made.path = name.line, name.path
    draft.tell(name, "a step without tool or next", "tool: [ { kind: noop } ]", now=made)


# ── router ──


def no_match(draft: Draft, step: Mapping) -> None:
    """`next.spec.on_no_match`: no match ends the branch; a failure needs a step that fails."""
    router = step.mapping("next")
    spec = router.mapping("spec") if router is not None else None
    slot = spec.slot("on_no_match") if spec is not None else None
    if router is None or spec is None or slot is None:
        return
    word = "none" if isinstance(slot.node, Scalar) and slot.node.value is None else slot.text
    if word in _FAILS and (spec.text("mode") or "exclusive") == "exclusive":
        _add_failing_arc(draft, step, router, slot)
    elif word not in _ENDS:
        draft.refuse(
            slot,
            f"on_no_match: {shown(word or '{ … }')} has no counterpart in this router",
            "add an arc without when as the last one, to a step that does what you want",
        )
        return
    else:
        draft.tell(slot, f"on_no_match: {word}", "removed")
    spec.pop("on_no_match")
    if not spec.slots:
        router.pop("spec")


def _add_failing_arc(draft: Draft, step: Mapping, router: Mapping, slot: TreeSlot) -> None:
    name = fresh_step(draft, f"{step.text('step')}_no_match")
    arcs = router.sequence("arcs")
    if arcs is None:
        return
    arc = arcs.append({"step": name}, line=slot.line)
    rules = [{"else": {"then": flowing({"do": "fail"})}}]
    task = {"kind": "noop", "spec": {"policy": {"rules": rules}}}
    add_step(draft, step, {"step": name, "tool": [{"no_match": task}]}, slot)
    draft.tell(slot, "on_no_match: fail", f"an arc to '{name}', which fails", now=arc)


def fresh_step(draft: Draft, name: str) -> str:
    taken = {step.text("step") for step in draft.steps()}
    while name in taken:
        name += "_"
    return name


def add_step(draft: Draft, after: Mapping, step: dict[str, object], like: TreeSlot) -> TreeSlot:
    """A new step below another one."""
    workflow = draft.root.sequence("workflow")
    assert workflow is not None
    made = workflow.append(step, line=like.line)
    made.path = like.path
    workflow.slots.remove(made)
    place = next(n for n, slot in enumerate(workflow.slots) if slot.node is after)
    assert isinstance(made.node, Mapping)
    blank = place > 0 and _opens_with_blank(workflow.slots[place])
    made.node.slots[0].before = [""] if blank else []
    workflow.slots.insert(place + 1, made)
    return made


def _opens_with_blank(slot: TreeSlot) -> bool:
    node = slot.node
    before = slot.before or (node.slots[0].before if isinstance(node, Mapping) else [])
    return before[:1] == [""]
