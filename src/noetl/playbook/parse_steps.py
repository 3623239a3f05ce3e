"""Steps: nodes → admission, join, loop, pipeline and router (ADM, LOOP, NEXT)."""

from typing import Any

from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from noetl.playbook import blocks
from noetl.playbook.limit_blocks import LIMIT, LIMIT_PER
from noetl.playbook.merging import spec_under
from noetl.playbook.model import (
    Admission,
    AdmitRule,
    Arc,
    Join,
    LeaseSpec,
    Limit,
    Loop,
    Router,
    Step,
)
from noetl.playbook.parse_loops import parse_loop
from noetl.playbook.parse_tasks import Defaults, parse_pipeline, read_rule
from noetl.playbook.reader import At, Reader
from noetl.playbook.retired import NEXT_LIST
from noetl.playbook.suggest import did_you_mean

BODY = ("tool", "next")
"""A step has one of them."""


def parse_step(reader: Reader, at: At, defaults: Defaults) -> Step | None:
    """One step; None where not even its name is known."""
    fields = reader.fields(blocks.STEP, at)
    if type(at.node) is not MappingNode:
        return None
    _check_body(reader, at)
    spec = spec_under(reader, fields.get("spec"), defaults.step, at)
    parts = _parse_spec(reader, spec) if spec is not None else {}
    if "loop" in fields:
        parts["loop"] = _parse_step_loop(reader, fields["loop"], defaults)
    tool = fields.get("tool") or _older_tool(reader, at)
    if tool is not None:
        parts["tasks"] = parse_pipeline(reader, tool, defaults)
    if "next" in fields:
        parts["router"] = _parse_router(reader, fields["next"], defaults)
    name = reader.value(fields["step"]) if "step" in fields else ""
    desc = reader.value(fields["desc"]) if "desc" in fields else ""
    return Step(place=reader.place(at), name=name, desc=desc, **parts)


def _check_body(reader: Reader, at: At) -> None:
    """VAL-1: a step has `tool` or `next`; an older word may stand for either."""
    given = reader.value(at)
    if id(at.node) in reader.older or given.get("tool") or given.get("next"):
        return
    if any(did_you_mean(key, BODY, "") for key in given if key not in blocks.STEP.fields):
        return  # a misspelt key, which is told by itself
    reader.report_node(
        "empty-step",
        at.anchor,
        at.path,
        f"the step '{given.get('step')}' has neither 'tool' nor 'next'",
        "add tool: [ { label: { kind: noop } } ], or next: { arcs: [ { step: … } ] }",
    )


def _older_tool(reader: Reader, at: At) -> At | None:
    """`tool` as one task without label: told already, read on for what is inside."""
    tool = reader.entries(at).get("tool")
    is_task = tool is not None and type(tool.node) is MappingNode and "kind" in reader.value(tool)
    return tool if is_task else None


def _parse_spec(reader: Reader, at: At) -> dict[str, Any]:
    fields = reader.fields(blocks.STEP_SPEC, at)
    parts: dict[str, Any] = {}
    if "timeout" in fields:
        parts["timeout"] = float(reader.value(fields["timeout"]))
    if "lease" in fields:
        lease = reader.fields(blocks.LEASE, fields["lease"])
        parts["lease"] = LeaseSpec(**{k: float(reader.value(v)) for k, v in lease.items()})
    if "join" in fields:
        parts["join"] = _parse_join(reader, fields["join"])
    if "limit" in fields:
        parts["limit"] = limit = parse_limit(reader, fields["limit"])
        if limit.over != "queue":
            reader.report(
                "limit-over",
                reader.entries(fields["limit"])["over"],
                f"a run of a step can only wait for its limit, found '{limit.over}'",
                "leave 'over' out, or give the limit to the executor: executor.spec.limit",
            )
    if "policy" in fields:
        policy = reader.fields(blocks.STEP_POLICY, fields["policy"])
        admit = reader.fields(blocks.ADMIT, policy["admit"]) if "admit" in policy else {}
        if "rules" in admit:
            parts["admission"] = _parse_admission(reader, policy["admit"], admit)
    return parts


def parse_limit(reader: Reader, at: At) -> Limit:
    """LIMIT-1: of a step, or of the executor."""
    fields = reader.fields(LIMIT, at)
    per = reader.fields(LIMIT_PER, fields.pop("per")) if "per" in fields else {}
    known = {key: reader.value(entry) for key, entry in (fields | per).items()}
    if not reader.entries(at).keys() & set(LIMIT.requires_any):
        reader.report(
            "empty-limit",
            at,
            "the limit sets no bound",
            "say how many: at_once: 4, or per: { count: 100, seconds: 60 }",
        )
    return Limit(place=reader.place(at), **known)


def _parse_join(reader: Reader, at: At) -> Join:
    fields = reader.fields(blocks.JOIN, at)
    sources = tuple(reader.value(fields["from"])) if "from" in fields else ()
    mode: Any = reader.value(fields["mode"]) if "mode" in fields else "all"
    return Join(place=reader.place(at), sources=sources, mode=mode)


def _parse_admission(reader: Reader, at: At, fields: dict[str, At]) -> Admission:
    elements = reader.elements(fields["rules"])
    rules: list[AdmitRule] = []
    for element in elements:
        last = element is elements[-1]
        guarded = read_rule(reader, blocks.ADMIT_RULE, blocks.ADMIT_ELSE, element, last)
        if guarded is None:
            continue
        when, then_at = guarded
        then = reader.fields(blocks.ADMIT_THEN, then_at) if then_at is not None else {}
        allow = reader.value(then["allow"]) if "allow" in then else True
        rules.append(AdmitRule(place=reader.place(element), when=when, allow=allow))
    known = {key: reader.value(fields[key]) for key in ("mode", "on_deny") if key in fields}
    return Admission(place=reader.place(at), rules=tuple(rules), **known)


def _parse_step_loop(reader: Reader, at: At, defaults: Defaults) -> Loop:
    fields = reader.fields(blocks.LOOP, at)
    spec = spec_under(reader, fields.get("spec"), defaults.loop, at)
    return parse_loop(reader, at, fields, spec, blocks.LOOP_SPEC, blocks.LOOP_POLICY)


def _parse_router(reader: Reader, at: At, defaults: Defaults) -> Router:
    if type(at.node) is not MappingNode:
        return _older_router(reader, at)
    fields = reader.fields(blocks.NEXT, at)
    spec = spec_under(reader, fields.get("spec"), defaults.next, at)
    knobs = reader.fields(blocks.NEXT_SPEC, spec) if spec is not None else {}
    known: dict[str, Any] = {}
    if "mode" in knobs:
        known["mode"] = reader.value(knobs["mode"])
    if "policy" in knobs:
        policy = reader.fields(blocks.NEXT_POLICY, knobs["policy"])
        if "on_failure" in policy:
            known["on_failure"] = reader.value(policy["on_failure"])
    arcs = _parse_arcs(reader, fields["arcs"]) if "arcs" in fields else ()
    return Router(place=reader.place(at), arcs=arcs, **known)


def _older_router(reader: Reader, at: At) -> Router:
    """`next` as a name or a list: told, and read on for what is inside."""
    reader.report_node(NEXT_LIST.code, at.anchor, at.path, NEXT_LIST.message, NEXT_LIST.hint)
    arcs: tuple[Arc, ...] = ()
    if type(at.node) is SequenceNode:
        mappings = [one for one in reader.elements(at) if type(one.node) is MappingNode]
        arcs = tuple(arc for one in mappings if (arc := _parse_arc(reader, one)))
    elif type(at.node) is ScalarNode:
        reader.places[f"{at.path}.step"] = at
        arcs = (Arc(place=reader.place(at), step=str(reader.value(at))),)
    return Router(place=reader.place(at), arcs=arcs)


def _parse_arcs(reader: Reader, at: At) -> tuple[Arc, ...]:
    return tuple(arc for element in reader.elements(at) if (arc := _parse_arc(reader, element)))


def _parse_arc(reader: Reader, at: At) -> Arc | None:
    fields = reader.fields(blocks.ARC, at)
    if "step" not in fields:
        return None
    known = {key: reader.value(entry) for key, entry in fields.items()}
    return Arc(place=reader.place(at), **known)
