"""Which edit does a finding suggest? Only what its hint says, and only where it is certain."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from noetl.expression.meant import closest
from noetl.playbook.blocks import BLOCKS
from noetl.playbook.finding import Finding
from noetl.playbook.shape import Choice
from noetl.playbook.suggest import suggested

FAR = 200
"""Lines below the beginning of a text in which the name that is meant is looked for."""
_QUOTED = re.compile(r"'([^']+)'")
_IN_QUOTES = re.compile(r'write it in quotes: (?:[\w-]+: )?("([^"]*)")$')
_ADD = re.compile(r"^add '(\w+)':")
_LACKS = re.compile(r"^(?:an? )?'?(.+?)'? lacks '")
_SPAN = re.compile(r"\"[^\"]*\"?|'[^']*'?|[^\s,\]}#:]+")
MIGRATES = "noetl migrate"


class Fix(NamedTuple):
    """One edit: what is written in place of a piece of one line, lines and columns from 0."""

    title: str
    line: int
    start: int
    end: int
    text: str


def end_of(row: str, start: int) -> int:
    """The end of the word that begins somewhere in a line; else the end of the line."""
    word = _SPAN.match(row, start)
    return word.end() if word is not None else len(row)


def fix_of(finding: Finding, lines: Sequence[str]) -> Fix | None:
    """The edit that a hint describes, if it describes one."""
    near = suggested(finding.hint)
    if near is not None:
        return _renamed(finding, near, lines)
    quotes = _IN_QUOTES.search(finding.hint)
    if quotes is not None:
        return _replaced(finding, quotes[2], quotes[1], lines)
    added = _ADD.match(finding.hint)
    return None if added is None else _added(finding, added[1], lines)


def _renamed(finding: Finding, near: str, lines: Sequence[str]) -> Fix | None:
    """The message quotes the wrong word, among others; it is the one that is close."""
    words = [word for word in _QUOTED.findall(finding.message) if closest(word, [near]) == near]
    wrong = next((word for word in words if word != near), None)
    return None if wrong is None else _replaced(finding, wrong, near, lines)


def _replaced(finding: Finding, old: str, new: str, lines: Sequence[str]) -> Fix | None:
    """The first place at or after the finding where the old word stands by itself."""
    word = re.compile(rf"(?<![\w.]){re.escape(old)}(?!\w)")
    first = finding.line - 1
    for number in range(first, min(first + FAR, len(lines))):
        found = word.search(lines[number], finding.column - 1 if number == first else 0)
        if found is not None:
            return Fix(f"Replace '{old}' by '{new}'", number, found.start(), found.end(), new)
    return None


def _added(finding: Finding, key: str, lines: Sequence[str]) -> Fix | None:
    """A new line with the key that a block lacks, at the block's end."""
    first, column = finding.line - 1, finding.column - 1
    if first >= len(lines):
        return None
    row = lines[first]
    element = not finding.path or finding.path.endswith("]")
    if element:  # the finding points at the first key of the block
        nested = row.rstrip().endswith(":")
        indent, last = column, _last_of(lines, first, column if nested else column + 1)
    else:  # at the key that the block is the value of
        inside = next((one for one in lines[first + 1 :] if one.strip()), "")
        indent, last = len(inside) - len(inside.lstrip()), _last_of(lines, first, column + 1)
        if indent <= column:
            indent = column + 2
    if row[column : column + 1] in ("{", "[") or (not element and not row.rstrip().endswith(":")):
        return None  # written on one line
    text = f"\n{' ' * indent}{key}: {_first_word(finding, key)}".rstrip(" ")
    return Fix(f"Add '{key}'", last, len(lines[last]), len(lines[last]), text)


def _last_of(lines: Sequence[str], first: int, indent: int) -> int:
    """The last line of the block that begins on a line and is indented so far."""
    last = first
    for number in range(first + 1, len(lines)):
        row = lines[number]
        if row.strip() and len(row) - len(row.lstrip()) < indent:
            break
        last = number if row.strip() else last
    return last


def _first_word(finding: Finding, key: str) -> str:
    """The value of a key that has but one."""
    lacks = _LACKS.match(finding.message)
    block = BLOCKS.get(lacks[1]) if lacks is not None else None
    field = block.fields.get(key) if block is not None else None
    if field is not None and isinstance(field.type, Choice) and len(field.type.words) == 1:
        return field.type.words[0]
    return ""
