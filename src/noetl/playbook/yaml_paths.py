"""Which path leads to a node? Asked only when something is wrong with it."""

from yaml.nodes import MappingNode, Node, SequenceNode

from noetl.playbook.reader import below


def path_of(root: Node, wanted: Node) -> str:
    """The path of a node: of the mapping's key where it is one."""
    return _search(root, wanted, "", set()) or ""


def _search(node: Node, wanted: Node, path: str, seen: set[int]) -> str | None:
    if node is wanted:
        return path
    if id(node) in seen:
        return None
    if type(node) is SequenceNode:
        seen.add(id(node))
        found = (_search(child, wanted, f"{path}[{n}]", seen) for n, child in enumerate(node.value))
        return next((one for one in found if one is not None), None)
    if type(node) is MappingNode:
        seen.add(id(node))
        for key, child in node.value:
            here = below(path, key.value) if isinstance(key.value, str) else path
            if key is wanted:
                return here
            found_below = _search(child, wanted, here, seen)
            if found_below is not None:
                return found_below
    return None
