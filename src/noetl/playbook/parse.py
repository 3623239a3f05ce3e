"""The document: nodes → Playbook. Every fault is told; what fits is kept for the checks."""

from typing import Any

from yaml.nodes import MappingNode, SequenceNode

from noetl.playbook import blocks
from noetl.playbook.model import Executor, KeychainEntry, Limits, Playbook, Step, Task
from noetl.playbook.parse_loops import parse_reduce
from noetl.playbook.parse_steps import parse_limit, parse_step
from noetl.playbook.parse_tasks import Defaults, parse_task
from noetl.playbook.reader import At, Reader
from noetl.playbook.retired import WORKBOOK_LIST
from noetl.playbook.shape import Block


def parse(reader: Reader) -> Playbook | None:
    """The playbook as far as it could be read; None where the document is no mapping."""
    root = reader.tree.root
    at = At(root, root, "")
    fields = reader.fields(blocks.ROOT, at)
    if type(root) is not MappingNode:
        return None
    metadata = reader.fields(blocks.METADATA, fields["metadata"]) if "metadata" in fields else {}
    executor, defaults = _parse_executor(reader, fields.get("executor"))
    known: dict[str, Any] = {}
    if "workload" in fields:
        known["workload"] = reader.value(fields["workload"])
    if "keychain" in fields:
        known["keychain"] = _parse_keychain(reader, fields["keychain"])
    if "workbook" in fields:
        known["workbook"] = _parse_workbook(reader, fields["workbook"], defaults)
    return Playbook(
        place=reader.place(at),
        name=reader.value(metadata["name"]) if "name" in metadata else "",
        path=reader.value(metadata["path"]) if "path" in metadata else "",
        metadata=reader.value(fields["metadata"]) if metadata else {},
        steps=_parse_workflow(reader, fields["workflow"], defaults) if "workflow" in fields else (),
        executor=executor,
        **known,
    )


def _parse_executor(reader: Reader, at: At | None) -> tuple[Executor, Defaults]:
    fields = reader.fields(blocks.EXECUTOR, at) if at is not None else {}
    known = {key: reader.value(fields[key]) for key in ("kind",) if key in fields}
    defaults = Defaults()
    if "spec" in fields:
        spec = reader.fields(blocks.EXECUTOR_SPEC, fields["spec"])
        for key in ("pool", "entry_step", "final_step", "isolation"):
            if key in spec:
                known[key] = reader.value(spec[key])
        if "policy" in spec:
            known |= _parse_policy(reader, spec["policy"])
        if "limit" in spec:
            known["limit"] = parse_limit(reader, spec["limit"])
        if "defaults" in spec:
            defaults = _parse_defaults(reader, spec["defaults"])
    return Executor(**known), defaults


def _parse_policy(reader: Reader, at: At) -> dict[str, Any]:
    fields = reader.fields(blocks.EXECUTOR_POLICY, at)
    known: dict[str, Any] = {}
    if "fail_fast" in fields:
        known["fail_fast"] = reader.value(fields["fail_fast"])
    if "reduce" in fields:
        known["reduce"] = parse_reduce(reader, fields["reduce"])
    if "results" in fields:
        results = reader.fields(blocks.RESULTS, fields["results"])
        known |= {key: reader.value(entry) for key, entry in results.items()}
    if "limits" in fields:
        limits = reader.fields(blocks.LIMITS, fields["limits"])
        known["limits"] = Limits(**{key: reader.value(entry) for key, entry in limits.items()})
    return known


_DEFAULT_BLOCKS = {
    "step": blocks.STEP_SPEC,
    "task": blocks.TASK_SPEC,
    "loop": blocks.LOOP_SPEC,
    "next": blocks.NEXT_SPEC,
}


def _parse_defaults(reader: Reader, at: At) -> Defaults:
    """DOC-4: read here once, so that faults are told here, then merged under each spec."""
    fields = reader.fields(blocks.DEFAULTS, at)
    return Defaults(
        **{name: _sound(reader, entry, _DEFAULT_BLOCKS[name]) for name, entry in fields.items()}
    )


def _sound(reader: Reader, at: At, block: Block) -> At:
    """A default with only those keys that fit: the others are told here, and merged nowhere."""
    pairs = [(entry.anchor, entry.node) for entry in reader.fields(block, at).values()]
    node = MappingNode(at.node.tag, pairs, at.node.start_mark, at.node.end_mark)
    return At(at.anchor, reader.tree.keep(node), at.path)


def _parse_workflow(reader: Reader, at: At, defaults: Defaults) -> tuple[Step, ...]:
    steps = (parse_step(reader, element, defaults) for element in reader.elements(at))
    return tuple(step for step in steps if step is not None)


def _parse_keychain(reader: Reader, at: At) -> tuple[KeychainEntry, ...]:
    entries: list[KeychainEntry] = []
    names: set[str] = set()
    for element in reader.elements(at):
        fields = reader.fields(blocks.KEYCHAIN_ENTRY, element)
        known = {key: reader.value(fields.pop(key)) for key in _KEYS if key in fields}
        if "name" not in known or "kind" not in known:
            continue
        if known["name"] in names:
            reader.report(
                "duplicate-credential",
                reader.entries(element)["name"],
                f"the name '{known['name']}' appears twice in the keychain",
                "rename one of the two; tasks find entries by name",
            )
        names.add(known["name"])
        inner = fields.pop("fields", None)
        rest = {key: reader.value(entry) for key, entry in fields.items()}
        rest |= reader.value(inner) if inner is not None else {}
        entries.append(KeychainEntry(place=reader.place(element), fields=rest, **known))
    return tuple(entries)


_KEYS = ("name", "kind", "provider", "key")


def _parse_workbook(reader: Reader, at: At, defaults: Defaults) -> dict[str, Task]:
    if type(at.node) is SequenceNode:
        word = WORKBOOK_LIST
        reader.report_node(word.code, at.anchor, at.path, word.message, word.hint)
        return _older_workbook(reader, at, defaults)
    fields = reader.fields(blocks.WORKBOOK, at)
    if "tasks" not in fields:
        return {}
    return {
        name: parse_task(reader, entry, name, defaults)
        for name, entry in reader.entries(fields["tasks"]).items()
    }


def _older_workbook(reader: Reader, at: At, defaults: Defaults) -> dict[str, Task]:
    """A list of `{name, tool}`: told already, read on so that its names are known."""
    tasks: dict[str, Task] = {}
    for element in reader.elements(at):
        entries = reader.entries(element) if type(element.node) is MappingNode else {}
        name = reader.value(entries["name"]) if "name" in entries else None
        if isinstance(name, str) and "tool" in entries:
            tasks[name] = parse_task(reader, entries["tool"], name, defaults)
    return tasks
