"""What lies under a `spec`? Defaults of the executor, merged so that the nearest wins (DOC-4)."""

from yaml.nodes import MappingNode, Node

from noetl.playbook.reader import At, Reader


def spec_under(reader: Reader, own: At | None, default: At | None, block: At) -> At | None:
    """The spec of a block with the default below it; both keep their places in the text."""
    if default is None or not reader.may_merge(default):
        return own
    if own is None:
        return At(block.anchor, default.node, f"{block.path}.spec")
    if type(own.node) is not MappingNode:
        return own
    return At(own.anchor, _merged(reader, own.node, default.node), own.path)


def _merged(reader: Reader, own: Node, default: Node) -> Node:
    """Mappings merge deep, lists and scalars of the nearer replace."""
    under = {key.value: (key, node) for key, node in default.value}
    pairs = []
    for key, node in own.value:
        below = under.pop(key.value, None) if isinstance(key.value, str) else None
        both = below is not None and type(node) is type(below[1]) is MappingNode
        pairs.append((key, _merged(reader, node, below[1]) if below and both else node))
    pairs.extend(under.values())
    return reader.tree.keep(MappingNode(own.tag, pairs, own.start_mark, own.end_mark))
