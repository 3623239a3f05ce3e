"""`noetl pause`: what runs goes on to its end, nothing new starts until `noetl resume`."""

import asyncio
import time

import click

from noetl.cli import exits
from noetl.cli.cancel import ENDED, LOOK, order
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.output import ID, JSON, tell
from noetl.cli.target import aimed, at_server
from noetl.client.client import Client
from noetl.errors import NoetlError
from noetl.node.local import LocalNode

EPILOG = """\b
Examples:
  noetl pause 06h3k9v2q8m4x0c7w1
  noetl pause 06h3k9v2q8m4x0c7w1 --server http://127.0.0.1:8765

\b
Exit codes: 0 paused, 1 it had ended before, 3 usage or environment.
"""

SETTLED = ("paused", *ENDED)


@click.command(epilog=EPILOG)
@ID
@JSON
@aimed
def pause(execution_id: str, as_json: bool, target: Target) -> int:
    """
    Pause an execution: steps that run come to their end, no other starts.

    Whoever runs it is told; `noetl resume` lets it go on.
    """
    if target.local:
        status = in_home(lambda local: paused(local, execution_id))
    else:
        status = at_server(target, lambda client: paused_at(client, execution_id))
    more = f"; go on with: noetl resume {execution_id}" if status == "paused" else ""
    said = f"execution {execution_id}: {status}{more}"
    tell({"execution_id": execution_id, "status": status}, said, as_json=as_json)
    return exits.OK if status == "paused" else exits.FAILED


async def paused(local: LocalNode, execution_id: str) -> str:
    """The status once the owner has obeyed."""
    row = await local.row(execution_id)
    told = False
    while row.status not in SETTLED:
        if await local.storage.owners.holder(execution_id) is None:
            raise NoetlError(
                f"nobody runs execution {execution_id}: it was interrupted, and nothing of it "
                f"starts before `noetl resume {execution_id}`"
            )
        if not told:
            await local.storage.inbox.leave(execution_id, "pause", {})
            told = True
        await asyncio.sleep(LOOK)
        row = await local.row(execution_id)
    return row.status


def paused_at(client: Client, execution_id: str) -> str:
    """The same, at a server."""
    order(client, execution_id, "pause")
    while True:
        status = client.standing(execution_id).status
        if status in SETTLED:
            return status
        time.sleep(LOOK)
