"""`noetl list`: which executions are in this home?"""

from collections.abc import AsyncIterator
from fnmatch import fnmatchcase

import click

from noetl.adapters.sqlite.database import FILE
from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.home import JSON, in_home, is_interrupted, print_json
from noetl.cli.running.words import seconds, short
from noetl.cli.status import TONES, shown_status
from noetl.cli.terminal import Paint, wants_colour
from noetl.messages.envelope import timestamp
from noetl.ports.event_log import ExecutionRow
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
def listing(status: str | None, path: str | None, limit: int, as_json: bool) -> int:
    """List executions, the newest first."""
    settings = read_settings()
    if not (settings.home / FILE).exists():
        click.echo(f"nothing has run in {settings.home} yet", err=True)
        return exits.OK

    async def collect(local: Local) -> list[tuple[ExecutionRow, str]]:
        found = []
        async for row, stands in matching(local, status, path):
            found.append((row, stands))
            if len(found) == limit:
                break
        return found

    rows = in_home(collect)
    paint = Paint(wants_colour())
    for row, stands in rows:
        if as_json:
            print_json(as_object(row, stands))
        else:
            click.echo(line_of(row, stands, paint))
    if not rows:
        click.echo("no execution matches", err=True)
    return exits.OK


async def matching(
    local: Local, status: str | None, path: str | None
) -> AsyncIterator[tuple[ExecutionRow, str]]:
    """The rows that were asked for, with the status to show."""
    before = None
    stored = "running" if status == "interrupted" else status
    while True:
        page = await local.home.executions.page(status=stored, before=before, limit=PAGE)
        for row in page:
            if path is not None and not fnmatchcase(row.path, path):
                continue
            stands = shown_status(row.status, interrupted=await is_interrupted(local, row))
            if status in (None, stands):
                yield row, stands
        if len(page) < PAGE:
            return
        before = page[-1].execution_id


def as_object(row: ExecutionRow, stands: str) -> dict[str, object]:
    return {
        "execution_id": row.execution_id,
        "path": row.path,
        "version": row.version,
        "status": row.status,
        "interrupted": stands == "interrupted",
        "started_at": timestamp(row.started_at),
        "updated_at": timestamp(row.updated_at),
        "finished_at": None if row.finished_at is None else timestamp(row.finished_at),
        "parent_execution_id": row.parent_execution_id,
        "error": row.error,
    }


def line_of(row: ExecutionRow, stands: str, paint: Paint) -> str:
    took = seconds((row.finished_at or row.updated_at) - row.started_at)
    word = paint(TONES.get(stands, "note"), stands.ljust(11))
    why = f"  {short(row.error, 60)}" if row.error else ""
    return f"{row.execution_id}  {word}  {timestamp(row.started_at)}  {took:>9}  {row.path}{why}"
