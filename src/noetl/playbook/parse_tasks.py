"""Pipelines: nodes → tasks, policies, rules and directives (TASK, LOOP-7)."""

from collections.abc import Collection
from typing import Any

import msgspec
from yaml.nodes import MappingNode, SequenceNode

from noetl.kinds.table import KINDS
from noetl.playbook import blocks
from noetl.playbook.inputs import check_inputs, input_fields
from noetl.playbook.merging import spec_under
from noetl.playbook.model import Cache, Inner, Rule, Task, TaskSpec, Then, Timeout
from noetl.playbook.parse_loops import parse_loop
from noetl.playbook.reader import At, Reader
from noetl.playbook.retired import NAMED_TASK
from noetl.playbook.shape import Block

_LOOP_KEYS = ("mode", "max_in_flight")
_LOOP_POLICY_KEYS = ("exec", "on_failure", "reduce")
_ITERATOR_KEYS = ("in", "iterator", "tool")


class Defaults(msgspec.Struct, frozen=True):
    """`executor.spec.defaults` (DOC-4): what lies under each kind of spec."""

    step: At | None = None
    task: At | None = None
    loop: At | None = None
    next: At | None = None


def parse_pipeline(reader: Reader, at: At, defaults: Defaults) -> tuple[Task, ...]:
    """The tasks of a pipeline, in order; labels are unique (VAL-2)."""
    if type(at.node) is MappingNode:  # an older form, told already: read on for what is inside
        reader.older.add(id(at.node))
        return (parse_task(reader, at, "task", defaults),)
    tasks: list[Task] = []
    labels: set[str] = set()
    for element in reader.elements(at):
        entry = _entry(reader, element)
        if entry is None:
            continue
        label, task_at = entry
        if label in labels:
            reader.report_node(
                "duplicate-label",
                task_at.anchor,
                task_at.path,
                f"the label '{label}' appears twice in this pipeline",
                "rename one of the two tasks; jumps go by label",
            )
        labels.add(label)
        tasks.append(parse_task(reader, task_at, label, defaults))
    return tuple(tasks)


def _entry(reader: Reader, at: At) -> tuple[str, At] | None:
    """Label and task of one entry `label: task`."""
    if type(at.node) is MappingNode:
        entries = reader.entries(at)
        if "kind" in entries and (empty := _empty_label(reader, entries)) is not None:
            reader.report(
                "task-shape",
                entries["kind"],
                f"'kind' is at the level of the label '{empty}', expected below it",
                f"indent it, and all that belongs to the task, deeper than '{empty}'",
            )
            rest = [pair for pair in at.node.value if pair[0].value != empty]
            return empty, _with(reader, at, rest)
        if "kind" in entries:
            reader.report_node(
                NAMED_TASK.code, at.anchor, at.path, NAMED_TASK.message, NAMED_TASK.hint
            )
            name = reader.value(entries["name"]) if "name" in entries else None
            return (name if isinstance(name, str) else "task", _without_name(reader, at))
        if entries and (beside := _beside_its_task(reader, entries)):
            label, key = beside
            reader.report_node(
                "task-shape",
                entries[key].anchor,
                entries[key].path,
                f"'{key}' is at the level of the label '{label}', expected below it",
                f"indent it deeper than '{label}', beside its 'kind'; a task of its own begins "
                f"with '- {key}:'",
            )
            return label, entries[label]
        if len(entries) == 1:
            (label, task_at) = next(iter(entries.items()))
            if type(task_at.node) is MappingNode:
                return label, task_at
            at = task_at
    if id(at.node) not in reader.tree.broken:
        reader.report(
            "task-shape",
            at,
            "an entry of the pipeline is not one label with its task",
            "write - label: { kind: … }",
        )
    return None


def _empty_label(reader: Reader, entries: dict[str, At]) -> str | None:
    """The first key, if it has no value: a label whose task was not indented."""
    first = next(iter(entries))
    return first if first != "kind" and reader.value(entries[first]) is None else None


def _beside_its_task(reader: Reader, entries: dict[str, At]) -> tuple[str, str] | None:
    """A label with its task, and the first key that is beside them."""
    (label, task_at), *rest = entries.items()
    if not rest or not _is_task(reader, task_at) or _is_task(reader, rest[0][1]):
        return None
    return label, rest[0][0]


def _is_task(reader: Reader, at: At) -> bool:
    return type(at.node) is MappingNode and "kind" in reader.entries(at)


def _without_name(reader: Reader, at: At) -> At:
    return _with(reader, at, [pair for pair in at.node.value if pair[0].value != "name"])


def _with(reader: Reader, at: At, pairs: list[Any]) -> At:
    node = MappingNode(at.node.tag, pairs, at.node.start_mark, at.node.end_mark)
    return At(at.anchor, reader.tree.keep(node), at.path)


def parse_task(reader: Reader, at: At, label: str, defaults: Defaults) -> Task:
    """One task: kind, spec, and the inputs of its kind."""
    reader.places[at.path] = at
    fields = reader.fields(blocks.TASK, at, _inputs_named(reader, at))
    kind = str(reader.value(fields.pop("kind"))) if "kind" in fields else ""
    spec_at = fields.pop("spec", None)
    inputs = {key: entry for key, entry in fields.items() if key not in blocks.TASK.fields}
    if kind:
        _check_kind(reader, at, kind, inputs)
    place = reader.place(at)
    if kind == "iterator":
        return _parse_iterator(reader, at, label, spec_at, inputs, defaults)
    spec = spec_under(reader, spec_at, defaults.task, at)
    return Task(
        place=place,
        label=label,
        kind=kind,
        inputs={key: reader.value(entry) for key, entry in inputs.items()},
        spec=_parse_spec(reader, blocks.TASK_SPEC, blocks.POLICY, spec, _inherits(reader, spec_at)),
    )


def _inputs_named(reader: Reader, at: At) -> Collection[str]:
    """The inputs of the task's kind: `endpoint` is an older word, but not for `s3`."""
    if type(at.node) is not MappingNode:
        return ()
    kind = reader.entries(at).get("kind")
    known = reader.kinds.get(str(reader.value(kind))) if kind is not None else None
    return () if known is None else input_fields(known.inputs)


def _check_kind(reader: Reader, at: At, kind: str, inputs: dict[str, At]) -> None:
    known = reader.kinds.get(kind)
    if known is not None and known.fault is None:
        check_inputs(reader, known, at, inputs)
        return
    if known is not None:
        message = f"the tool kind '{kind}' cannot be used: {known.fault}"
        hint = "repair the plugin or install it again; other kinds are not touched by it"
        if kind in KINDS:
            hint = "poll instead: a rule with do: jump and a delay"
    else:
        message = f"no tool kind is called '{kind}'"
        hint = reader.suggest(kind, reader.kinds, f"kinds: {', '.join(reader.kinds)}")
    reader.report("unknown-kind", reader.entries(at)["kind"], message, hint)
    for entry in inputs.values():
        reader.templates(entry)


def _parse_iterator(
    reader: Reader,
    at: At,
    label: str,
    spec_at: At | None,
    inputs: dict[str, At],
    defaults: Defaults,
) -> Task:
    """LOOP-7: its `spec` holds the knobs of the task and of the loop."""
    spec = spec_under(reader, spec_at, defaults.task, at)
    spec = spec_under(reader, spec, defaults.loop, at)
    inner = None
    if all(key in inputs for key in _ITERATOR_KEYS):
        loop = parse_loop(reader, at, inputs, spec, blocks.ITERATOR_SPEC, blocks.ITERATOR_POLICY)
        tool = inputs["tool"]
        tasks = parse_pipeline(reader, tool, defaults) if _is_list(tool) else ()
        inner = Inner(loop=loop, tasks=tasks)
    return Task(
        place=reader.place(at),
        label=label,
        kind="iterator",
        spec=_parse_spec(
            reader, blocks.ITERATOR_SPEC, blocks.ITERATOR_POLICY, spec, _inherits(reader, spec_at)
        ),
        inner=inner,
    )


def _is_list(at: At) -> bool:
    return type(at.node) is SequenceNode


def _inherits(reader: Reader, own: At | None) -> bool:
    """Whether rules that a task has can only be the executor's default (DOC-4)."""
    spec = reader.value(own) if own is not None else None
    policy = spec.get("policy") if isinstance(spec, dict) else None
    return not (isinstance(policy, dict) and "rules" in policy)


def _parse_spec(
    reader: Reader, block: Block, policy_block: Block, at: At | None, inherits: bool
) -> TaskSpec:
    if at is None:
        return TaskSpec()
    fields = reader.fields(block, at)
    rules = None
    if "policy" in fields:
        policy = reader.fields(policy_block, fields["policy"])
        rules = parse_rules(reader, policy["rules"]) if "rules" in policy else None
    known: dict[str, Any] = {
        key: reader.value(fields[key])
        for key in ("pool", "client_retries", "resources")
        if key in fields
    }
    if "timeout" in fields:
        given = reader.value(fields["timeout"])
        if isinstance(given, str):
            known["timeout_by"] = given
        else:
            known["timeout"] = _parse_timeout(reader, fields["timeout"])
    if "cache" in fields:
        cache = reader.fields(blocks.CACHE, fields["cache"])
        if cache.keys() == blocks.CACHE.fields.keys():
            known["cache"] = Cache(
                place=reader.place(fields["cache"]),
                key=reader.value(cache["key"]),
                ttl=float(reader.value(cache["ttl"])),
            )
    inherited = inherits and rules is not None
    return TaskSpec(rules=rules, inherited=inherited, **known)


def _parse_timeout(reader: Reader, at: At) -> Timeout:
    """TASK-7: a plain number is the total."""
    if type(at.node) is not MappingNode:
        return Timeout(total=float(reader.value(at)))
    fields = reader.fields(blocks.TIMEOUT, at)
    return Timeout(**{key: float(reader.value(entry)) for key, entry in fields.items()})


def parse_rules(reader: Reader, at: At) -> tuple[Rule, ...]:
    """The rules of a policy (TASK-2)."""
    rules: list[Rule] = []
    elements = reader.elements(at)
    for element in elements:
        guarded = read_rule(reader, blocks.RULE, blocks.ELSE, element, element is elements[-1])
        if guarded is not None:
            when, then_at = guarded
            then = _parse_then(reader, then_at) if then_at is not None else Then()
            rules.append(Rule(place=reader.place(element), when=when, then=then))
    return tuple(rules)


def read_rule(
    reader: Reader, block: Block, else_block: Block, at: At, last: bool
) -> tuple[Any, At | None] | None:
    """Guard and `then` of a rule; the guard is None for `else` (VAL-2)."""
    fields = reader.fields(block, at)
    if type(at.node) is not MappingNode:
        return None
    given = reader.value(at)
    if "else" in given and not last:
        reader.report_node(
            "else-not-last",
            reader.entries(at)["else"].anchor,
            at.path,
            "'else' is not the last rule; those below it never match",
            "move it to the end of the list",
        )
    if not _rule_is_whole(reader, at, given):
        return None
    if "else" in given:
        if "else" not in fields:
            return None
        return None, reader.fields(else_block, fields["else"]).get("then")
    when = reader.value(fields["when"]) if "when" in fields else False
    return when, fields.get("then")


def _rule_is_whole(reader: Reader, at: At, given: dict[str, Any]) -> bool:
    has_when, has_else, has_then = ("when" in given, "else" in given, "then" in given)
    if id(at.node) in reader.older or (has_when != has_else and has_then == has_when):
        empty_else = has_else and given["else"] is None
        if not empty_else:
            return True
    if has_when and has_else:
        said = "a rule has both 'when' and 'else', expected one of them"
    elif has_when:
        said = "a rule has 'when' but no 'then'"
    elif has_else:
        said = "'else' holds no 'then' of its own"
    else:
        said = "a rule has neither 'when' nor 'else', expected one of them"
    reader.report_node(
        "rule-shape",
        at.anchor,
        at.path,
        said,
        'write { when: "{{ … }}", then: { … } }, and { else: { then: { … } } } last',
    )
    return False


def _parse_then(reader: Reader, at: At) -> Then:
    if type(at.node) is not MappingNode:
        reader.fields(blocks.THEN, at)
        return Then()
    fields = reader.fields(blocks.THEN, at)
    known = {key: reader.value(entry) for key, entry in fields.items()}
    then = msgspec.convert(known, Then, strict=False)
    given = reader.value(at)
    if then.do == "retry" and "attempts" not in given:
        reader.report_node(
            "retry-attempts",
            at.anchor,
            at.path,
            "a retry lacks 'attempts', the greatest number of runs in all",
            "add attempts: 3 (1 or more)",
        )
    if then.do == "jump" and "to" not in given:
        reader.report_node(
            "jump-target",
            at.anchor,
            at.path,
            "a jump lacks 'to', the label of the task to go to",
            "add to: label",
        )
    return then
