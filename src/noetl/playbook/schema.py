"""The language as JSON Schema 2020-12, made from the tables that parsing uses (VAL-4)."""

from collections.abc import Callable, Mapping
from typing import Any

from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.playbook.blocks import BLOCKS
from noetl.playbook.schema_inputs import task_schemas
from noetl.playbook.shape import (
    Block,
    Boolean,
    Choice,
    Either,
    Field,
    Free,
    FreeList,
    FreeMapping,
    Guard,
    Inside,
    Number,
    Template,
    Text,
    TextList,
    Type,
)
from noetl.playbook.trigger_blocks import TRIGGER_BLOCKS

Schema = dict[str, Any]

TEMPLATE: Schema = {
    "type": "string",
    "pattern": r"\{\{|\{%",
    "description": "A template: text with {{ … }} in it.",
}
GUARD: Schema = {
    "anyOf": [{"type": "boolean"}, {"type": "string", "pattern": r"^\s*\{\{[\s\S]*\}\}\s*$"}]
}
PLAIN_NAME = r"^[^\W\d]\w*$"
# Where null is no empty block but a fault (VAL-1).
_NEVER_NULL = ("policy", "step policy", "admit", "else", "admit else")


def json_schema(kinds: Mapping[str, Kind] = KINDS) -> Schema:
    """The schema of a playbook whose tasks are of these kinds."""
    blocks = {key(block.name): block_schema(block) for block in BLOCKS.values()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:noetl:schema:v2:playbook",
        "title": "NoETL playbook",
        **blocks.pop("playbook"),
        "$defs": {
            **blocks,
            "template": TEMPLATE,
            "guard": GUARD,
            "pipeline_entry": _pipeline_entry(),
            **task_schemas(kinds),
        },
    }


def trigger_schema() -> Schema:
    """The schema of a trigger (START-1)."""
    blocks = {key(block.name): block_schema(block) for block in TRIGGER_BLOCKS.values()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:noetl:schema:v2:trigger",
        "title": "NoETL trigger",
        **blocks.pop("trigger"),
        "$defs": {**blocks, "template": TEMPLATE, "guard": GUARD},
    }


def key(block: str) -> str:
    """The name of a block among the definitions."""
    return block.replace(" ", "_")


def block_schema(block: Block) -> Schema:
    """One block with its keys."""
    schema: Schema = {
        "type": "object",
        "description": block.doc,
        "properties": {name: field_schema(field) for name, field in block.fields.items()},
        "additionalProperties": block.open,
    }
    required = [name for name, field in block.fields.items() if field.required]
    if required:
        schema["required"] = required
    if block.requires_any:
        schema["anyOf"] = [{"required": [name]} for name in block.requires_any]
    if block.forms:
        schema["oneOf"] = [{"required": list(form)} for form in block.forms]
    if block.name == "then":
        schema["allOf"] = [_needs("retry", "attempts"), _needs("jump", "to")]
    return schema


def _needs(directive: str, name: str) -> Schema:
    """VAL-2: a retry needs `attempts`, a jump `to`."""
    chosen = {"properties": {"do": {"const": directive}}, "required": ["do"]}
    return {"if": chosen, "then": {"required": [name]}}


def _pipeline_entry() -> Schema:
    return {
        "type": "object",
        "description": "One task: its label and what it is (TASK-1).",
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": {"$ref": "#/$defs/task"},
    }


def field_schema(field: Field) -> Schema:
    """One key with its description, rule and default."""
    schema = type_schema(field.type)
    may_be_null = not field.required and not isinstance(field.type, Choice | Guard | Free)
    if may_be_null and not (isinstance(field.type, Inside) and field.type.block in _NEVER_NULL):
        schema = {"anyOf": [schema, {"type": "null"}]}
    schema = {**schema, "description": f"{field.doc} ({field.rule})"}
    if field.default is not None:
        schema["default"] = field.default
    return schema


def type_schema(type_: Type) -> Schema:
    """One type of the tables."""
    return _SCHEMAS[type(type_)](type_)


def _number(type_: Number) -> Schema:
    schema: Schema = {"type": "integer" if type_.whole else "number"}
    if type_.minimum is not None:
        schema["minimum"] = type_.minimum
    if type_.maximum is not None:
        schema["maximum"] = type_.maximum
    return schema


def _mapping(type_: FreeMapping) -> Schema:
    schema: Schema = {"type": "object"}
    if type_.names:
        schema["propertyNames"] = {"pattern": PLAIN_NAME}
    if type_.of:
        schema["additionalProperties"] = {"$ref": f"#/$defs/{key(type_.of)}"}
    if type_.words:
        schema["additionalProperties"] = {"enum": list(type_.words)}
    return schema


def _list(type_: FreeList) -> Schema:
    schema: Schema = {"type": "array"}
    if type_.of:
        schema["items"] = {"$ref": f"#/$defs/{key(type_.of)}"}
    if type_.least:
        schema["minItems"] = type_.least
    return schema


def _choice(type_: Choice) -> Schema:
    return {"const": type_.words[0]} if len(type_.words) == 1 else {"enum": list(type_.words)}


_SCHEMAS: dict[type, Callable[[Any], Schema]] = {
    Text: lambda type_: {"type": "string"} if type_.empty else {"type": "string", "minLength": 1},
    Number: _number,
    Boolean: lambda _type: {"type": "boolean"},
    Choice: _choice,
    Free: lambda _type: {},
    FreeMapping: _mapping,
    FreeList: _list,
    TextList: lambda _type: {"type": "array", "items": {"type": "string"}, "minItems": 1},
    Template: lambda _type: {"$ref": "#/$defs/template"},
    Guard: lambda _type: {"$ref": "#/$defs/guard"},
    Inside: lambda type_: {"$ref": f"#/$defs/{key(type_.block)}"},
    Either: lambda type_: {"anyOf": [type_schema(one) for one in type_.types]},
}
