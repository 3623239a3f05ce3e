"""`noetl diff`: where two executions parted, task by task."""

import click

from noetl.cli.contexts import Target
from noetl.cli.output import JSON, some_execution, tell
from noetl.cli.running.words import count, error_words, short
from noetl.cli.target import aimed, ask
from noetl.server.views.differences import Differences, TaskDifference, TaskSide

EPILOG = """\b
Examples:
  noetl diff 06h3k9v2q8m4x0c7w1 06h3k9wq1f0a5n2s8t
  noetl diff 06h3k9v2q8m4x0c7w1 06h3k9wq1f0a5n2s8t --json

\b
Exit codes: 0 every task had the same outcome, 1 some did not, 3 usage or environment.
"""


@click.command(epilog=EPILOG)
@click.argument("ids", metavar="ID ID", nargs=2, shell_complete=some_execution)
@JSON
@aimed
def diff(ids: tuple[str, str], as_json: bool, target: Target) -> int:
    """Show where two executions parted: tasks that came to something else, or ran in one only."""
    found = ask(target, lambda asked: asked.differences(*ids))
    tell(found, *lines_of(found), as_json=as_json)
    return 1 if found.parted else 0


def lines_of(found: Differences) -> list[str]:
    """The same for people."""
    lines = [line for one in found.differences for line in difference_lines(one)]
    if found.parted > len(found.differences):
        lines.append(f"… and {found.parted - len(found.differences):,} more")
    same = f"{count(found.same, 'task')} had the same outcome"
    return [*lines, f"{same}, {found.parted:,} did not"]


def difference_lines(one: TaskDifference) -> list[str]:
    run = "" if one.run == 1 else f" (run {one.run} of the step)"
    place = f"{one.within or one.step}.{one.task}{run}"
    return [place, f"  - {side_words(one.left)}", f"  + {side_words(one.right)}"]


def side_words(side: TaskSide | None) -> str:
    if side is None:
        return "did not run"
    tries = "" if side.attempts == 1 else f" after {count(side.attempts, 'attempt')}"
    if side.error is not None:
        word = "went on after an error" if side.status == "error" else side.status
        return f"{word}{tries}: {error_words(side.error)}"
    return f"{side.status}{tries}: {short(side.result or 'null', 100)}"
