"""`noetl catalog`: which playbooks are registered, in which versions, and their text."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from noetl.api.types import CatalogVersion
from noetl.cli.contexts import Target
from noetl.cli.output import JSON, print_json, some_playbook, tell_each, write
from noetl.cli.running.words import short
from noetl.cli.target import Asked, aimed, ask, is_new, pages
from noetl.errors import PlaybookNotFound

EPILOG = """\b
Examples:
  noetl catalog
  noetl catalog reports/daily
  noetl catalog reports/daily --versions
  noetl catalog reports/daily --version 2 > playbook.yaml
"""

T = TypeVar("T")
REMEDY = "`noetl catalog` without a path lists them, `noetl register FILE` adds one"


@click.command(epilog=EPILOG)
@click.argument("path", required=False, metavar="[PATH]", shell_complete=some_playbook)
@click.option("--versions", is_flag=True, help="List every version of PATH, the newest first.")
@click.option(
    "--version", metavar="V", help="Print this version (a number or a label), not the newest."
)
@JSON
@aimed
def catalog(
    path: str | None, versions: bool, version: str | None, as_json: bool, target: Target
) -> None:
    """
    List registered playbooks, or print one.

    Without PATH, list the newest version of every playbook; with PATH, print its text.
    """
    if path is None and (versions or version is not None):
        raise click.UsageError("--versions and --version need a PATH")
    if path is not None and not versions:
        found = ask_catalog(target, lambda asked: asked.playbook(path, version=version))
        if as_json:
            print_json(found)
        else:
            write(found.text, None)
        return
    entries: list[CatalogVersion] = []
    if path is not None or not is_new(target):
        entries = ask_catalog(target, lambda asked: entries_of(asked, path))
    none = "the catalog is empty; see: noetl register --help"
    tell_each(entries, line_of, as_json=as_json, none=none)


def ask_catalog(target: Target, work: Callable[[Asked], Awaitable[T]]) -> T:
    """What the catalog has; where it has no such playbook, what to do about it."""
    try:
        return ask(target, work)
    except PlaybookNotFound as missing:
        raise PlaybookNotFound(f"{missing}; {REMEDY}") from None


async def entries_of(asked: Asked, path: str | None) -> list[CatalogVersion]:
    """The newest version of every playbook, or all versions of one."""
    found = pages(asked.catalog) if path is None else pages(asked.versions, path)
    return [entry async for page in found for entry in page.entries]


def line_of(entry: CatalogVersion) -> str:
    about = f"  {short(entry.description, 60)}" if entry.description else ""
    label = f" ({entry.version_label})" if entry.version_label else ""
    number = f"version {entry.version}{label}"
    return f"{entry.path:<32}  {number:<12}  {entry.registered_at}{about}"
