"""`noetl cancel`: nothing new starts, what runs is told to stop (NEXT-8)."""

import asyncio

import click

from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.home import ID, JSON, in_home, print_json
from noetl.errors import HomeInUse
from noetl.ports.event_log import ExecutionRow

EPILOG = """\b
Examples:
  noetl cancel 06h3k9v2q8m4x0c7w1
  noetl cancel 06h3k9v2q8m4x0c7w1 --reason 'wrong region'

\b
Exit codes: 0 cancelled, 1 it had ended otherwise before, 3 usage or environment.
"""

LOOK = 0.05
"""Seconds between two looks at whether the owner has obeyed."""


@click.command(epilog=EPILOG)
@ID
@click.option("--reason", default="", help="Kept in the log beside the order.")
@JSON
def cancel(execution_id: str, reason: str, as_json: bool) -> int:
    """
    Cancel an execution, and wait until it has ended.

    If another process runs it, that process is told; if nobody does, it is ended here.
    """
    row = in_home(lambda local: ended(local, execution_id, reason))
    if as_json:
        print_json({"execution_id": execution_id, "status": row.status})
    else:
        click.echo(f"execution {execution_id}: {row.status}")
    return exits.OK if row.status == "cancelled" else exits.FAILED


async def ended(local: Local, execution_id: str, reason: str) -> ExecutionRow:
    """The row of the execution once it has come to its end."""
    row = await local.row(execution_id)
    told = False
    while row.finished_at is None:
        try:
            await local.cancel(execution_id, reason)
        except HomeInUse:
            if not told:
                await local.home.inbox.leave(execution_id, "cancel", {"reason": reason})
                told = True
            await asyncio.sleep(LOOK)
        row = await local.row(execution_id)
    return row
