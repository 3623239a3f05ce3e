"""The types of inputs: what they are in words, and whether a raw value fits one (TOOL-0)."""

from typing import Any

import msgspec
from msgspec import inspect
from yaml.nodes import ScalarNode

from noetl.expression.syntax import is_template
from noetl.kinds.kind import Inputs
from noetl.playbook.fitting import shown
from noetl.playbook.reader import At, Reader, seconds_hint
from noetl.playbook.suggest import listed


def fields_of(inputs: type[Inputs]) -> dict[str, inspect.Field]:
    """By the name that a document uses."""
    info = inspect.type_info(inputs)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field for field in info.fields}


def description(type_: inspect.Type) -> str:
    """The sentence that documents a field."""
    if isinstance(type_, inspect.Metadata):
        return str((type_.extra_json_schema or {}).get("description", ""))
    return ""


class Misfit(msgspec.Struct, frozen=True):
    """A value that does not fit, and the type that it should have."""

    at: At
    type: inspect.Type


def check_value(reader: Reader, name: str, type_: inspect.Type, at: At) -> None:
    """Tell the first value at or below `at` that does not fit and is no template."""
    wrong = misfit(reader, type_, at)
    if wrong is None or id(wrong.at.node) in reader.tree.broken:
        return
    value = reader.value(wrong.at)
    where = f"'{name}'" if wrong.at is at else f"a value of '{name}'"
    reader.misfits.add(wrong.at.path)
    hint = f"{description(type_)} A template '{{{{ … }}}}' is allowed too."
    if wrong.at is at:
        hint = seconds_hint(name, value, description(type_)) or hint
    if isinstance(wrong.type, inspect.BoolType) and str(value).lower() in _SWITCHES:
        hint = f"write {_SWITCHES[str(value).lower()]}; '{value}' is text"
    reader.report(
        "wrong-type",
        wrong.at,
        f"{where} is {shown(value)}, expected {_words(wrong.type)}",
        reader.suggest(str(value), _literals(wrong.type), hint),
    )


_SWITCHES = {
    **dict.fromkeys(("yes", "on", "true", "y", "1"), "true"),
    **dict.fromkeys(("no", "off", "false", "n", "0"), "false"),
}
"""Words of YAML 1.1 and of other languages for what is a boolean here."""


def _literals(type_: inspect.Type) -> tuple[str, ...]:
    """The words that a value is one of, if they are few."""
    return tuple(map(str, type_.values)) if isinstance(type_, inspect.LiteralType) else ()


def misfit(reader: Reader, type_: inspect.Type, at: At) -> Misfit | None:
    if isinstance(type_, inspect.Metadata):
        type_ = type_.type
    if isinstance(type_, inspect.AnyType):
        return None
    value = reader.tree.value(at.node)
    if type(at.node) is ScalarNode:
        return None if is_template(value) or _fits(type_, value) else Misfit(at, type_)
    options = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    for option in options:
        if isinstance(option, inspect.ListType) and isinstance(value, list):
            return _first(reader, option.item_type, reader.elements(at))
        if isinstance(option, inspect.DictType) and isinstance(value, dict):
            return _first(reader, option.value_type, list(reader.entries(at).values()))
        if isinstance(option, inspect.AnyType):
            return None
    return Misfit(at, type_)


def _first(reader: Reader, type_: inspect.Type, values: list[At]) -> Misfit | None:
    if isinstance(type_, inspect.AnyType):
        return None
    return next((wrong for at in values if (wrong := misfit(reader, type_, at))), None)


def _fits(type_: inspect.Type, value: Any) -> bool:
    """Whether a scalar fits its type as it is; nothing is converted."""
    match type_:
        case inspect.UnionType(types=types):
            return any(_fits(one, value) for one in types)
        case inspect.Metadata(type=inner):
            return _fits(inner, value)
        case inspect.AnyType():
            return True
        case inspect.NoneType():
            return value is None
        case inspect.StrType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType(ge=ge):
            return _is_number(value) and value == int(value) and (ge is None or value >= ge)
        case inspect.FloatType(ge=ge):
            return _is_number(value) and (ge is None or value >= ge)
        case inspect.LiteralType(values=values):
            return value in values
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _words(type_: inspect.Type) -> str:
    """The type in words, for 'expected …'."""
    match type_:
        case inspect.UnionType(types=types):
            return listed(_words(one) for one in types if not isinstance(one, inspect.NoneType))
        case inspect.Metadata(type=inner):
            return _words(inner)
        case inspect.LiteralType(values=values):
            return f"one of {listed(map(str, values))}"
        case inspect.IntType(ge=ge):
            return "a whole number" if ge is None else f"a whole number of {ge} or more"
        case inspect.FloatType(ge=ge):
            return "a number" if ge is None else f"a number of {ge} or more"
    return _PLAIN_WORDS.get(type(type_), "another value")


_PLAIN_WORDS: dict[type, str] = {
    inspect.StrType: "text",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.DictType: "a mapping",
    inspect.AnyType: "any value",
}
