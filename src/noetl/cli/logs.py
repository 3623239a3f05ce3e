"""`noetl logs`: what the tasks of an execution printed."""

from collections.abc import Iterable

import click

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import ID, print_json
from noetl.cli.target import aimed, near_or_far
from noetl.cli.terminal import plain
from noetl.client.client import Client
from noetl.node.local import LocalNode
from noetl.server.views.standing import TaskLine, line_of

EPILOG = """\b
Examples:
  noetl logs 06h3k9v2q8m4x0c7w1
  noetl logs 06h3k9v2q8m4x0c7w1 --step fetch --json
"""

MOST = 1_000_000


@click.command(epilog=EPILOG)
@ID
@click.option("--step", metavar="STEP", help="Only what this step printed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@aimed
def logs(execution_id: str, step: str | None, as_json: bool, target: Target) -> int:
    """Print what the tasks of an execution wrote to their standard output and error."""

    def show(lines: Iterable[TaskLine]) -> None:
        for line in lines:
            if as_json:
                print_json(line)
            else:
                at = line.timestamp[11:23]
                click.echo(f"{at} {line.step} | {plain(line.text, keep=TAB)}")

    async def near(local: LocalNode) -> None:
        await local.row(execution_id)
        printed = await local.storage.printed.read(execution_id, step=step, limit=MOST)
        show(line_of(line) for line in printed)

    def far(client: Client) -> None:
        for page in client.pages(client.lines, execution_id, step=step):
            show(page.lines)

    near_or_far(target, near=near, far=far)
    return exits.OK


TAB = "\t"
