"""Do a task's inputs fit its kind? Raw values against its types, templates aside (TOOL-0)."""

from functools import lru_cache
from typing import TYPE_CHECKING

from yaml.nodes import MappingNode

from noetl.kinds.kind import Inputs, Kind
from noetl.playbook.blocks import TASK
from noetl.playbook.reader import At, Reader, below_of
from noetl.playbook.retired import EMPTY_INPUT
from noetl.playbook.suggest import listed

if TYPE_CHECKING:
    from msgspec.inspect import Field


@lru_cache(maxsize=256)
def input_fields(inputs: type[Inputs]) -> "dict[str, Field]":
    """The fields of a kind's inputs by the name that a document uses."""
    if not inputs.__struct_fields__:
        return {}
    from noetl.playbook.input_types import fields_of  # a `noop` has no types to inspect

    return fields_of(inputs)


def check_inputs(reader: Reader, kind: Kind, at: At, given: dict[str, At]) -> None:
    """Tell unknown, missing and ill-typed inputs of a task."""
    known = input_fields(kind.inputs)
    for name, entry in given.items():
        if _is_older_blank(reader, known, name, entry):
            word = EMPTY_INPUT
            reader.report_node(word.code, entry.anchor, entry.path, word.message, word.hint)
        elif name not in known:
            reader.report_node(
                "unknown-input",
                entry.anchor,
                entry.path,
                f"the kind '{kind.name}' has no input '{name}'",
                reader.suggest(name, known, below_of(TASK, name) or _inputs_of(kind, known)),
            )
        else:
            from noetl.playbook.input_types import check_value

            check_value(reader, name, known[name].type, entry)
        if kind.name != "iterator":
            reader.templates(entry)
    if id(at.node) not in reader.older:  # an older word may stand for what is missing
        _check_missing(reader, kind, at, given)


def _is_older_blank(reader: Reader, known: "dict[str, Field]", name: str, entry: At) -> bool:
    """`auth: {}`: older dialects filled up with empty mappings what a task did not use."""
    if reader.value(entry) != {} or type(entry.node) is not MappingNode or entry.node.value:
        return False
    if name not in known:
        return True
    from noetl.playbook.input_types import misfit

    return misfit(reader, known[name].type, entry) is not None


def _inputs_of(kind: Kind, known: "dict[str, Field]") -> str:
    return f"inputs: {', '.join(known)}" if known else f"'{kind.name}' takes no inputs"


def _check_missing(reader: Reader, kind: Kind, at: At, given: dict[str, At]) -> None:
    for name, field in input_fields(kind.inputs).items():
        if field.required and name not in given:
            _report_missing(reader, kind, at, name)
    for name in _needed(reader, kind, given):
        if name not in given or reader.value(given[name]) in (None, ""):
            _report_missing(reader, kind, at, name)
    for name in kind.needs.get("", ()):
        if name not in given:
            reader.report_node(
                "missing-auth",
                at.anchor,
                at.path,
                f"a task of kind '{kind.name}' without '{name}' uses the credential named "
                f"'{kind.name}'",
                _how_to_add(kind, name),
            )
    for group in kind.one_of:
        found = [name for name in group if name in given]
        if len(found) != 1:
            said = f"has {' and '.join(map(repr, found))}" if found else "has none of its inputs"
            reader.report_node(
                "input-choice" if found else "missing-input",
                at.anchor,
                at.path,
                f"a task of kind '{kind.name}' {said}, expected exactly one of "
                f"{listed(map(repr, group))}",
                f"keep one of them: {listed(group)}" if found else f"add {listed(group)}",
            )


def _report_missing(reader: Reader, kind: Kind, at: At, name: str) -> None:
    operation = reader.value(at).get("operation")
    of = f"the operation '{operation}'" if operation and name != "operation" else "a task"
    reader.report_node(
        "missing-input",
        at.anchor,
        at.path,
        f"{of} of kind '{kind.name}' lacks the input '{name}'",
        _how_to_add(kind, name),
    )


def _how_to_add(kind: Kind, name: str) -> str:
    from noetl.playbook.input_types import description

    return f"add '{name}': {description(input_fields(kind.inputs)[name].type)}"


def _needed(reader: Reader, kind: Kind, given: dict[str, At]) -> tuple[str, ...]:
    """Inputs that the operation cannot do without."""
    operation = reader.value(given["operation"]) if "operation" in given else None
    return kind.needs.get(operation, ()) if isinstance(operation, str) and operation else ()
