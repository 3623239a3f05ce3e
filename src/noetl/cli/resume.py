"""`noetl resume`: go on with an execution that was interrupted or paused."""

import click

from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.home import in_home, print_json
from noetl.cli.running.ending import see_through
from noetl.server.live import Live

EPILOG = """\b
Examples:
  noetl resume 06h3k9v2q8m4x0c7w1
  noetl resume 06h3k9v2q8m4x0c7w1 --json

\b
Exit codes: as of `noetl run`.
"""


@click.command(epilog=EPILOG)
@click.argument("execution_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def resume(execution_id: str, as_json: bool) -> int:
    """
    Go on with an execution that was interrupted or paused, where it stood.

    What is recorded is not run again. Of an execution that has ended, its end is shown.
    """
    owner = in_home(lambda local: told_owner(local, execution_id))
    if owner is not None:
        if as_json:
            print_json({"execution_id": execution_id, "status": "running"})
        click.echo(f"process {owner}, which runs {execution_id}, was told to go on", err=as_json)
        return exits.OK

    async def begin(local: Local) -> Live:
        return await local.resume(execution_id)

    return see_through(begin, as_json=as_json)


async def told_owner(local: Local, execution_id: str) -> str | None:
    """Of a paused execution that another process runs: that process, which now knows."""
    row = await local.row(execution_id)
    owner = await local.home.owners.holder(execution_id)
    if row.status != "paused" or owner is None:
        return None
    await local.home.inbox.leave(execution_id, "resume", {})
    return owner
