"""Is a text too much, or not YAML at all? Everything that ends reading at once (DOC-7)."""

from typing import Any, Final

from yaml.error import MarkedYAMLError, YAMLError
from yaml.nodes import MappingNode, Node, ScalarNode

from noetl.errors import NoetlError
from noetl.late import late

MAX_BYTES = 2 * 1024 * 1024
MAX_DEPTH = 100
MAX_NODES = 200_000

# What YAML 1.2 does not call printable: binary, or a slip of an editor.
_FORBIDDEN = late("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")

_ALLOWED_ASCII = bytes([9, 10, 13, *range(0x20, 0x7F)])

_SAID: dict[str, tuple[str, str]] = {
    "empty-document": (
        "the file holds no document, expected a playbook",
        "start with 'apiVersion: noetl.io/v2'",
    ),
    "too-large": (
        f"the text is longer than {MAX_BYTES} bytes",
        "move data out of the playbook: into workload by --payload, or into files and tables",
    ),
    "too-deep": (
        f"blocks are nested more than {MAX_DEPTH} deep",
        "flatten the structure, or move it into data that a task reads",
    ),
    "too-many-nodes": (
        f"the document has more than {MAX_NODES} values once aliases are expanded",
        "use fewer aliases of aliases, or move data out of the playbook",
    ),
    "recursive-alias": (
        "an alias refers to a block that contains it",
        "write the value out; a playbook must be finite",
    ),
    "several-documents": (
        "the file holds more than one document, expected one playbook per file",
        "remove what follows this '---', or put it into a file of its own",
    ),
}


class UnreadableText(NoetlError):
    """The text cannot be read as one document at all; line and column count from 1."""

    def __init__(
        self, code: str, mark: Any, *, message: str | None = None, hint: str | None = None
    ) -> None:
        said, advice = _SAID.get(code, ("", ""))
        super().__init__(message or said)
        self.code = code
        self.message = message or said
        self.hint = hint or advice
        self.line = mark.line + 1 if mark is not None else 1
        self.column = mark.column + 1 if mark is not None else 1


class _Spot:
    """Line and column of an index, counted from 0 as the parser does."""

    def __init__(self, text: str, index: int) -> None:
        self.line = text.count("\n", 0, index)
        self.column = index - (text.rfind("\n", 0, index) + 1)


def decoded(source: str | bytes) -> str:
    """The text of `source` without a byte order mark, if it may be parsed at all."""
    if len(source) > MAX_BYTES:
        raise UnreadableText("too-large", None)
    text = _from_utf8(source) if isinstance(source, bytes) else source
    text = text.removeprefix("\ufeff")
    bad = None if _is_plain(text) else _FORBIDDEN.search(text)
    if bad:
        raise UnreadableText(
            "control-character",
            _Spot(text, bad.start()),
            message=f"the character U+{ord(bad.group()):04X} is not allowed in YAML",
            hint="is this a text file? Remove the character, or write it as an escape in quotes",
        )
    if isinstance(source, str) and len(text.encode()) > MAX_BYTES:
        raise UnreadableText("too-large", None)
    return text


def _is_plain(text: str) -> bool:
    """Whether a text needs no closer look: most are ASCII, and this is twenty times faster."""
    return text.isascii() and not text.encode().translate(None, _ALLOWED_ASCII)


def _from_utf8(source: bytes) -> str:
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        before = source[: error.start]
        spot = _Spot(before.decode(errors="replace"), len(before.decode(errors="replace")))
        raise UnreadableText(
            "not-utf8",
            spot,
            message=f"the byte 0x{source[error.start]:02x} at offset {error.start} is not UTF-8",
            hint="save the file as UTF-8; a playbook is text",
        ) from None


def refusal_of(error: YAMLError, text: str) -> UnreadableText:
    """What the parser's own complaint means for the author."""
    if not isinstance(error, MarkedYAMLError):
        return UnreadableText(
            "yaml-syntax", None, message=f"the text is not YAML: {error}", hint="check the file"
        )
    problem = error.problem or "unexpected text"
    mark = error.problem_mark or error.context_mark
    if "another document" in problem:
        return UnreadableText("several-documents", mark)
    if _at_tab(text, mark):
        return UnreadableText(
            "tab-indent",
            mark,
            message="found a tab where YAML allows only spaces",
            hint="indent with spaces; most editors can convert tabs",
        )
    if opening := _never_closed(error, text):
        return UnreadableText(
            "yaml-syntax",
            error.context_mark,
            message=f"the text is not YAML: {opening} opens here and is never closed",
            hint=f"close it where it ends with {_CLOSING[opening]}",
        )
    context = f" {error.context}" if error.context else ""
    return UnreadableText(
        "yaml-syntax",
        mark,
        message=f"the text is not YAML: {problem}{context and ',' + context}",
        hint=_remedy(text, mark),
    )


_REMEDIES: Final = (
    (
        late(r"""(\w+):\s+(?:\{\{|[^\s'"{[|>#][^'"#]*\{\{)"""),
        'put a value with a template in quotes: {0}: "{{{{ … }}}}"',
    ),
    (late(r"^\s*(?:- )?(\w+):[^\s:/{[]"), "write a space behind the colon: {0}: …"),
    (
        late(r"""^\s*(?:- )?(\w+): [^'"{[|>#]*: """),
        'put a value with a colon in quotes: {0}: "…: …"',
    ),
)
"""What is wrong with a line that is not YAML, most of the time."""


_CLOSING: Final = {"'": "'", '"': '"', "[": "]", "{": "}"}


def _never_closed(error: MarkedYAMLError, text: str) -> str:
    """What is open at the end of the text: there the parser complains, far from where it opened."""
    opened, found = error.context_mark, error.problem_mark
    if opened is None or found is None or text[found.index :].strip():
        return ""
    character = text[opened.index : opened.index + 1]
    return character if character in _CLOSING else ""


def _remedy(text: str, mark: Any) -> str:
    """The line of the complaint, and the one above it, where most of them come from."""
    lines = text.split("\n", mark.line + 1)[: mark.line + 1]
    for line in reversed(lines[-2:]):
        for pattern, remedy in _REMEDIES:
            found = pattern.search(line[:500])
            if found is not None:
                return remedy.format(found[1])
    return "look at this line and the one above: indentation, a missing ':' or an open quote"


def _at_tab(text: str, mark: Any) -> bool:
    if mark is None:
        return False
    lines = text.split("\n", mark.line + 1)
    if mark.line >= len(lines):
        return False
    line = lines[mark.line]
    return line[mark.column : mark.column + 1] == "\t" or "\t" in line[: _indent(line)]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def find_excess(root: Node) -> None:
    """
    Refuse aliases that make too much of a small text, without expanding them.

    An alias points to an earlier anchor, whose size is known by then; so this walks the text once.
    """
    sizes: dict[int, tuple[int, int]] = {}
    _measure(root, sizes)


def size_of(node: Node) -> int:
    """How many values a node holds, aliases expanded."""
    return _measure(node, {})[0]


_OPEN = (-1, -1)


def _measure(node: Node, sizes: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Size and height of a node with its aliases expanded."""
    if type(node) is ScalarNode:
        return 1, 1
    known = sizes.get(id(node))
    if known is _OPEN:
        raise UnreadableText("recursive-alias", node.start_mark)
    if known is not None:
        return known
    sizes[id(node)] = _OPEN
    size = height = 0
    children = (
        (child for pair in node.value for child in pair)
        if type(node) is MappingNode
        else iter(node.value)
    )
    for child in children:
        child_size, child_height = _measure(child, sizes)
        size += child_size
        height = max(height, child_height)
    if size >= MAX_NODES:
        raise UnreadableText("too-many-nodes", node.start_mark)
    if height >= MAX_DEPTH:
        raise UnreadableText("too-deep", node.start_mark)
    sizes[id(node)] = (size + 1, height + 1)
    return sizes[id(node)]
