"""`noetl logs`: what the tasks of an execution printed."""

import click

from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.home import ID, in_home, print_json
from noetl.cli.terminal import plain
from noetl.messages.envelope import timestamp
from noetl.ports.event_log import PrintedLine

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
def logs(execution_id: str, step: str | None, as_json: bool) -> int:
    """Print what the tasks of an execution wrote to their standard output and error."""

    async def read(local: Local) -> list[PrintedLine]:
        await local.row(execution_id)
        return list(await local.home.printed.read(execution_id, step=step, limit=MOST))

    for line in in_home(read):
        if as_json:
            print_json(as_object(line))
        else:
            click.echo(f"{timestamp(line.at)[11:23]} {line.step} | {plain(line.text, keep=TAB)}")
    return exits.OK


TAB = "\t"


def as_object(line: PrintedLine) -> dict[str, object]:
    return {
        "timestamp": timestamp(line.at),
        "step": line.step,
        "task_run_id": line.task_run_id,
        "attempt": line.attempt,
        "stream": line.stream,
        "text": line.text,
    }
