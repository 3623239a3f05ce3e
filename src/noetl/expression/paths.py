"""Which expressions are paths: constants from a name on, such as `ctx.rows[0].id`."""

from typing import Any

from jinja2 import nodes


def path_of(node: nodes.Node) -> tuple[str, tuple[Any, ...]] | None:
    """The root and the keys, if `node` is a path of constants from a name."""
    keys: list[Any] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            keys.append(node.attr)
        elif isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const):
            if type(node.arg.value) not in (str, int):
                return None
            keys.append(node.arg.value)
        else:
            return None
        node = node.node
    return node.name, tuple(reversed(keys))
