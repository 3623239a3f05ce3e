"""How the types of keys and inputs are called in the reference."""

from typing import Any, assert_never

import msgspec
from msgspec import inspect

from noetl.kinds.kind import Inputs
from noetl.playbook.shape import (
    Boolean,
    Choice,
    Either,
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


def words_for(kind: Type) -> str:
    """The type of a key of the language, in words; other blocks are linked."""
    match kind:
        case Text():
            return "text"
        case Number():
            return number_words(kind)
        case Boolean():
            return "`true` or `false`"
        case Choice(words):
            return ", ".join(f"`{word}`" for word in words)
        case Free():
            return "anything"
        case FreeMapping():
            return "mapping"
        case FreeList(of):
            return f"list of {block_link(of)}" if of else "list"
        case TextList():
            return "list of texts"
        case Template():
            return "template"
        case Guard():
            return "boolean or one `{{ … }}`"
        case Inside(block):
            return block_link(block)
        case Either(types):
            return " or ".join(words_for(each) for each in types)
        case _:
            assert_never(kind)


def number_words(kind: Number) -> str:
    name = "whole number" if kind.whole else "number"
    match kind.minimum, kind.maximum:
        case None, None:
            return name
        case low, None:
            return f"{name} ≥ {low:g}"
        case None, high:
            return f"{name} ≤ {high:g}"
        case low, high:
            return f"{name} from {low:g} to {high:g}"


def block_link(name: str) -> str:
    """`pipeline entry` is no block of its own: it is one label with its task."""
    if name == "pipeline entry":
        return "`label:` [task](#task)"
    return f"[{name}](#{name.replace(' ', '-')})"


def input_rows(inputs: type[Inputs]) -> list[tuple[str, ...]]:
    """One row for each input of a kind: name, type, default, meaning."""
    described = inspect.type_info(inputs)
    assert isinstance(described, inspect.StructType)
    return [
        (f"`{field.encode_name}`", input_words(field.type), shown(field), description(field.type))
        for field in described.fields
    ]


def shown(field: inspect.Field) -> str:
    if field.required:
        return "*required*"
    if field.default_factory is not msgspec.NODEFAULT:
        return ""
    value = field.default
    return "" if value in (None, msgspec.NODEFAULT) else f"`{msgspec.json.encode(value).decode()}`"


def description(kind: inspect.Type) -> str:
    """The sentence that the input's type carries."""
    if isinstance(kind, inspect.Metadata) and kind.extra_json_schema:
        return str(kind.extra_json_schema.get("description", ""))
    return ""


PLAIN_WORDS: dict[type[inspect.Type], str] = {
    inspect.StrType: "text",
    inspect.IntType: "whole number",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.AnyType: "anything",
    inspect.DictType: "mapping",
    inspect.StructType: "mapping",
    inspect.NoneType: "nothing",
}


def input_words(kind: inspect.Type) -> str:
    """The type of an input, in words; `nothing` is left out of a choice."""
    match kind:
        case inspect.Metadata():
            return input_words(kind.type)
        case inspect.LiteralType():
            return ", ".join(f"`{value}`" for value in kind.values)
        case inspect.UnionType():
            return " or ".join(dict.fromkeys(map(input_words, without_none(kind.types))))
        case inspect.ListType() | inspect.VarTupleType():
            return list_words(kind.item_type)
    return PLAIN_WORDS[type(kind)]


def without_none(types: tuple[Any, ...]) -> list[inspect.Type]:
    return [each for each in types if not isinstance(each, inspect.NoneType)]


def list_words(element: inspect.Type) -> str:
    inner = input_words(element)
    return "list" if inner == "anything" else f"list of {inner}"
