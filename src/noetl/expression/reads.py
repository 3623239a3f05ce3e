"""Which parts of a scope the templates inside a value read."""

from collections.abc import Iterator
from typing import Any

from jinja2 import nodes

from noetl.errors import TemplateFault
from noetl.expression.lookup import GLOBALS
from noetl.expression.syntax import parse, path_of, texts_of, whole_expression

MOST_SEGMENTS = 2


def reads(value: Any) -> frozenset[tuple[str, ...]]:
    """
    The root paths that the templates in `value` read, at most two segments each:
    `("ctx", "total")`, `("page",)` for an unqualified name, `("ctx",)` where ctx is used whole or
    by a computed key.
    """
    found: set[tuple[str, ...]] = set()
    for text in texts_of(value):
        try:
            found.update(paths_in(parse(text)))
        except TemplateFault:  # reported where it is checked; it reads nothing
            continue
    return frozenset(found)


def touches(value: Any) -> frozenset[tuple[str, ...]]:
    """Those of `reads` that are looked into: a whole `{{ ctx.rows }}` only passes its value on."""
    return frozenset(
        path for text in texts_of(value) for path in reads(text) if not is_passed_on(text)
    )


def is_passed_on(text: str) -> bool:
    whole = whole_expression(parse(text))
    path = None if whole is None else path_of(whole)
    return path is not None and len(path[1]) < MOST_SEGMENTS


def paths_in(node: nodes.Node) -> Iterator[tuple[str, ...]]:
    if isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem):
        path = path_of(node)
        if path is not None:
            root, keys = path
            is_read = not (isinstance(node, nodes.Name) and node.ctx != "load")
            if is_read and root not in GLOBALS:
                yield (root, *(str(key) for key in keys[: MOST_SEGMENTS - 1] if type(key) is str))
            return
    for child in node.iter_child_nodes():
        yield from paths_in(child)
