"""The last words of `run` and `resume`, and the exit code that goes with them."""

import os
import sys
from typing import TYPE_CHECKING

import click

from noetl.cli import exits
from noetl.cli.output import print_line
from noetl.cli.running.attend import Begin, attend
from noetl.cli.running.show import Show, SteadyShow
from noetl.cli.running.words import error_words, seconds, value_words
from noetl.cli.terminal import Paint, columns, plain, wants_colour
from noetl.errors import NoetlError
from noetl.messages.codec import encode_shown
from noetl.server.report import ExecutionReport, handled_words
from noetl.settings import read_settings

if TYPE_CHECKING:
    from noetl.server.views.explanation import Explanation

EXITS = {"completed": exits.OK, "failed": exits.FAILED, "cancelled": exits.FAILED}
SHOWN_KEYS = 20
"""Keys of ctx that are shown to people; `--json` and `noetl replay` have all."""


def see_through(begin: Begin, *, as_json: bool, brief: bool = False) -> int:
    """
    Attend an execution to its end, say how it went, and give the exit code. One that is `brief` has
    little to do, so that the start counts more than the speed.
    """
    came_to = attend(read_settings(), begin, make_show(err=as_json), brief=brief)
    if came_to.report is None:
        print_line(f"interrupted; {how_on(came_to.execution_id)}", err=as_json)
        return exits.INTERRUPTED
    return last_words(came_to.report, came_to.explanation, as_json=as_json)


def how_on(execution_id: str | None) -> str:
    if execution_id is None:
        return "if it was started, `noetl list` shows it"
    return f"continue with: noetl resume {execution_id}"


def tells_more(report: ExecutionReport) -> bool:
    """Whether its log has more to say about what went wrong."""
    return report.status == "failed" or report.errors_passed > 0


def last_words(report: ExecutionReport, explanation: "Explanation | None", *, as_json: bool) -> int:
    """The end of an execution, for programs and for people; the exit code that goes with it."""
    try:
        if as_json:
            click.echo(encode_shown(report))
        tell(report, explanation, err=as_json)
    except BrokenPipeError:
        raise
    except OSError as wrong:
        raise NoetlError(
            f"the output cannot be written ({wrong.strerror}); the execution is {report.status}: "
            f"noetl status {report.execution_id}"
        ) from None
    return EXITS[report.status]


def make_show(*, err: bool) -> Show:
    """A tree on a terminal, plain lines elsewhere; nothing of the other is imported."""
    stream = sys.stderr if err else sys.stdout
    if stream is not None and stream.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        from noetl.cli.running.tree import TreeShow

        return SteadyShow(TreeShow(err=err))
    from noetl.cli.running.plain import PlainShow

    return SteadyShow(PlainShow(err=err))


def tell(report: ExecutionReport, explanation: "Explanation | None", *, err: bool) -> None:
    """The end for people: what it came to, what failed, and on the last line how."""
    paint, room = Paint(wants_colour(err=err)), columns(err=err)
    if not err:
        for line in values_of(report, room):
            print_line(line)
    if explanation is not None:
        from noetl.cli.running import details  # only where something failed

        for line in (*details.failure_lines(explanation), *details.tolerated_lines(explanation)):
            print_line(line, err=err)
    print_line(last_line(report, paint), err=err)


def values_of(report: ExecutionReport, room: int) -> list[str]:
    lines = []
    for key, value in list(report.ctx.items())[:SHOWN_KEYS]:
        name = f"  ctx.{plain(key)} = "
        lines.append(name + value_words(value, max(20, room - len(name))))
    if len(report.ctx) > SHOWN_KEYS:
        lines.append(f"  … and {len(report.ctx) - SHOWN_KEYS} more keys of ctx")
    if report.result is not None:
        lines.append("  result = " + value_words(report.result, max(20, room - 11)))
    return lines


def last_line(report: ExecutionReport, paint: Paint) -> str:
    took = seconds(report.duration_ms)
    more = f"noetl explain {report.execution_id}"
    words = handled_words(report.errors_passed, report.failures_handled)
    if report.status == "completed":
        how = f"{paint('good', 'completed')} in {took}"
        if words:
            return f"{how}, {', '.join(words)}; see: {more}"
        return f"{how} (execution {report.execution_id})"
    why = ""
    if report.error is not None:
        step = report.error.get("step")
        why = f": step '{step}'" if step else ""
        why = f"{why}: {error_words(report.error)}"
    return f"{paint('error', report.status)} after {took}{why}; see: {more}"
