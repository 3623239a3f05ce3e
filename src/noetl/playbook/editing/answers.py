"""What an editor asks about a place of a playbook: what may follow, what is it, where is it?"""

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

from yaml.nodes import Node, ScalarNode

from noetl.kinds.kind import Kind
from noetl.playbook.editing.cursor import MARK, Cursor, cursor_at
from noetl.playbook.editing.language import (
    AtCursor,
    Suggestion,
    input_entry,
    key_entry,
    keys_at,
    kind_entry,
    setting_of,
    words_at,
)
from noetl.playbook.editing.names import NAMESPACES, inside_template, targets, template_names
from noetl.playbook.finding import Finding, Place
from noetl.playbook.inputs import input_fields
from noetl.playbook.load import examine, load_document
from noetl.playbook.model import Playbook
from noetl.playbook.parse import parse
from noetl.playbook.reader import Reader

Sort = Literal["key", "value", "name"]
_WORD = re.compile(r"[\w-]*$")
_NAME = re.compile(r"\w*$")
_PATH = re.compile(r"(\w+)[\w.]*$")
_REST = re.compile(r"[\w-]*")


class Completion(NamedTuple):
    """One thing that may be written in place of the `back` characters before the cursor."""

    entry: Suggestion
    sort: Sort
    insert: str
    back: int


class KnownPlace(NamedTuple):
    """What is known about a place."""

    cursor: Cursor
    setting: AtCursor
    model: Playbook | None


class OpenDocument:
    """One text that is open in an editor, with what was last known about it."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = kinds
        self.findings: tuple[Finding, ...] = ()
        self._read: Playbook | None = None
        """The model of the newest text that could be parsed."""

    def check(self, text: str) -> tuple[Finding, ...]:
        """Everything that is wrong with the text."""
        loaded, model = examine(text, self.kinds)
        self._read = model or self._read
        trigger = any(one.code == "no-playbook" for one in loaded.findings)
        self.findings = (load_document(text) if trigger else loaded).findings
        return self.findings

    def _at(self, text: str, line: int, column: int) -> KnownPlace | None:
        cursor = cursor_at(text, line, column)
        if cursor is None:
            return None
        # The text as it is now where it can be read whole, else as it was when it could.
        whole = cursor.whole or self._read is None
        model = parse(Reader(cursor.tree, self.kinds)) if whole else self._read
        return KnownPlace(cursor, setting_of(cursor, self.kinds), model)

    def _word_at(self, text: str, line: int, column: int) -> KnownPlace | None:
        """The same at the end of the word that the cursor is in."""
        rest = _REST.match(_row(text, line), column)
        return self._at(text, line, column if rest is None else rest.end())

    # ── completion ──

    def offers(self, text: str, line: int, column: int) -> list[Completion]:
        """What may be written at the cursor."""
        known = self._at(text, line, column)
        if known is None:
            return []
        row = _row(text, line)
        left, right = row[:column], row[column:]
        cursor, setting, model = known
        if inside_template(cursor.before) is not None:
            entries = [] if model is None else template_names(cursor, model, self.kinds)
            return _offered(entries, "name", left, _NAME)
        if cursor.key or setting.key == MARK:
            there = _keys_of(cursor.way[-1].node) if cursor.key else set()
            entries = [entry for entry in keys_at(setting) if entry.name not in there]
            colon = _REST.sub("", right, count=1).lstrip().startswith(":")
            if cursor.flow:  # what is nested goes on behind it
                entries = [entry._replace(nested=False) for entry in entries]
            return _offered(entries, "key", left, _WORD, colon=not colon)
        entries = list(words_at(setting, self.kinds))
        if model is not None:
            named = targets(setting, cursor, model)
            entries += [Suggestion(name, says) for name, (_, says) in named.items()]
        return _offered(entries, "value", left, _WORD)

    # ── hover and definition ──

    def hover(self, text: str, line: int, column: int) -> str | None:
        """The documentation of the word at the cursor."""
        known = self._word_at(text, line, column)
        if known is None:
            return None
        cursor, setting, model = known
        if inside_template(cursor.before) is not None:
            root = _PATH.search(cursor.before)
            name = "" if root is None else root[1]
            return f"**{name}**: {NAMESPACES[name]}" if name in NAMESPACES else None
        if cursor.key:
            return _about_key(setting, cursor.text)
        if setting.names == "kind" and cursor.text in self.kinds:
            return kind_entry(self.kinds[cursor.text]).about
        named = {} if model is None else targets(setting, cursor, model)
        if cursor.text not in named:
            return None
        place, says = named[cursor.text]
        return f"**{cursor.text}** (line {place.line}): {says}"

    def definition(self, text: str, line: int, column: int) -> Place | None:
        """Where the step, task or credential stands that the word at the cursor names."""
        known = self._word_at(text, line, column)
        if known is None or known.model is None:
            return None
        named = targets(known.setting, known.cursor, known.model)
        return named[known.cursor.text][0] if known.cursor.text in named else None


def _offered(
    entries: list[Suggestion], sort: Sort, left: str, word: re.Pattern[str], *, colon: bool = False
) -> list[Completion]:
    found = word.search(left)
    back = 0 if found is None else len(found[0])
    ends = {True: ":", False: ": "} if colon else {True: "", False: ""}
    return [Completion(entry, sort, entry.name + ends[entry.nested], back) for entry in entries]


def _about_key(setting: AtCursor, word: str) -> str | None:
    if setting.block is not None and word in setting.block.fields:
        return key_entry(setting.block, word).about
    if setting.kind is not None and word in input_fields(setting.kind.inputs):
        return input_entry(setting.kind, word).about
    return None


def _keys_of(node: Node) -> set[str]:
    """The keys that stand there already; while one types, a key may be a list or a mapping."""
    return {key.value for key, _ in node.value if isinstance(key, ScalarNode)}


def _row(text: str, line: int) -> str:
    lines = text.split("\n")
    return lines[line].rstrip("\r") if line < len(lines) else ""
