"""`noetl catalog`: which playbooks are registered, in which versions, their text; remove them."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from noetl.api.types import CatalogVersion
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.ordering import noting
from noetl.cli.output import JSON, print_json, some_playbook, tell, tell_each, write
from noetl.cli.running.words import short
from noetl.cli.target import Asked, aimed, ask, is_new, pages
from noetl.cli.terminal import is_terminal
from noetl.cli.trigger import ordered
from noetl.errors import PlaybookNotFound

EPILOG = """\b
Examples:
  noetl catalog
  noetl catalog reports/daily
  noetl catalog reports/daily --versions
  noetl catalog reports/daily --version 2 > playbook.yaml
  noetl catalog remove reports/daily --version 2

\b
`remove` refuses while an execution that has not ended runs it, or a trigger would find nothing
to start. Executions that ended keep the text that they ran.
"""
REMOVE = "remove"

T = TypeVar("T")
REMEDY = "`noetl catalog` without a path lists them, `noetl register FILE` adds one"


@click.command(epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[remove] [PATH]", shell_complete=some_playbook)
@click.option("--versions", is_flag=True, help="List every version of PATH, the newest first.")
@click.option("--version", metavar="V", help="Print or remove this version (a number or a label).")
@click.option("--yes", is_flag=True, help="Remove without asking.")
@JSON
@aimed
def catalog(
    words: tuple[str, ...],
    versions: bool,
    version: str | None,
    yes: bool,
    as_json: bool,
    target: Target,
) -> int:
    """
    List registered playbooks, print one, or remove one.

    Without PATH, list the newest version of every playbook; with PATH, print its text. With
    `remove PATH`, remove the playbook or one version of it from the catalog.
    """
    if len(words) == 2 and words[0] == REMOVE and not versions:
        return removed(target, words[1], version, yes=yes, as_json=as_json)
    if len(words) > 1 or yes:
        raise click.UsageError("expected one PATH, or: remove PATH")
    path = words[0] if words else None
    if path is None and (versions or version is not None):
        raise click.UsageError("--versions and --version need a PATH")
    if path is not None and not versions:
        found = ask_catalog(target, lambda asked: asked.playbook(path, version=version))
        if as_json:
            print_json(found)
        else:
            write(found.text, None)
        return exits.OK
    entries: list[CatalogVersion] = []
    if path is not None or not is_new(target):
        entries = ask_catalog(target, lambda asked: entries_of(asked, path))
    none = "the catalog is empty; see: noetl register --help"
    tell_each(entries, line_of, as_json=as_json, none=none)
    return exits.OK


def removed(target: Target, path: str, version: str | None, *, yes: bool, as_json: bool) -> int:
    """Take a playbook out of the catalog, once that was confirmed."""
    which = "every version" if version is None else f"version {version}"
    if not yes:
        if not is_terminal(err=True):
            raise click.UsageError("it removes the playbook from the catalog: give --yes")
        if not click.confirm(f"remove {which} of '{path}' from the catalog?", err=True):
            return exits.FAILED
    ordered(
        target,
        noting(
            "catalog.remove", f"{path} {which}", lambda local: local.playbooks.remove(path, version)
        ),
        lambda client: client.remove_playbook(path, version=version),
    )
    tell(
        {"path": path, "version": version, "removed": True},
        f"{path}: removed {which} from the catalog",
        as_json=as_json,
    )
    return exits.OK


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
