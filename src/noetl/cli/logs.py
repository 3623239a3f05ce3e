"""`noetl logs`: what the tasks of an execution printed."""

import click

from noetl.cli.contexts import Target
from noetl.cli.output import ID, examples, tell_each
from noetl.cli.target import Asked, aimed, ask, pages
from noetl.cli.terminal import plain
from noetl.server.views.standing import TaskLine

EPILOG = examples("logs 06h3k9v2q8m4x0c7w1", "logs 06h3k9v2q8m4x0c7w1 --step fetch --json")
TAB = "\t"


@click.command(epilog=EPILOG)
@ID
@click.option("--step", metavar="STEP", help="Only what this step printed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@aimed
def logs(execution_id: str, step: str | None, as_json: bool, target: Target) -> None:
    """Print what the tasks of an execution wrote to their standard output and error."""

    async def work(asked: Asked) -> None:
        async for page in pages(asked.lines, execution_id, step=step):
            tell_each(page.lines, line_of, as_json=as_json)

    ask(target, work)


def line_of(line: TaskLine) -> str:
    return f"{line.timestamp[11:23]} {line.step} | {plain(line.text, keep=TAB)}"
