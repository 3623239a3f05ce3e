"""What do the tables of the language say about a place in a document?"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect
from yaml.nodes import MappingNode, Node, ScalarNode

from noetl.kinds.kind import Kind
from noetl.playbook.blocks import BLOCKS, CREDENTIAL_KINDS, ROOT
from noetl.playbook.editing.cursor import MARK, Cursor, Within
from noetl.playbook.fitting import described
from noetl.playbook.input_types import description
from noetl.playbook.inputs import input_fields
from noetl.playbook.shape import (
    Block,
    Boolean,
    Choice,
    Either,
    FreeList,
    FreeMapping,
    Inside,
    TextList,
    Type,
)

PIPELINE_ENTRY = "pipeline entry"
REFERENCES: Mapping[tuple[str, str], str] = {
    ("arc", "step"): "step",
    ("executor spec", "entry_step"): "step",
    ("executor spec", "final_step"): "step",
    ("join", "from"): "step",
    ("then", "to"): "label",
    ("workbook", "name"): "workbook",
    ("task", "kind"): "kind",
    ("task", "auth"): "credential",
    ("keychain entry", "kind"): "credential kind",
}
"""Block (or kind) and key → what its value names."""


class Suggestion(NamedTuple):
    """A key or a word that may be written somewhere, and what there is to say about it."""

    name: str
    summary: str
    about: str = ""
    nested: bool = False
    """Whether a block follows on the lines below."""


class AtCursor(NamedTuple):
    """What is around the cursor: the block, its kind if it is a task, the type of the value."""

    block: Block | None
    kind: Kind | None
    key: str
    type: Type | inspect.Type | None

    @property
    def names(self) -> str | None:
        """What a value here names, if it names something."""
        if self.block is None:
            return None
        if self.kind is not None and (found := REFERENCES.get((self.kind.name, self.key))):
            return found
        return REFERENCES.get((self.block.name, self.key))


def setting_of(cursor: Cursor, kinds: Mapping[str, Kind]) -> AtCursor:
    """Follow the tables from the root to the cursor."""
    setting = AtCursor(None, None, "", Inside(ROOT.name))
    for within in cursor.way:
        setting = _below(setting, within, kinds)
    if cursor.key or cursor.same_line or not isinstance(setting.type, Inside):
        return setting
    # A word on the lines below a key, or after a dash, is the beginning of a block.
    return _below(setting, Within(MappingNode("", []), MARK), kinds)


def _below(setting: AtCursor, within: Within, kinds: Mapping[str, Kind]) -> AtCursor:
    type_ = setting.type
    if isinstance(type_, Either):
        type_ = next((one for one in type_.types if isinstance(one, Inside | FreeList)), None)
    if isinstance(within.key, int):
        if isinstance(type_, FreeList) and type_.of:
            return AtCursor(None, None, "", Inside(type_.of))
        return setting if isinstance(type_, TextList) else AtCursor(None, None, "", None)
    if isinstance(type_, FreeMapping):
        return AtCursor(None, None, within.key, Inside(type_.of) if type_.of else None)
    if not isinstance(type_, Inside):
        return AtCursor(None, None, within.key, None)
    if type_.block == PIPELINE_ENTRY:
        return AtCursor(None, None, within.key, Inside("task"))
    block = BLOCKS[type_.block]
    kind = kinds.get(scalar_of(within.node, "kind")) if block.name == "task" else None
    return AtCursor(block, kind, within.key, _type_of(block, kind, within.key))


def _type_of(block: Block, kind: Kind | None, key: str) -> Type | inspect.Type | None:
    if kind is not None and kind.name == "iterator":  # LOOP-7: its loop is part of the language
        nested: dict[str, Type] = {
            "spec": Inside("iterator spec"),
            "tool": FreeList(PIPELINE_ENTRY),
        }
        if key in nested:
            return nested[key]
    if key in block.fields:
        return block.fields[key].type
    if kind is None:
        return None
    field = input_fields(kind.inputs).get(key)
    return None if field is None else field.type


def scalar_of(node: Node, key: str) -> str:
    """What a mapping says under a key, without the mark of the cursor."""
    if type(node) is MappingNode:
        for name, child in node.value:
            if name.value == key and type(child) is ScalarNode:
                return str(child.value).replace(MARK, "")
    return ""


# ── what may be written ──────────────────────────────────────────────────────────────────────


def keys_at(setting: AtCursor) -> Iterator[Suggestion]:
    """Every key of the block at the cursor, and every input of the kind."""
    if setting.block is None:
        return
    for name in setting.block.fields:
        yield key_entry(setting.block, name)
    if setting.kind is not None:
        for name in input_fields(setting.kind.inputs):
            yield input_entry(setting.kind, name)


def key_entry(block: Block, name: str) -> Suggestion:
    """A key of the language, with its documentation."""
    field = block.fields[name]
    default = "" if field.default is None else f", default `{shown(field.default)}`"
    need = ", required" if field.required else default
    about = f"**{name}** ({block.name}{need})\n\n{field.doc} Expects {described(field.type)}."
    nested = isinstance(field.type, Inside | FreeList | FreeMapping)
    return Suggestion(name, field.doc, f"{about}\n\n{rule_words(field.rule)}", nested)


def input_entry(kind: Kind, name: str) -> Suggestion:
    """An input of a kind."""
    field = input_fields(kind.inputs)[name]
    summary = description(field.type)
    need = ", required" if field.required else ""
    return Suggestion(name, summary, f"**{name}** (input of `{kind.name}`{need})\n\n{summary}")


def kind_entry(kind: Kind) -> Suggestion:
    """A kind, with its inputs."""
    inputs = "\n".join(
        f"- `{name}`: {description(field.type)}"
        for name, field in input_fields(kind.inputs).items()
    )
    block = f"\n\nIts part of the outcome: `outcome.{kind.block}`." if kind.block else ""
    return Suggestion(
        kind.name, kind.summary, f"**{kind.name}**: {kind.summary}\n\n{inputs}{block}"
    )


def words_at(setting: AtCursor, kinds: Mapping[str, Kind]) -> Iterator[Suggestion]:
    """The values that the type at the cursor has few of."""
    if setting.names == "kind":
        yield from (kind_entry(kinds[name]) for name in kinds)
    elif setting.names == "credential kind":
        yield from (Suggestion(word, "kind of credential") for word in CREDENTIAL_KINDS)
    else:
        yield from (Suggestion(shown(word), "") for word in _words(setting.type))


def _words(type_: Type | inspect.Type | None) -> Iterator[Any]:
    match type_:
        case Choice(words=words):
            yield from words
        case Boolean() | inspect.BoolType():
            yield from (True, False)
        case Either(types=types) | inspect.UnionType(types=types):
            for one in types:
                yield from _words(one)
        case inspect.Metadata(type=inner):
            yield from _words(inner)
        case inspect.LiteralType(values=values):
            yield from values


def shown(value: Any) -> str:
    """A plain value as YAML writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# ── rules ────────────────────────────────────────────────────────────────────────────────────


@cache
def rules() -> Mapping[str, str]:
    """Every rule of the specification in one sentence."""
    text = resources.files("noetl.playbook.editing").joinpath("rules.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, str])


def rule_words(rule: str) -> str:
    return f"{rule}: {rules()[rule]}" if rule in rules() else rule
