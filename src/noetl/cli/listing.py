"""`noetl list`: which executions are there?"""

from collections.abc import AsyncIterator, Iterator
from fnmatch import fnmatchcase
from itertools import islice

import click

from noetl.adapters.sqlite.locks import FILE
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import JSON, is_interrupted, print_json
from noetl.cli.running.words import seconds, short
from noetl.cli.status import TONES, shown_status
from noetl.cli.target import aimed, near_or_far
from noetl.cli.terminal import Paint, wants_colour
from noetl.client.client import Client
from noetl.node.local import LocalNode
from noetl.server.views.standing import Listed, listed_of
from noetl.settings import read_settings

EPILOG = """\b
Examples:
  noetl list
  noetl list --status failed --path 'reports/*'
  noetl list --json --limit 1000
"""

STATUSES = ("running", "paused", "completed", "failed", "cancelled", "interrupted")
PAGE = 200


@click.command("list", epilog=EPILOG)
@click.option("--status", type=click.Choice(STATUSES), help="Only those that stand like this.")
@click.option("--path", metavar="GLOB", help="Only those whose playbook's path matches.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="At most so many, the newest first.",
)
@JSON
@aimed
def listing(status: str | None, path: str | None, limit: int, as_json: bool, target: Target) -> int:
    """List executions, the newest first."""
    if target.local and not (home := read_settings().home / FILE).exists():
        click.echo(f"nothing has run in {home.parent} yet", err=True)
        return exits.OK

    async def near(local: LocalNode) -> list[Listed]:
        found = []
        async for row in rows_in(local, status):
            if is_wanted(row, status, path):
                found.append(row)
                if len(found) == limit:
                    break
        return found

    rows = near_or_far(
        target,
        near=near,
        far=lambda client: list(islice(rows_at(client, status, path), limit)),
    )
    paint = Paint(wants_colour())
    for row in rows:
        if as_json:
            print_json(row)
        else:
            click.echo(line_of(row, paint))
    if not rows:
        click.echo("no execution matches", err=True)
    return exits.OK


def stored(status: str | None) -> str | None:
    """The status as it is kept: who runs an execution is nothing that a row knows."""
    return "running" if status == "interrupted" else status


def is_wanted(row: Listed, status: str | None, path: str | None) -> bool:
    return status in (None, stands(row)) and (path is None or fnmatchcase(row.path, path))


def stands(row: Listed) -> str:
    return shown_status(row.status, interrupted=row.interrupted)


async def rows_in(local: LocalNode, status: str | None) -> AsyncIterator[Listed]:
    """The home's rows, page by page."""
    before = None
    while True:
        page = await local.storage.executions.page(status=stored(status), before=before, limit=PAGE)
        for row in page:
            yield listed_of(row, interrupted=await is_interrupted(local, row))
        if len(page) < PAGE:
            return
        before = page[-1].execution_id


def rows_at(client: Client, status: str | None, path: str | None) -> Iterator[Listed]:
    """The server's rows, page by page; a glob is matched here."""
    whole = path if path is not None and not any(sign in path for sign in "*?[") else None
    for page in client.pages(client.executions, status=stored(status), path=whole):
        yield from (row for row in page.executions if is_wanted(row, status, path))


def line_of(row: Listed, paint: Paint) -> str:
    took = seconds(row.duration_ms)
    word = paint(TONES.get(stands(row), "note"), stands(row).ljust(11))
    why = f"  {short(row.error, 60)}" if row.error else ""
    return f"{row.execution_id}  {word}  {row.started_at}  {took:>9}  {row.path}{why}"
