"""Loops: nodes → the collection, the name of its element, and how iterations run (LOOP)."""

from typing import Any

from noetl.expression.syntax import is_template
from noetl.playbook import blocks
from noetl.playbook.fitting import shown
from noetl.playbook.model import Loop
from noetl.playbook.reader import At, Reader
from noetl.playbook.shape import Block
from noetl.playbook.suggest import listed


def parse_loop(
    reader: Reader,
    at: At,
    fields: dict[str, At],
    spec: At | None,
    spec_block: Block,
    policy_block: Block,
) -> Loop:
    """The loop of a step or of an `iterator` task; what is missing was told already."""
    knobs = reader.fields(spec_block, spec) if spec is not None else {}
    policy = reader.fields(policy_block, knobs["policy"]) if "policy" in knobs else {}
    known: dict[str, Any] = {
        key: reader.value(source[key])
        for source, keys in ((knobs, ("mode", "max_in_flight")), (policy, ("exec", "on_failure")))
        for key in keys
        if key in source
    }
    if "reduce" in policy:
        known["reduce"] = parse_reduce(reader, policy["reduce"])
    if "in" in fields:
        _check_collection(reader, fields["in"])
    return Loop(
        place=reader.place(at),
        items=reader.value(fields["in"]) if "in" in fields else [],
        iterator=_parse_iterator_name(reader, fields),
        **known,
    )


def _check_collection(reader: Reader, at: At) -> None:
    value = reader.value(at)
    if isinstance(value, str) and not is_template(value):
        reader.report(
            "wrong-value",
            at,
            f"'in' is {shown(value)}, expected a list or a template",
            'write the collection: in: "{{ workload.rows }}"',
        )
    reader.templates(at)


def _parse_iterator_name(reader: Reader, fields: dict[str, At]) -> str:
    if "iterator" not in fields:
        return ""
    name = str(reader.value(fields["iterator"]))
    reserved = name in blocks.RESERVED_ITERATORS
    if reserved or not name.isidentifier():
        reason = "is taken by the loop itself" if reserved else "is not a plain name"
        reader.report(
            "iterator-name",
            fields["iterator"],
            f"the iterator '{name}' {reason}",
            "use another name (letters, digits, underscore), such as iterator: row",
        )
    return name


def parse_reduce(reader: Reader, at: At) -> dict[str, Any]:
    """LOOP-5, SCOPE-6: a reducer for each key."""
    reducers: dict[str, Any] = {}
    for key, entry in reader.entries(at).items():
        reducer = reader.value(entry)
        if reducer in blocks.REDUCERS:
            reducers[key] = reducer
            continue
        expected = f"one of {listed(blocks.REDUCERS)}"
        reader.report(
            "wrong-value",
            entry,
            f"the reducer of '{key}' is {shown(reducer)}, expected {expected}",
            reader.suggest(str(reducer), blocks.REDUCERS, f"write {expected}"),
        )
    return reducers
