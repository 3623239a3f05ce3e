"""Cases of validation: texts with all that must be said about each."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from noetl.playbook.codes import CODES
from noetl.playbook.finding import Finding

FOLDER = Path(__file__).parent / "playbooks"
ACCEPTED = sorted((FOLDER / "accepted").glob("*.yaml"))
OLDER = sorted((FOLDER / "older").glob("*.yaml"))


class Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding that a case expects; its severity follows from the code."""

    code: str
    line: int
    column: int
    path: str
    message: str
    hint: str

    def finding(self) -> Finding:
        severity = CODES[self.code].severity
        return Finding(
            self.code, severity, self.line, self.column, self.path, self.message, self.hint
        )


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text and everything that is said about it."""

    name: str
    rule: str
    text: str
    findings: tuple[Said, ...]

    @property
    def codes(self) -> set[str]:
        return {said.code for said in self.findings}

    def __str__(self) -> str:
        return self.name


def cases(file: str, *rules: str) -> list[Case]:
    """The cases of a file, or those of some rules."""
    source = (FOLDER / f"{file}.yaml").read_bytes()
    found = msgspec.yaml.decode(source, type=list[Case])
    chosen = [case for case in found if not rules or case.rule in rules]
    assert chosen, f"{file}.yaml has no case of {rules}"  # an empty table would pass unseen
    return chosen


def all_cases() -> list[Case]:
    """Every case of every file."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in cases(path.stem)]


class Unreadable(NamedTuple):
    """A text that is refused as a whole."""

    name: str
    source: str | bytes
    code: str
    line: int
    column: int
    message: str


def _nested(levels: int) -> str:
    return "a: " + "[" * levels + "]" * levels


def _bomb(levels: int) -> str:
    """Each line holds the one before it ten times."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(1, levels):
        aliases = ", ".join([f"*a{n - 1}"] * 10)
        lines.append(f"a{n}: &a{n} [{aliases}]")
    return "\n".join(lines)


def _chain(links: int) -> str:
    """Each line nests the one before it once more."""
    return "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, links))])


TOO_DEEP = "blocks are nested more than 100 deep"
TOO_MANY = "the document has more than 200000 values once aliases are expanded"
TOO_LARGE = "the text is longer than 2097152 bytes"
EMPTY = "the file holds no document, expected a playbook"
TAB = "found a tab where YAML allows only spaces"

UNREADABLE = [
    Unreadable("empty", "", "empty-document", 1, 1, EMPTY),
    Unreadable("only a comment", "\n# nothing\n", "empty-document", 1, 1, EMPTY),
    Unreadable("too large", b"a: " + b"x" * 2_097_152, "too-large", 1, 1, TOO_LARGE),
    Unreadable("too large as text", "a: " + "ä" * 1_500_000, "too-large", 1, 1, TOO_LARGE),
    Unreadable(
        "not UTF-8",
        b"a: 1\nb: caf\xe9\n",
        "not-utf8",
        2,
        7,
        "the byte 0xe9 at offset 11 is not UTF-8",
    ),
    Unreadable(
        "UTF-16",
        "a: 1".encode("utf-16"),
        "not-utf8",
        1,
        1,
        "the byte 0xff at offset 0 is not UTF-8",
    ),
    Unreadable(
        "binary",
        b"\x7fELF\x02\x01\x00",
        "control-character",
        1,
        1,
        "the character U+007F is not allowed in YAML",
    ),
    Unreadable(
        "NUL",
        "a: 1\nb: \0",
        "control-character",
        2,
        4,
        "the character U+0000 is not allowed in YAML",
    ),
    Unreadable(
        "half a character",
        "a: ä\ud800",
        "control-character",
        1,
        5,
        "the character U+D800 is not allowed in YAML",
    ),
    Unreadable("indented by a tab", "a:\n\tb: 1\n", "tab-indent", 2, 1, TAB),
    Unreadable("a tab after spaces", "a:\n  b: 1\n\tc: 2\n", "tab-indent", 3, 1, TAB),
    Unreadable(
        "two documents",
        "a: 1\n---\nb: 2\n",
        "several-documents",
        2,
        1,
        "the file holds more than one document, expected one playbook per file",
    ),
    Unreadable("deep", _nested(100_000), "too-deep", 1, 102, TOO_DEEP),
    Unreadable("deep blocks", "- " * 5000, "too-deep", 1, 199, TOO_DEEP),
    Unreadable("deep by aliases", _chain(3000), "too-deep", 100, 6, TOO_DEEP),
    Unreadable("many values", "[" + "1," * 300_000 + "]", "too-many-nodes", 1, 1, TOO_MANY),
    Unreadable("an alias bomb", _bomb(12), "too-many-nodes", 6, 5, TOO_MANY),
    Unreadable(
        "a recursive alias",
        "a: &a\n  b: *a\n",
        "recursive-alias",
        1,
        4,
        "an alias refers to a block that contains it",
    ),
    Unreadable(
        "an alias of nothing",
        "a: *b\n",
        "yaml-syntax",
        1,
        4,
        "the text is not YAML: found undefined alias",
    ),
    Unreadable(
        "an open bracket",
        "a: [1, 2\n",
        "yaml-syntax",
        1,
        4,
        "the text is not YAML: [ opens here and is never closed",
    ),
    Unreadable(
        "an open quote",
        'a: "b\nc: d\n',
        "yaml-syntax",
        1,
        4,
        'the text is not YAML: " opens here and is never closed',
    ),
    Unreadable(
        "two colons",
        "a: b: c\n",
        "yaml-syntax",
        1,
        5,
        "the text is not YAML: mapping values are not allowed in this context",
    ),
]
