"""`noetl status`: how does an execution stand, what runs, and what waits for what?"""

from typing import Any

import click
import msgspec

from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.home import ID, JSON, in_home, is_interrupted, print_json
from noetl.cli.running.report import steps_of
from noetl.cli.running.words import count, error_words, seconds, short
from noetl.cli.terminal import Paint, Tone, wants_colour
from noetl.messages.envelope import timestamp
from noetl.server.waiting import Wait, waits_of

EPILOG = """\b
Examples:
  noetl status 06h3k9v2q8m4x0c7w1
  noetl status 06h3k9v2q8m4x0c7w1 --json
"""

TONES: dict[str, Tone] = {
    "completed": "good",
    "failed": "error",
    "cancelled": "warning",
    "paused": "warning",
    "interrupted": "warning",
}


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    execution_id: str
    path: str
    version: str | None
    status: str
    interrupted: bool
    """Not ended, and the process that ran it is gone."""
    owner: str | None
    """The process that runs it."""
    seq: int
    started_at: str
    updated_at: str
    finished_at: str | None
    duration_ms: int
    error: dict[str, Any] | None
    steps: list[dict[str, Any]]
    waits: list[Wait]


@click.command(epilog=EPILOG)
@ID
@JSON
def status(execution_id: str, as_json: bool) -> int:
    """Show how an execution stands: what runs, what waits, and for what."""
    standing = in_home(lambda local: standing_of(local, execution_id))
    if as_json:
        print_json(standing)
    else:
        for line in lines_of(standing, Paint(wants_colour())):
            click.echo(line)
    return exits.OK


async def standing_of(local: Local, execution_id: str) -> Standing:
    row = await local.row(execution_id)
    execution, plan, _ = await local.load(execution_id)
    return Standing(
        execution_id=execution_id,
        path=row.path,
        version=row.version,
        status=execution.status,
        interrupted=await is_interrupted(local, row),
        owner=await local.home.owners.holder(execution_id),
        seq=execution.seq,
        started_at=timestamp(row.started_at),
        updated_at=timestamp(row.updated_at),
        finished_at=None if row.finished_at is None else timestamp(row.finished_at),
        duration_ms=(row.finished_at or row.updated_at) - row.started_at,
        error=execution.error,
        steps=steps_of(execution),
        waits=waits_of(execution, plan),
    )


def lines_of(standing: Standing, paint: Paint) -> list[str]:
    """The same for people."""
    word = shown_status(standing.status, interrupted=standing.interrupted)
    lines = [
        f"{paint('strong', standing.path)}  execution {standing.execution_id}",
        f"status    {paint(TONES.get(word, 'note'), word)}{how_on(standing)}",
        f"started   {standing.started_at}",
    ]
    if standing.finished_at is not None:
        lines.append(f"finished  {standing.finished_at}, after {seconds(standing.duration_ms)}")
    else:
        lines.append(f"last word {standing.updated_at}, event {standing.seq}")
    if standing.error is not None:
        lines.append(f"error     {error_words(standing.error)}")
    for step in standing.steps:
        failed = f", {step['failed']:,} failed" if step["failed"] else ""
        lines.append(f"  {step['step']}: {step['status']}, {count(step['runs'], 'run')}{failed}")
    if standing.waits:
        lines.append("not ended:")
        lines += [f"  {wait.step}: {short(wait.words)}" for wait in standing.waits]
    return lines


def shown_status(status: str, *, interrupted: bool) -> str:
    return "interrupted" if interrupted and status == "running" else status


def how_on(standing: Standing) -> str:
    """What a person can do about it now."""
    if standing.interrupted:
        return f"; resume with: noetl resume {standing.execution_id}"
    if standing.status == "paused":
        return f"; go on with: noetl resume {standing.execution_id}"
    if standing.status == "failed":
        return f"; why: noetl explain {standing.execution_id}"
    return f", by process {standing.owner}" if standing.owner else ""
