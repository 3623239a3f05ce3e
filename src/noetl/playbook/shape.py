"""
What may stand in a block? The words of the tables: types, fields, blocks.

One description of the language serves the parser, the JSON Schema and the documentation.
"""

from collections.abc import Mapping
from typing import Any

import msgspec


class Text(msgspec.Struct, frozen=True, tag=True):
    """Text that is not empty, unless `empty` allows it."""

    empty: bool = False


class Number(msgspec.Struct, frozen=True, tag=True):
    """A number from `minimum` on, to `maximum`; `whole` allows no fraction."""

    minimum: float | None = None
    maximum: float | None = None
    whole: bool = False


class Boolean(msgspec.Struct, frozen=True, tag=True):
    """`true` or `false`."""


class Choice(msgspec.Struct, frozen=True, tag=True):
    """One of a few words."""

    words: tuple[str, ...]


class Free(msgspec.Struct, frozen=True, tag=True):
    """Any value; templates in it are checked if `templates`."""

    templates: bool = False


class FreeMapping(msgspec.Struct, frozen=True, tag=True):
    """A mapping with keys of the author's choice."""

    templates: bool = False
    names: bool = False
    """Whether each key is a plain name (SCOPE-5)."""
    of: str = ""
    """The block that each value is, if it is one."""
    words: tuple[str, ...] = ()
    """The words that each value is one of, if they are few."""


class FreeList(msgspec.Struct, frozen=True, tag=True):
    """A list of which the parser reads each element itself."""

    of: str = ""
    """The block that each element is, if it is one."""
    least: int = 0
    """How many elements there must be."""


class TextList(msgspec.Struct, frozen=True, tag=True):
    """A list of texts."""


class Template(msgspec.Struct, frozen=True, tag=True):
    """Text with a template in it."""


class Guard(msgspec.Struct, frozen=True, tag=True):
    """A boolean or one whole `{{ … }}` (VAL-2)."""


class Inside(msgspec.Struct, frozen=True, tag=True):
    """A block of its own, by name."""

    block: str


class Either(msgspec.Struct, frozen=True, tag=True):
    """One of several types."""

    types: tuple["Type", ...]


Type = (
    Text
    | Number
    | Boolean
    | Choice
    | Free
    | FreeMapping
    | FreeList
    | TextList
    | Template
    | Guard
    | Inside
    | Either
)


class Field(msgspec.Struct, frozen=True):
    """One key of a block."""

    type: Type
    doc: str
    rule: str
    required: bool = False
    default: Any = None


class Block(msgspec.Struct, frozen=True):
    """One block of the language: its keys, and whether others may stand beside them."""

    name: str
    doc: str
    fields: Mapping[str, Field]
    open: bool = False
    requires_any: tuple[str, ...] = ()
    """Keys of which at least one must stand."""
    forms: tuple[tuple[str, ...], ...] = ()
    """Sets of keys of which exactly one must stand as a whole."""
    required: tuple[str, ...] = ()
    """Keys that must stand; the fields say it."""

    def __post_init__(self) -> None:
        named = tuple(key for key, field in self.fields.items() if field.required)
        msgspec.structs.force_setattr(self, "required", named)


_KEYS = (
    *("then", "else", "next", "admit", "metadata", "results", "limits", "defaults", "executor"),
    "on",
)


def article(block: str) -> str:
    """The block in a sentence: `an arc`, `a step`, `'then'`."""
    if block.split()[-1] in _KEYS:
        return f"'{block.split()[-1]}'"
    return f"an {block}" if block[0] in "aeiou" else f"a {block}"
