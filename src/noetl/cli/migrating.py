"""`--migrate`: a command that takes a playbook takes one of an older dialect too (DIA)."""

import click

from noetl.cli.source import PlaybookSource
from noetl.errors import PlaybookRejected
from noetl.playbook.dialects.migrate import Migrated, migrate
from noetl.tools.plugins import KnownKinds


def read_migrated(source: PlaybookSource) -> Migrated:
    """The canonical form of a playbook; raises PlaybookRejected where it has none."""
    migrated = migrate(source.content, KnownKinds())
    if not migrated.complete:
        raise PlaybookRejected(migrated.findings)
    return migrated


def tell_migrated(source: PlaybookSource, migrated: Migrated) -> None:
    """One line on standard error, so that nobody runs another text unawares."""
    if migrated.changed:
        count = len(migrated.rewrites)
        said = f"{count} rewrite{'s' * (count != 1)}; `noetl migrate` shows them"
        click.echo(f"{source.name}: migrated, {said}", err=True)
