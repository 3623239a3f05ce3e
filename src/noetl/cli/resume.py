"""`noetl resume`: go on with an execution that was interrupted or paused."""

import click

from noetl.assembly import Local
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

    async def begin(local: Local) -> Live:
        return await local.resume(execution_id)

    return see_through(begin, as_json=as_json)
