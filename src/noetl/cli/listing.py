"""`noetl list`: which executions are there?"""

from typing import get_args

import click

from noetl.cli.contexts import Target
from noetl.cli.output import JSON, print_line, tell_each
from noetl.cli.running.words import seconds, short
from noetl.cli.status import TONES, shown_status
from noetl.cli.target import Asked, aimed, ask, is_new, pages
from noetl.cli.terminal import Paint, wants_colour
from noetl.control.execution import Status
from noetl.messages.globs import matches
from noetl.server.views.standing import Listed
from noetl.settings import read_settings

EPILOG = """\b
Examples:
  noetl list
  noetl list --status failed --path 'reports/*'
  noetl list --json --limit 1000
"""

STATUSES = (*get_args(Status), "interrupted")


@click.command("list", epilog=EPILOG)
@click.option(
    "--status", type=click.Choice(STATUSES), help="Show only executions with this status."
)
@click.option("--path", metavar="GLOB", help="Only executions whose playbook path matches.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Maximum number, the newest first.",
)
@JSON
@aimed
def listing(
    status: str | None, path: str | None, limit: int, as_json: bool, target: Target
) -> None:
    """List executions, the newest first."""
    if is_new(target):
        print_line(f"nothing has run in {read_settings().home} yet", err=True)
        return
    rows = ask(target, lambda asked: rows_of(asked, status, path, limit))
    paint = Paint(wants_colour())
    tell_each(rows, lambda row: line_of(row, paint), as_json=as_json)
    if not rows:
        asked = status is not None or path is not None
        none = "nothing has run there yet; start a playbook with `noetl execute PATH`"
        print_line("no execution matches" if asked else none, err=True)


async def rows_of(asked: Asked, status: str | None, path: str | None, limit: int) -> list[Listed]:
    """The first that are wanted, page by page; a glob is matched here."""
    whole = path if path is not None and not any(sign in path for sign in "*?[") else None
    found: list[Listed] = []
    async for page in pages(asked.executions, status=stored(status), path=whole):
        found += [row for row in page.executions if is_wanted(row, status, path)]
        if len(found) >= limit:
            break
    return found[:limit]


def stored(status: str | None) -> str | None:
    """The status as it is kept: who runs an execution is nothing that a row knows."""
    return "running" if status == "interrupted" else status


def is_wanted(row: Listed, status: str | None, path: str | None) -> bool:
    return status in (None, stands(row)) and (path is None or matches(row.path, path))


def stands(row: Listed) -> str:
    return shown_status(row.status, interrupted=row.interrupted)


def line_of(row: Listed, paint: Paint) -> str:
    took = seconds(row.duration_ms)
    word = paint(TONES.get(stands(row), "note"), stands(row).ljust(11))
    told = row.error or row.note
    why = f"  {short(told, 60)}" if told else ""
    return f"{row.execution_id}  {word}  {row.started_at}  {took:>9}  {row.path}{why}"
