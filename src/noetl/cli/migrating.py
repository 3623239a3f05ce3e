"""`--migrate`: a command that takes a playbook takes one of an older dialect too (DIA)."""

from typing import TYPE_CHECKING

import click

from noetl.cli.source import PlaybookSource
from noetl.errors import PlaybookRejected
from noetl.tools.plugins import KnownKinds

if TYPE_CHECKING:
    from noetl.playbook.dialects.migrate import Migrated


def canonical(source: PlaybookSource) -> "Migrated":
    """
    A playbook in the canonical language; raises PlaybookRejected where it has no such form.

    One line on standard error tells of a change, so that nobody runs another text unawares.
    """
    from noetl.playbook.dialects.migrate import migrate

    migrated = migrate(source.content, KnownKinds())
    if not migrated.complete:
        raise PlaybookRejected(migrated.findings)
    if migrated.changed:
        count = len(migrated.rewrites)
        said = f"{count} rewrite{'s' * (count != 1)}; `noetl migrate` shows them"
        click.echo(f"{source.name}: migrated, {said}", err=True)
    return migrated
