"""The inputs of each tool kind as JSON Schema; a template may stand for any value (VAL-4)."""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from noetl.kinds.kind import Kind
from noetl.playbook.input_types import description
from noetl.playbook.inputs import input_fields

Schema = dict[str, Any]

_TEMPLATE: Schema = {"$ref": "#/$defs/template"}


def task_schemas(kinds: Mapping[str, Kind]) -> Schema:
    """The definition of a task, and one for each kind that it may have."""
    return {
        "task": _task(kinds),
        **{f"task_{name}": _task_of(kind) for name, kind in kinds.items()},
    }


def _task(kinds: Mapping[str, Kind]) -> Schema:
    chosen = [
        {
            "if": {"properties": {"kind": {"const": name}}},
            "then": {"$ref": f"#/$defs/task_{name}"},
        }
        for name in kinds
    ]
    return {
        "type": "object",
        "description": "A tool call; its kind says which inputs it takes (TASK-1).",
        "properties": {"kind": {"enum": list(kinds), "description": "The tool kind."}},
        "required": ["kind"],
        "allOf": chosen,
    }


def _task_of(kind: Kind) -> Schema:
    fields = input_fields(kind.inputs)
    spec = "iterator_spec" if kind.name == "iterator" else "task_spec"
    properties: Schema = {
        "kind": {"const": kind.name, "description": kind.summary},
        "spec": {"anyOf": [{"$ref": f"#/$defs/{spec}"}, {"type": "null"}]},
        **{name: _input(field) for name, field in fields.items()},
    }
    if kind.name == "iterator":  # LOOP-7: its pipeline is part of the language
        properties["tool"] = {"type": "array", "items": {"$ref": "#/$defs/pipeline_entry"}}
    schema: Schema = {
        "description": kind.summary,
        "properties": properties,
        "required": ["kind", *(name for name, field in fields.items() if field.required)],
        "additionalProperties": False,
    }
    groups = [{"oneOf": [{"required": [name]} for name in group]} for group in kind.one_of]
    if groups or kind.needs.keys() - {""}:
        schema["allOf"] = [*groups, *_needs(kind)]
    return schema


def _needs(kind: Kind) -> list[Schema]:
    """VAL-6: what each operation cannot do without; `""` is a warning, which no schema knows."""
    needed: dict[tuple[str, ...], list[str]] = {}
    for operation, names in kind.needs.items():
        if operation:
            needed.setdefault(names, []).append(operation)
    return [
        {
            "if": {"properties": {"operation": {"enum": operations}}, "required": ["operation"]},
            "then": {
                "properties": {name: {"not": {"enum": [None, ""]}} for name in names},
                "required": list(names),
            },
        }
        for names, operations in needed.items()
    ]


def _input(field: inspect.Field) -> Schema:
    schema = value_schema(field.type)
    described = description(field.type)
    return {**schema, "description": described} if described else schema


def value_schema(type_: inspect.Type) -> Schema:
    """A value of this type, or a template that gives one."""
    schema = _plain_schema(type_)
    if not schema or schema.get("type") == "string":
        return schema
    return {"anyOf": [schema, _TEMPLATE]}


def _plain_schema(type_: inspect.Type) -> Schema:
    match type_:
        case inspect.Metadata(type=inner):
            return _plain_schema(inner)
        case inspect.UnionType(types=types):
            options = [_plain_schema(one) for one in types]
            return {} if {} in options else {"anyOf": options}
        case inspect.LiteralType(values=values):
            return {"enum": list(values)}
        case inspect.ListType(item_type=inner):
            return {"type": "array", "items": value_schema(inner)}
        case inspect.DictType(value_type=inner):
            return {"type": "object", "additionalProperties": value_schema(inner)}
        case inspect.IntType(ge=ge):
            return {"type": "integer"} if ge is None else {"type": "integer", "minimum": ge}
        case inspect.FloatType(ge=ge):
            return {"type": "number"} if ge is None else {"type": "number", "minimum": ge}
    return _NAMED.get(type(type_), {})


_NAMED: dict[type, Schema] = {
    inspect.StrType: {"type": "string"},
    inspect.BoolType: {"type": "boolean"},
    inspect.NoneType: {"type": "null"},
}
