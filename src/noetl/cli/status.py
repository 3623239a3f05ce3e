"""`noetl status`: how does an execution stand, what runs, and what waits for what?"""

import click

from noetl.cli.contexts import Target
from noetl.cli.output import ID, JSON, tell
from noetl.cli.running.details import failure_lines
from noetl.cli.running.words import count, error_words, seconds, short
from noetl.cli.target import Asked, aimed, ask
from noetl.cli.terminal import Paint, Tone, wants_colour
from noetl.server.report import handled_words
from noetl.server.views.explanation import Explanation
from noetl.server.views.standing import Standing

EPILOG = """\b
Examples:
  noetl status last
  noetl status 06h3k9v2q8m4x0c7w1 --json
  noetl status 06h3k9v2q8m4x0c7w1 --server http://127.0.0.1:8765
"""

TONES: dict[str, Tone] = {
    "completed": "good",
    "failed": "error",
    "cancelled": "warning",
    "paused": "warning",
    "queued": "warning",
    "interrupted": "warning",
}


@click.command(epilog=EPILOG)
@ID
@JSON
@aimed
def status(execution_id: str, as_json: bool, target: Target) -> None:
    """Show the status of an execution: what runs, what waits, and for what."""
    standing, why = ask(target, lambda asked: asked_of(asked, execution_id, explain=not as_json))
    lines = lines_of(standing, Paint(wants_colour()))
    tell(standing, *lines, *failure_lines(why), as_json=as_json)


async def asked_of(
    asked: Asked, execution_id: str, *, explain: bool
) -> tuple[Standing, Explanation | None]:
    standing = await asked.standing(execution_id)
    failed = explain and standing.status == "failed"
    return standing, await asked.explanation(execution_id) if failed else None


def lines_of(standing: Standing, paint: Paint) -> list[str]:
    """The same for people."""
    word = shown_status(standing.status, interrupted=standing.interrupted)
    lines = [
        f"{paint('strong', standing.path)}  execution {standing.execution_id}",
        f"status    {paint(TONES.get(word, 'note'), word)}{went_wrong(standing)}{how_on(standing)}",
        f"started   {standing.started_at}{by_whom(standing)}",
    ]
    if standing.origin_execution_id is not None:
        lines.append(f"restarted from {standing.origin_execution_id}")
    if standing.finished_at is not None:
        lines.append(f"finished  {standing.finished_at}, after {seconds(standing.duration_ms)}")
    else:
        took = seconds(standing.duration_ms)
        lines.append(f"updated   {standing.updated_at}, event {standing.seq}, {took} so far")
    if standing.error is not None:
        lines.append(f"error     {error_words(standing.error)}")
    if standing.refused is not None:
        lines.append(f"refused   {standing.refused}")
    for step in standing.steps:
        failed = f", {step['failed']:,} failed" if step["failed"] else ""
        lines.append(f"  {step['step']}: {step['status']}, {count(step['runs'], 'run')}{failed}")
    if standing.waits:
        lines.append("not ended:")
        lines += [f"  {wait.place or wait.step}: {short(wait.words)}" for wait in standing.waits]
    return lines


def by_whom(standing: Standing) -> str:
    """The trigger that asked for it, and what the start was for."""
    what = f" for {standing.occurrence}" if standing.occurrence else ""
    return "" if standing.trigger is None else f", by trigger {standing.trigger}{what}"


def shown_status(status: str, *, interrupted: bool) -> str:
    return "interrupted" if interrupted and status == "running" else status


def went_wrong(standing: Standing) -> str:
    """What did not fail it."""
    words = handled_words(standing.errors_passed, standing.failures_handled)
    return "".join(f", {one}" for one in words)


def how_on(standing: Standing) -> str:
    """What a person can do about it now."""
    if standing.interrupted:
        return f"; resume with: noetl resume {standing.execution_id}"
    if standing.status == "paused":
        return f"; continue with: noetl resume {standing.execution_id}"
    if standing.status == "failed" or went_wrong(standing):
        return f"; why: noetl explain {standing.execution_id}"
    return f", by {decider(standing.owner)}" if standing.owner else ""


def decider(owner: str) -> str:
    return f"process {owner}" if owner.isdecimal() else owner
