"""From the text of an older dialect to the canonical one, with everything that was done (DIA)."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping

import msgspec

from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.playbook.dialects.code import read_code
from noetl.playbook.dialects.draft import Draft, PendingChange, ReadFile
from noetl.playbook.dialects.guards import settled
from noetl.playbook.dialects.names import reads_of, tokens_of
from noetl.playbook.dialects.passes import PASSES
from noetl.playbook.dialects.rewrite import Rewrite
from noetl.playbook.dialects.tree_reading import read_tree
from noetl.playbook.dialects.tree_writing import Written, write_tree
from noetl.playbook.finding import Finding
from noetl.playbook.load import load
from noetl.playbook.retired import MIGRATE
from noetl.playbook.yaml_checks import UnreadableText, decoded
from noetl.playbook.yaml_text import Tree, read_yaml

_WORD = re.compile(r"\w+|\W")
_KEY = re.compile(r"[\w-]+(?=\W*$)")
_OLDER = frozenset(
    {"retired-word", "retired-name", "step-when", "root-vars", "unknown-kind"}
    | {"unknown-name", "unbound-name"}
)


class Migrated(msgspec.Struct, frozen=True):
    """What became of a text. An error among the findings: it could not be translated whole."""

    text: str
    rewrites: tuple[Rewrite, ...]
    findings: tuple[Finding, ...]
    """Lines are those of the source."""
    changed: bool
    origins: tuple[int, ...] = ()
    """By line of a changed text, from 1: the line of the source that it comes from."""

    @property
    def complete(self) -> bool:
        return all(finding.severity != "error" for finding in self.findings)


def migrate(
    source: str | bytes, kinds: Mapping[str, Kind] = KINDS, read: ReadFile | None = None
) -> Migrated:
    """
    The canonical text of a playbook in any dialect, or in a mix of them.

    A canonical text comes back as it is. Bad input gives findings, never an exception. `read`
    gives the text of a file that the playbook names, or None where there is none.
    """
    try:
        return _migrated(source, kinds, read)
    finally:
        for remembering in (tokens_of, reads_of, settled, read_code):
            remembering.cache_clear()  # of one text: a server translates whatever it is sent


def _migrated(source: str | bytes, kinds: Mapping[str, Kind], read: ReadFile | None) -> Migrated:
    try:
        text = decoded(source)
        tree = read_yaml(source)
        document = tree.value(tree.root)
    except UnreadableText:
        return Migrated(_as_text(source), (), load(source, kinds).findings, False)
    if tree.faults or not isinstance(document, dict):
        return Migrated(text, (), load(source, kinds).findings, False)
    draft = Draft(read_tree(tree), read)
    draft.apply(PASSES)
    if not draft.notes:
        return Migrated(text, (), _sorted(_told(draft, tree, load(source, kinds).findings)), False)
    written = write_tree(draft.document)
    after = load(written.text, kinds)
    found = _told(draft, tree, [_in_source(one, written, tree) for one in after.findings])
    rewrites, origins = _rewrites(draft.notes, written), tuple(written.origins)
    return Migrated(written.text, rewrites, _sorted(found), True, origins)


def _told(draft: Draft, tree: Tree, loaded: Iterable[Finding]) -> tuple[Finding, ...]:
    """The draft's own findings; what the loader says about the same older words adds nothing."""

    def is_told(one: Finding) -> bool:
        """At the same line, or inside the block that the loader does not know any more."""
        inside = (f"{one.path}.", f"{one.path}[")
        return one.code in _OLDER and any(
            told.line == one.line or told.path.startswith(inside) for told in draft.findings
        )

    # Who reads this has just run the command that those hints advise.
    more = (
        msgspec.structs.replace(one, hint=one.hint.replace(MIGRATE, "").strip())
        for one in loaded
        if not is_told(one)
    )
    own = (_at_word(one, tree, _KEY.findall(one.path)[-1:]) for one in draft.findings)
    return (*own, *more)


def _at_word(finding: Finding, tree: Tree, words: list[str]) -> Finding:
    """The finding at the column where one of the words stands; else where its line begins."""
    line = tree.lines[finding.line - 1] if finding.line <= len(tree.lines) else ""
    found = (
        match.start() for word in words if (match := re.search(rf"(?<!\w){re.escape(word)}", line))
    )
    start = next(found, len(line) - len(line.lstrip("- ")))
    return msgspec.structs.replace(finding, column=start + 1)


def _as_text(source: str | bytes) -> str:
    return source if isinstance(source, str) else source.decode("utf-8-sig", errors="replace")


def _rewrites(notes: list[PendingChange], written: Written) -> tuple[Rewrite, ...]:
    made = [
        Rewrite(
            note.code,
            note.line,
            _new_line(note, written),
            note.path,
            note.old,
            note.new,
            note.message,
        )
        for note in notes
    ]
    return tuple(sorted(made, key=lambda one: (one.line, one.new_line)))


def _new_line(note: PendingChange, written: Written) -> int:
    """Where the change stands now; what is gone is told where it would have been."""
    place = written.places.get(id(note.slot))
    if place is not None:
        return place
    return min(bisect_left(written.origins, note.line) + 1, max(1, len(written.origins)))


def _in_source(finding: Finding, written: Written, tree: Tree) -> Finding:
    """A finding of the new text, at the line of the source that it comes from."""
    lines = written.text.splitlines()
    if not 0 < finding.line <= len(written.origins):
        return finding
    there = msgspec.structs.replace(finding, line=written.origins[finding.line - 1])
    word = _WORD.match(lines[finding.line - 1][finding.column - 1 :])
    return _at_word(there, tree, [word[0]] if word else [])


def _sorted(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    severities = {"error": 0, "warning": 1}
    known = dict.fromkeys(findings)
    return tuple(sorted(known, key=lambda one: (one.line, severities[one.severity], one.code)))
