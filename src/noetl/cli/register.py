"""`noetl register`: put playbooks into the catalog, each text a version of its path."""

import click

from noetl.api.rows import entry_of
from noetl.api.types import CatalogVersion
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.neighbours import neighbours_of
from noetl.cli.ordering import note
from noetl.cli.output import tell
from noetl.cli.source import FILE, PlaybookSource
from noetl.cli.target import aimed, ask, at_server
from noetl.cli.trigger import warn_of
from noetl.cli.validate import (
    Heed,
    canonical,
    heeding,
    read_or_tell,
    tell_findings,
    tell_warnings,
)
from noetl.errors import PlaybookRejected
from noetl.node.local import LocalNode
from noetl.playbook.load import load_document, load_valid
from noetl.server.registering import registered
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl register playbook.yaml
  noetl register playbooks/*.yaml --server http://127.0.0.1:8765
  noetl register old.yaml --migrate

\b
Exit codes: 0 all are registered, 2 one is invalid, 3 one cannot be read; the others are
still registered.
"""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@click.option("--migrate", is_flag=True, help="Accept playbooks of an older dialect.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file and line.")
@heeding
@aimed
def register(
    files: tuple[str, ...], migrate: bool, as_json: bool, heed: Heed, target: Target
) -> int:
    """
    Register playbooks in the catalog, to execute them by their path.

    A changed playbook becomes the next version of its path; registering the same text again
    changes nothing. FILE is a playbook, or - for standard input.
    """
    return max(register_one(name, target, heed, migrate=migrate, as_json=as_json) for name in files)


def register_one(name: str, target: Target, heed: Heed, *, migrate: bool, as_json: bool) -> int:
    """One file; one that is refused does not keep the others out."""
    source = read_or_tell(name, as_json)
    if source is None:
        return exits.UNUSABLE
    try:
        text, original = texts_in(source, heed, target, migrate=migrate)
        entry, fresh = registered_text(text, original, target, migrate=migrate)
    except PlaybookRejected as rejected:
        strict = heed == "strict"
        return tell_findings(source, rejected.findings, as_json, err=True, strict=strict)
    word = "registered" if fresh else "unchanged"
    tell(
        {"file": source.name, "fresh": fresh, "entry": entry},
        f"{source.name}: {word}, {entry.path} version {entry.version}",
        as_json=as_json,
    )
    if heed != "quiet" and "Trigger" in text and load_document(text).trigger is not None:
        warn_of(ask(target, lambda asked: asked.trigger(entry.path)))
    return exits.OK


def registered_text(
    text: str, original: str | None, target: Target, *, migrate: bool = False
) -> tuple[CatalogVersion, bool]:
    """The entry of a text in the home or at a server, and whether it is new there."""
    if target.local:
        return in_home(lambda local: enter(local, text, original), make=True)
    sent = original or text
    answer = at_server(target, lambda client: client.register(sent, migrate=migrate))
    return answer.entry, answer.fresh


def texts_in(
    source: PlaybookSource, heed: Heed, target: Target, *, migrate: bool
) -> tuple[str, str | None]:
    """The canonical text, and the one it was made of where that differs; warnings are told."""
    if not migrate:
        text = decoded(source)
        if heed != "quiet":
            found = load_document(text, KnownKinds(), neighbours_of(source, target))
            if (
                found.playbook is not None or found.trigger is not None
            ):  # else it is refused; a server may know more kinds
                tell_warnings(source, found.findings, heed)
        return text, None
    made = canonical(source)
    tell_warnings(source, made.findings, heed)
    return made.text, decoded(source) if made.changed else None


def decoded(source: PlaybookSource) -> str:
    """Bytes that are no text are for the parser to refuse, with its finding (DOC-7)."""
    try:
        return source.text
    except UnicodeDecodeError:
        load_valid(source.content)
        raise


async def enter(local: LocalNode, text: str, original: str | None) -> tuple[CatalogVersion, bool]:
    entry, fresh = await registered(local.storage, text, original=original)
    if fresh:
        await note(local, "register", entry.playbook_id)
    return entry_of(entry), fresh
