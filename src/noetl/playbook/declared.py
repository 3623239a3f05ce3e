"""
Does what a request brings fit what the playbook declares and reads? (VAL-7)

`workload` declares inputs by their defaults: the keys, and of each the type. Whoever starts an
execution (a command, a client, a trigger, a task of kind `playbook`) is told where it differs.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from noetl.errors import TemplateFault
from noetl.expression.lookup import NAMESPACES
from noetl.expression.meant import closest
from noetl.expression.syntax import is_template, parse, texts_of
from noetl.kinds.kind import Kind
from noetl.playbook.check_names import reads_in
from noetl.playbook.finding import Finding
from noetl.playbook.model import Playbook
from noetl.playbook.suggest import some
from noetl.playbook.visible import spots

Keys = tuple[str, ...]
MOST_MISFITS: Final = 20
MOST_COMPARED: Final = 200
"""Names of one request that are compared with others, which is what costs."""
_TYPES: Final[Mapping[type, str]] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a mapping",
    type(None): "null",
}
_WRITTEN: Final[Mapping[str, tuple[str, str]]] = {
    "text": ('"…"', """--set '{key}="…"'"""),
    "true or false": ("true", "--set {key}=true"),
    "a number": ("5", "--set {key}=5"),
    "a list": ("[1, 2]", "--set '{key}=[1, 2]'"),
    "a mapping": ("{{ name: value }}", "--set {key}.name=value"),
}
"""How a value of each type is written in a document, and on a command line."""


class MisfitKey(msgspec.Struct, frozen=True):
    """One key of a request that does not fit."""

    code: str
    keys: Keys
    message: str
    hint: str


class DeclaredInputs(msgspec.Struct, frozen=True):
    """What a playbook declares of its inputs, and what its templates read of them."""

    workload: Mapping[str, Any]
    whole: frozenset[Keys]
    """The paths below `workload` that templates read; the empty one for `workload` itself."""
    opened: frozenset[Keys]
    """The same, and the paths that lead to them."""


def declared_in(playbook: Playbook, kinds: Mapping[str, Kind]) -> DeclaredInputs:
    """What a valid playbook declares and reads."""
    whole: set[Keys] = set()
    for spot in spots(playbook, kinds, {}):
        for text in texts_of(spot.value):
            whole.update(_read_by(text))
    opened = {keys[:depth] for keys in whole for depth in range(1, len(keys) + 1)}
    return DeclaredInputs(playbook.workload, frozenset(whole), frozenset(opened))


def _read_by(text: str) -> Iterator[Keys]:
    try:
        tree = parse(text)
    except TemplateFault:  # of a text that was accepted once
        return
    for read in reads_in(tree):
        names = [] if read.root == "workload" else [read.root]
        for key in read.keys:
            if type(key) is not str:
                break
            names.append(key)
        if read.root == "workload" or read.root not in NAMESPACES:
            yield tuple(names)


def misfits(
    inputs: DeclaredInputs, brought: Mapping[str, Any], *, written: bool = False
) -> list[MisfitKey]:
    """
    What does not fit, the first of it; `written`: `brought` stands in a document, and what its
    templates give is not known.
    """
    found = _below(inputs, inputs.workload, brought, (), written)
    return list(islice(found, MOST_MISFITS))


def warnings_of(inputs: DeclaredInputs, brought: Mapping[str, Any]) -> list[Finding]:
    """The same as findings of a request, which has no lines."""
    return [
        Finding(one.code, "warning", 0, 0, ".".join(("payload", *one.keys)), one.message, one.hint)
        for one in misfits(inputs, brought)
    ]


def _below(
    inputs: DeclaredInputs,
    declared: Mapping[str, Any],
    brought: Mapping[str, Any],
    above: Keys,
    written: bool,
) -> Iterator[MisfitKey]:
    """DOC-3: mappings merge, so each key of one is compared; anything else replaces."""
    compared = 0
    for key, value in brought.items():
        keys = (*above, key)
        if key not in declared:
            if keys not in inputs.opened and compared < MOST_COMPARED:
                compared += 1
                yield from _undeclared(inputs, declared, keys)
            continue
        default = declared[key]
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            if default:  # an empty one says nothing about its keys
                yield from _below(inputs, default, value, keys, written)
        elif not (is_template(default) or default is None or (written and is_template(value))):
            yield from _typed(default, value, keys, written)


def _undeclared(
    inputs: DeclaredInputs, declared: Mapping[str, Any], keys: Keys
) -> Iterator[MisfitKey]:
    """A key below something that is passed on whole may be read there: only a near name counts."""
    beside = [one[len(keys) - 1] for one in inputs.opened if _is_beside(one, keys)]
    near = closest(keys[-1], dict.fromkeys((*declared, *beside)))
    passed_on = any(keys[:depth] in inputs.whole for depth in range(len(keys)))
    if near is None and passed_on:
        return
    name, where = ".".join(keys), ".".join(("workload", *keys[:-1]))
    unread = "" if passed_on else ", and no template reads one"
    if near is not None:
        hint = f"did you mean '{'.'.join((*keys[:-1], near))}'?"
    elif declared:
        hint = f"`{where}` declares: {some(declared)}"
    else:
        hint = f"declare it, workload: {{ {name}: … }}, and read it as {{{{ workload.{name} }}}}"
    yield MisfitKey("undeclared-key", keys, f"`{where}` has no key '{keys[-1]}'{unread}", hint)


def _is_beside(one: Keys, keys: Keys) -> bool:
    return len(one) >= len(keys) and one[: len(keys) - 1] == keys[:-1]


def _typed(default: Any, value: Any, keys: Keys, written: bool) -> Iterator[MisfitKey]:
    wanted, found = type_of(default), type_of(value)
    if wanted == found:
        return
    name = ".".join(keys)
    there, here = (form.format(key=name) for form in _WRITTEN[wanted])
    hint = f"give {wanted}: {here} (--set reads a value as JSON, else as text)"
    if written:
        hint = f"write {wanted}, such as {there}"
    yield MisfitKey("other-type", keys, f"'{name}' is {found}; its default is {wanted}", hint)


def type_of(value: Any) -> str:
    """The word for the type of a value; whole numbers and others are one."""
    return next((word for kind, word in _TYPES.items() if type(value) is kind), "text")
