"""`noetl catalog`: which playbooks are registered, in which versions, and their text."""

from collections.abc import Iterable, Iterator

import click

from noetl.adapters.sqlite.locks import FILE as DATABASE
from noetl.api.entries import entry_fields, entry_of
from noetl.api.types import CatalogVersion, EntryText
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import JSON, print_json
from noetl.cli.running.words import short
from noetl.cli.target import aimed, near_or_far
from noetl.client.client import Client
from noetl.errors import PlaybookNotFound
from noetl.node.local import LocalNode
from noetl.settings import read_settings

EPILOG = """\b
Examples:
  noetl catalog
  noetl catalog reports/daily
  noetl catalog reports/daily --versions
  noetl catalog reports/daily --version 2 > playbook.yaml
"""

PAGE = 200


@click.command(epilog=EPILOG)
@click.argument("path", required=False, metavar="[PATH]")
@click.option("--versions", is_flag=True, help="List every version of PATH, the newest first.")
@click.option(
    "--version", type=click.IntRange(min=1), metavar="N", help="Print this version, not the newest."
)
@JSON
@aimed
def catalog(
    path: str | None, versions: bool, version: int | None, as_json: bool, target: Target
) -> int:
    """
    List registered playbooks, or print one.

    Without PATH the newest version of every path; with it the text of that playbook.
    """
    if path is None and (versions or version is not None):
        raise click.UsageError("--versions and --version need a PATH")
    if path is None and target.local and not (read_settings().home / DATABASE).exists():
        entries: list[CatalogVersion] = []
    elif path is not None and not versions:
        return show_text(path, version, as_json, target)
    else:
        entries = near_or_far(
            target,
            near=lambda local: entries_in(local, path),
            far=lambda client: list(entries_at(client, path)),
        )
    show(entries, as_json)
    if not entries and not as_json:
        click.echo("the catalog is empty; see: noetl register --help", err=True)
    return exits.OK


def show(entries: Iterable[CatalogVersion], as_json: bool) -> None:
    for entry in entries:
        if as_json:
            print_json(entry)
        else:
            about = f"  {short(entry.description, 60)}" if entry.description else ""
            number = f"version {entry.version}"
            click.echo(f"{entry.path:<32}  {number:<12}  {entry.registered_at}{about}")


def show_text(path: str, version: int | None, as_json: bool, target: Target) -> int:
    found = near_or_far(
        target,
        near=lambda local: text_in(local, path, version),
        far=lambda client: client.playbook(path, version=version),
    )
    if as_json:
        print_json(found)
    else:
        click.echo(found.text, nl=not found.text.endswith("\n"))
    return exits.OK


async def entries_in(local: LocalNode, path: str | None) -> list[CatalogVersion]:
    """All entries of the home's catalog, or all versions of one path."""
    found: list[CatalogVersion] = []
    after, before = None, None
    while True:
        if path is None:
            page = await local.storage.catalog.page(after=after, limit=PAGE)
        else:
            page = await local.storage.catalog.versions(path, before=before, limit=PAGE)
        if not page:
            break
        found += [entry_of(entry) for entry in page]
        after, before = page[-1].path, page[-1].version
    if path is not None and not found:
        raise missing(path, None)
    return found


def entries_at(client: Client, path: str | None) -> Iterator[CatalogVersion]:
    pages = client.pages(client.catalog) if path is None else client.pages(client.versions, path)
    for page in pages:
        yield from page.entries


async def text_in(local: LocalNode, path: str, version: int | None) -> EntryText:
    storage = local.storage
    entry = await storage.catalog.find(path, version)
    kept = None if entry is None else await storage.playbooks.text(entry.digest)
    if entry is None or kept is None:
        raise missing(path, version)
    original = await storage.catalog.original(entry.playbook_id)
    return EntryText(text=kept[0], original=original, **entry_fields(entry))


def missing(path: str, version: int | None) -> PlaybookNotFound:
    which = "" if version is None else f", version {version},"
    return PlaybookNotFound(
        f"no playbook '{path}'{which} in the catalog; `noetl catalog` lists them, "
        "`noetl register FILE` adds one"
    )
