"""`noetl logs`: what the tasks of an execution printed."""

import asyncio
import re

import click

from noetl.api.paging import cursor_of
from noetl.cli.contexts import Target
from noetl.cli.output import ID, examples, print_line, tell_each
from noetl.cli.target import Asked, FarQuestions, aimed, ask
from noetl.cli.terminal import plain
from noetl.messages.places import place_of
from noetl.playbook.suggest import did_you_mean, some
from noetl.server.views.standing import TaskLine

EPILOG = examples("logs last", "logs last --follow", "logs last --step fetch:3 --json")
POLL = 0.5
"""Seconds between two looks at what was printed."""
TAB = "\t"
ITERATION = re.compile(r"(:[0-9]+)?(/[0-9]+)*$")


@click.command(epilog=EPILOG)
@ID
@click.option(
    "--step", metavar="STEP[:I]", help="Only what this step printed, or iteration I of its loop."
)
@click.option("--follow", is_flag=True, help="Wait for more, until the execution has ended.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@aimed
def logs(execution_id: str, step: str | None, follow: bool, as_json: bool, target: Target) -> None:
    """Print what the tasks of an execution wrote to their standard output and error."""

    whole = step and ITERATION.sub("", step)

    async def work(asked: Asked) -> None:
        seen = shown = 0
        while True:
            over = not follow or await has_ended(asked, execution_id)
            cursor = cursor_of(seen) if seen else None
            page = await asked.lines(execution_id, step=whole, cursor=cursor)
            lines = [line for line in page.lines if is_within(line, step)]
            tell_each(lines, line_of, as_json=as_json)
            seen, shown = seen + len(page.lines), shown + len(lines)
            if page.next is None:
                if over:
                    if not shown and not as_json:
                        print_line(await silence(asked, execution_id, whole), err=True)
                    return
                await asyncio.sleep(POLL)

    ask(target, work, waits=True)


async def silence(asked: Asked, execution_id: str, step: str | None) -> str:
    """Why there is nothing to print; a step that has not run may be misspelt."""
    names = [one["step"] for one in (await asked.standing(execution_id)).steps]
    if step is None or step in names:
        return "nothing was printed"
    hint = did_you_mean(step, names, f"those that have: {some(names) or 'none'}")
    return f"no step '{step}' has run in it; {hint}"


async def has_ended(asked: Asked, execution_id: str) -> bool:
    """Asked before the lines are read: what was printed before the end is among them."""
    if isinstance(asked, FarQuestions):
        return (await asked.standing(execution_id)).finished_at is not None
    return (await asked.plane.row(execution_id)).finished_at is not None


def is_within(line: TaskLine, place: str | None) -> bool:
    """Whether a place is the step of a line, or an iteration around it."""
    here = place_of(line.step, line.task_run_id)
    return place in (None, line.step, here) or here.startswith(f"{place}/")


def line_of(line: TaskLine) -> str:
    place = place_of(line.step, line.task_run_id)
    return f"{line.timestamp[11:23]} {place} | {plain(line.text, keep=TAB)}"
