"""`noetl resume`: go on with an execution that was interrupted or paused."""

import click

from noetl.cli import exits
from noetl.cli.cancel import order
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.output import print_json
from noetl.cli.running.ending import see_through
from noetl.cli.target import aimed, at_server
from noetl.node.local import LocalNode
from noetl.server.active import ActiveExecution

EPILOG = """\b
Examples:
  noetl resume 06h3k9v2q8m4x0c7w1
  noetl resume 06h3k9v2q8m4x0c7w1 --json
  noetl resume 06h3k9v2q8m4x0c7w1 --server http://127.0.0.1:8765 --wait

\b
Exit codes: as of `noetl run`; at a server without --wait 0 once it was told.
"""


@click.command(epilog=EPILOG)
@click.argument("execution_id", metavar="ID")
@click.option("--wait", is_flag=True, help="At a server: show it to its end, as here.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@aimed
def resume(execution_id: str, wait: bool, as_json: bool, target: Target) -> int:
    """
    Go on with an execution that was interrupted or paused, where it stood.

    What is recorded is not run again. Of an execution that has ended, its end is shown.
    """
    if not target.local:
        return resume_at(target, execution_id, wait=wait, as_json=as_json)
    owner = in_home(lambda local: told_owner(local, execution_id))
    if owner is not None:
        told(execution_id, f"process {owner}, which runs {execution_id},", as_json)
        return exits.OK

    async def begin(local: LocalNode) -> ActiveExecution:
        return await local.resume(execution_id)

    return see_through(begin, as_json=as_json)


def told(execution_id: str, who: str, as_json: bool) -> None:
    if as_json:
        print_json({"execution_id": execution_id, "status": "running"})
    click.echo(f"{who} was told to go on", err=as_json)


async def told_owner(local: LocalNode, execution_id: str) -> str | None:
    """Of a paused execution that another process runs: that process, which now knows."""
    row = await local.row(execution_id)
    owner = await local.storage.owners.holder(execution_id)
    if row.status != "paused" or owner is None:
        return None
    await local.storage.inbox.leave(execution_id, "resume", {})
    return owner


def resume_at(target: Target, execution_id: str, *, wait: bool, as_json: bool) -> int:
    """Servers go on with what was interrupted by themselves: only a pause is ended here."""
    goes_on = at_server(target, lambda client: order(client, execution_id, "resume"))
    if goes_on and not wait:
        told(execution_id, "the server", as_json)
        return exits.OK
    from noetl.cli.running.following import follow_through

    path = at_server(target, lambda client: client.standing(execution_id).path)
    return follow_through(target, execution_id, path, as_json=as_json)
