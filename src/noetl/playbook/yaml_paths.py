"""Which paths lead to some nodes? Asked only when something is wrong with them."""

from collections.abc import Iterable, Iterator

from yaml.nodes import MappingNode, Node, SequenceNode

from noetl.playbook.reader import below


def paths_of(root: Node, wanted: Iterable[Node]) -> dict[int, str]:
    """The path of each wanted node by its identity; a key has the path of its value."""
    missing = {id(node) for node in wanted}
    found: dict[int, str] = {}
    for node, path in _walk(root):
        if id(node) in missing:
            found.setdefault(id(node), path)
    return found


def _walk(root: Node) -> Iterator[tuple[Node, str]]:
    """Every node once, keys too, aliases by the first way to them."""
    seen: set[int] = set()
    waiting = [(root, "")]
    while waiting:
        node, path = waiting.pop()
        yield node, path
        if id(node) in seen:
            continue
        seen.add(id(node))
        if type(node) is SequenceNode:
            waiting += [(child, f"{path}[{n}]") for n, child in enumerate(node.value)]
        elif type(node) is MappingNode:
            for key, child in node.value:
                here = below(path, key.value) if isinstance(key.value, str) else path
                waiting += [(child, here), (key, here)]
