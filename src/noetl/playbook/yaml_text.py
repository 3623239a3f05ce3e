"""
Which values does a YAML text hold, and where do they stand? (DOC-7)

PyYAML's C parser builds the nodes; the scalars are resolved here by the core schema of YAML 1.2, so
that `on`, `0777` and `1:30` stay text. Nothing is constructed but plain values.
"""

from functools import cached_property
from typing import Any

import msgspec
from yaml._yaml import CParser
from yaml.error import YAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from noetl.late import late
from noetl.playbook.yaml_checks import (
    MAX_DEPTH,
    MAX_NODES,
    UnreadableText,
    decoded,
    find_excess,
    refusal_of,
)

PLAIN, TEXT, SEQUENCE, MAPPING = "plain", "text", "sequence", "mapping"
_TAGS = {ScalarNode: TEXT, SequenceNode: SEQUENCE, MappingNode: MAPPING}

_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = late(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_LEADING_ZERO = late(r"[-+]?0[0-9]+")
_FLOAT = late(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_ENDLESS = late(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
MAX_DIGITS = 4_300  # as TPL-5: longer integers cost quadratic time to read


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with one node; the path is not known yet."""

    code: str
    node: Node
    message: str
    hint: str


class _Parser(CParser):
    """The C parser with our own resolver: it marks what is plain, and stops what is too much."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._count = 0

    def descend_resolver(self, parent: Node | None, _index: Any) -> None:
        self._depth += 1
        self._count += 1
        if self._depth > MAX_DEPTH:
            raise UnreadableText("too-deep", parent.start_mark if parent else None)
        if self._count > MAX_NODES:
            raise UnreadableText("too-many-nodes", parent.start_mark if parent else None)

    def ascend_resolver(self) -> None:
        self._depth -= 1

    def resolve(self, kind: type[Node], _value: Any, implicit: Any) -> str:
        return PLAIN if kind is ScalarNode and implicit[0] else _TAGS[kind]


class Tree:
    """The nodes of one document, their plain values, and the faults met on the way."""

    def __init__(self, root: Node, text: str) -> None:
        self.root = root
        self.text = text
        self.faults: list[Fault] = []
        self.broken: set[int] = set()
        """Nodes whose fault is told already; what they stand for is unknown."""
        self._values: dict[int, Any] = {}
        self._kept: list[Node] = []

    def value(self, node: Node) -> Any:
        """The plain value of a node; the same object for every alias of it."""
        if type(node) is ScalarNode:
            tag = node.tag
            if tag == TEXT:
                return node.value
            if tag == PLAIN:
                text = node.value
                if text in _WORDS:
                    return _WORDS[text]
                return self._number(node) if text[0] in _NUMBER_START else text
            return self._tagged(node)
        known = self._values.get(id(node), self)
        if known is not self:
            return known
        made = self._sequence(node) if type(node) is SequenceNode else self._mapping(node)
        self._values[id(node)] = made
        return made

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends."""
        return self.text.split("\n")

    def keep(self, node: Node) -> Node:
        """Hold a node that is no part of the text, so that its identity stays its own."""
        self._kept.append(node)
        return node

    def _sequence(self, node: Node) -> list[Any]:
        self._check_tag(node, SEQUENCE, "tag:yaml.org,2002:seq")
        return [self.value(child) for child in node.value]

    def _mapping(self, node: Node) -> dict[str, Any]:
        self._check_tag(node, MAPPING, "tag:yaml.org,2002:map")
        made: dict[str, Any] = {}
        for key_node, child in node.value:
            value = self.value(child)
            if key_node.tag != TEXT and not self._is_key(key_node):
                self.broken.add(id(node))
                continue
            key = key_node.value
            if key in made:
                self._duplicate(key_node)
            else:
                made[key] = value
        return made

    def _is_key(self, node: Node) -> bool:
        """Whether a key that is not quoted is text; a fault otherwise."""
        if node.tag == PLAIN and node.value == "<<":
            self._fault(
                "merge-key",
                node,
                "the merge key '<<' is not part of YAML 1.2",
                "write the keys out, or use an alias for a whole value",
            )
            return False
        key = self.value(node) if type(node) is ScalarNode else None
        if isinstance(key, str):
            return True
        if type(node) is ScalarNode:
            shown = str(node.value)[:40] or "null"
            said = f"the key {shown} is {kind_of(key)}, expected text"
            advice = f'write it in quotes: "{shown}"'
        elif type(node) is MappingNode:
            said = "found a mapping as a key, expected text"
            advice = 'if this is a template, write it in quotes: "{{ … }}"'
        else:
            said = "found a list as a key, expected text"
            advice = "use a plain word as the key"
        self._fault("key-not-text", node, said, advice)
        return False

    def _duplicate(self, node: Node) -> None:
        self._fault(
            "duplicate-key",
            node,
            f"the key '{node.value}' appears twice in this mapping",
            "remove one of the two, or rename it",
        )

    def _number(self, node: Node) -> Any:
        text = node.value
        if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) <= MAX_DIGITS:
            return int(text)  # as nearly all are
        if _INTEGER.fullmatch(text) and not _LEADING_ZERO.fullmatch(text):
            if len(text) <= MAX_DIGITS:
                return int(text, 0)
        elif not _FLOAT.fullmatch(text):
            if not _ENDLESS.fullmatch(text):
                return text
        elif _LEADING_ZERO.fullmatch(text):
            return text
        else:
            number = float(text)
            if number - number == 0:
                return number
        self._fault(
            "number-range",
            node,
            f"the number {text[:20]} cannot be held",
            "use a finite number, or write it in quotes if it is text",
        )
        return 0

    def _tagged(self, node: Node) -> Any:
        """A scalar with a tag of its own: those of the core schema, where they fit."""
        name = str(node.tag).removeprefix("tag:yaml.org,2002:")
        if name == "str":
            return node.value
        if name in _CORE:
            plain = self.value(self.keep(ScalarNode(PLAIN, node.value, node.start_mark)))
            if type(plain) in _CORE[name]:
                return float(plain) if name == "float" else plain
        self._unknown_tag(node)
        return node.value

    def _check_tag(self, node: Node, own: str, core: str) -> None:
        if node.tag != own and node.tag != core:
            self._unknown_tag(node)

    def _unknown_tag(self, node: Node) -> None:
        shown = str(node.tag).replace("tag:yaml.org,2002:", "!!")
        self._fault(
            "unknown-tag",
            node,
            f"the tag {shown} is unknown here, or does not fit the value",
            "remove the tag: a playbook holds plain values only",
        )

    def _fault(self, code: str, node: Node, message: str, hint: str) -> None:
        self.faults.append(Fault(code, node, message, hint))


_CORE: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
_KIND_WORDS: dict[type, str] = {
    type(None): "null",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a mapping",
}


def kind_of(value: Any) -> str:
    """The word for the type of a plain value."""
    return _KIND_WORDS[type(value)]


def read_yaml(source: str | bytes) -> Tree:
    """The tree of the one document in `source`; raises Refused where there is none."""
    text = decoded(source)
    parser: Any = None
    try:
        parser = _Parser(text)
        root = parser.get_single_node()
    except YAMLError as error:
        raise refusal_of(error, text) from None
    finally:
        if parser is not None:
            parser.dispose()
    if root is None:
        raise UnreadableText("empty-document", None)
    if "*" in text:  # without aliases the parser has counted everything already
        find_excess(root)
    return Tree(root, text)
