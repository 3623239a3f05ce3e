"""Is a name in a template one that the author can have meant? (VAL-3)"""

import re
from collections.abc import Iterable, Iterator

from yaml.nodes import MappingNode, Node, SequenceNode

from noetl.expression.lookup import NAMESPACES
from noetl.expression.syntax import is_template
from noetl.playbook.check_literals import scalars
from noetl.playbook.model import Playbook
from noetl.playbook.reader import At, Reader
from noetl.playbook.retired import OLDER_NAMES
from noetl.playbook.suggest import closest

_READ = re.compile(r"(?<![\w.'\"/:@-])([A-Za-z_]\w*)\.([A-Za-z_]\w*)")
"""A root and the key that is read from it."""


def check_spelling(reader: Reader, playbook: Playbook) -> None:
    """
    A root that is nearly a namespace, or a key that is nearly one of `workload`, is most likely
    misspelt. Only nearly: a name may come with the payload, `args` or `ctx` (TPL-2).
    """
    reads = set(_READ.findall(reader.tree.text))
    roots = {root for root, _ in reads if root not in NAMESPACES}
    keys = {key for root, key in reads if root == "workload" and key not in playbook.workload}
    if not roots and not keys:
        return
    declared = {*_keys(reader.tree.root), *_iterators(playbook), *(one.name for one in OLDER_NAMES)}
    wrong = _near(roots - declared, NAMESPACES) | {
        f"workload.{key}": f"workload.{near}"
        for key, near in _near(keys, playbook.workload).items()
    }
    if not wrong:
        return
    for _, at in scalars(reader.tree.root):
        if is_template(at.node.value):
            _look(reader, at, wrong)


def _look(reader: Reader, at: At, wrong: dict[str, str]) -> None:
    for root, key in dict.fromkeys(_READ.findall(at.node.value)):
        for name in (root, f"{root}.{key}"):
            if name in wrong:
                said = f"the template reads '{name}', which nothing declares"
                reader.report("misspelt-name", at, said, f"did you mean '{wrong[name]}'?")


def _near(names: set[str], known: Iterable[str]) -> dict[str, str]:
    found = {name: closest(name, known) for name in sorted(names)}
    return {name: near for name, near in found.items() if near is not None}


def _keys(node: Node) -> Iterator[str]:
    """Every key of the document: whatever is one may be the name of an argument or a value."""
    if isinstance(node, MappingNode):
        for key, below in node.value:
            yield str(key.value)
            yield from _keys(below)
    elif isinstance(node, SequenceNode):
        for below in node.value:
            yield from _keys(below)


def _iterators(playbook: Playbook) -> Iterator[str]:
    for step in playbook.steps:
        if step.loop is not None:
            yield step.loop.iterator
        for task in step.tasks:
            if task.inner is not None:
                yield task.inner.loop.iterator
