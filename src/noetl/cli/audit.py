"""`noetl audit`: who ordered what."""

import click

from noetl.api.types import AuditView
from noetl.cli.contexts import Target
from noetl.cli.moment import Moment
from noetl.cli.output import JSON, tell_each
from noetl.cli.target import aimed, ask, is_new

EPILOG = """\b
Examples:
  noetl audit --since 24h
  noetl audit --who ada --what token.add
  noetl audit --what cancel --json
"""


@click.command(epilog=EPILOG)
@click.option("--since", type=Moment(), metavar="TIME", help="From then on: a time, or 24h.")
@click.option("--until", type=Moment(), metavar="TIME", help="Before then.")
@click.option("--who", metavar="NAME", help="Only of this token, or of this user of the machine.")
@click.option("--what", metavar="WORD", help="Only such orders, as cancel or token.revoke.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number."
)
@JSON
@aimed
def audit(
    since: int | None,
    until: int | None,
    who: str | None,
    what: str | None,
    limit: int,
    as_json: bool,
    target: Target,
) -> None:
    """
    Show who ordered what, the latest first.

    Orders that were refused are among them. At a server this needs the role admin.
    """
    rows: list[AuditView] = []
    if not is_new(target):
        rows = ask(
            target,
            lambda asked: asked.audit(since=since, until=until, who=who, what=what, limit=limit),
        ).orders
    tell_each(rows, line_of, as_json=as_json, none="no orders match")


def line_of(row: AuditView) -> str:
    who = f"{row.who or '-'} ({row.role})" if row.role else row.who or "-"
    refused = f"  {row.result}: {row.detail}" if row.result != "done" else ""
    return f"{row.noted_at}  {who:<20}  {row.what:<18}  {row.about}{refused}"
