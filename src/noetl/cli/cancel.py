"""`noetl cancel`: nothing new starts, what runs is told to stop (NEXT-8)."""

import asyncio

import click

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.output import ID, JSON, tell
from noetl.cli.target import aimed, at_server
from noetl.client.asks import Order
from noetl.client.client import Client
from noetl.errors import HomeInUse, ServerRefused
from noetl.node.local import LocalNode

EPILOG = """\b
Examples:
  noetl cancel 06h3k9v2q8m4x0c7w1
  noetl cancel 06h3k9v2q8m4x0c7w1 --reason 'wrong region'

\b
Exit codes: 0 cancelled, 1 it had ended otherwise before, 3 usage or environment.
"""

LOOK = 0.05
"""Seconds between two looks at whether the owner has obeyed."""
ENDED = ("completed", "failed", "cancelled")


@click.command(epilog=EPILOG)
@ID
@click.option("--reason", default="", help="Kept in the log beside the order.")
@JSON
@aimed
def cancel(execution_id: str, reason: str, as_json: bool, target: Target) -> int:
    """
    Cancel an execution, and wait until it has ended.

    If another process runs it, that process is told; if nobody does, it is ended here.
    """
    if target.local:
        status = in_home(lambda local: ended(local, execution_id, reason))
    else:
        status = at_server(target, lambda client: ended_at(client, execution_id, reason))
    said = f"execution {execution_id}: {status}"
    tell({"execution_id": execution_id, "status": status}, said, as_json=as_json)
    return exits.OK if status == "cancelled" else exits.FAILED


async def ended(local: LocalNode, execution_id: str, reason: str) -> str:
    """The status of the execution once it has come to its end."""
    row = await local.row(execution_id)
    told = False
    while row.finished_at is None:
        try:
            await local.cancel_abandoned(execution_id, reason)
        except HomeInUse:
            if not told:
                await local.storage.inbox.leave(execution_id, "cancel", {"reason": reason})
                told = True
            await asyncio.sleep(LOOK)
        row = await local.row(execution_id)
    return row.status


def ended_at(client: Client, execution_id: str, reason: str) -> str:
    """The same, at a server."""
    order(client, execution_id, "cancel", reason)
    while True:
        status = client.summary(execution_id, wait=30.0).status
        if status in ENDED:
            return status


def order(client: Client, execution_id: str, kind: Order, reason: str = "") -> bool:
    """Give an order; False where the execution has ended already, and nothing was to be done."""
    try:
        client.order(execution_id, kind, reason=reason)
    except ServerRefused as refused:
        if refused.code != "finished":
            raise
        return False
    return True
