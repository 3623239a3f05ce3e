"""`noetl events`: the log of an execution, event by event (EVT-1)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import click
import msgspec

from noetl.api.types import EventView
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import ID, is_interrupted, print_json
from noetl.cli.running.words import seconds, value_words
from noetl.cli.target import aimed, near_or_far
from noetl.cli.terminal import columns
from noetl.client.client import Client
from noetl.messages.codec import recorded_mappings
from noetl.messages.envelope import envelope
from noetl.messages.names import canonical
from noetl.messages.times import Interval, Times
from noetl.node.local import LocalNode
from noetl.server.replay import rows_of

EPILOG = """\b
Examples:
  noetl events 06h3k9v2q8m4x0c7w1
  noetl events 06h3k9v2q8m4x0c7w1 --json --name 'task.*' | jq .data.outcome
  noetl events 06h3k9v2q8m4x0c7w1 --follow
"""

POLL = 0.25
"""Seconds between two looks at the end of the log."""


@click.command(epilog=EPILOG)
@ID
@click.option(
    "--name", metavar="GLOB", help="Only events whose name matches; older names are known too."
)
@click.option("--follow", is_flag=True, help="Wait for more, until the execution has ended.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event and line.")
@aimed
def events(execution_id: str, name: str | None, follow: bool, as_json: bool, target: Target) -> int:
    """Print the events of an execution in their order."""
    wanted = None if name is None else canonical(name)
    room, times = columns(), Times()

    def show(event: dict[str, Any]) -> None:
        took = times.take(event)
        if wanted is not None and not fnmatchcase(event["name"], wanted):
            return
        if as_json:
            print_json(event)
        else:
            click.echo(line_of(event, room, took))

    async def near(local: LocalNode) -> None:
        await local.row(execution_id)
        async for event in envelopes(local, execution_id, follow=follow, on_wait=told_once()):
            show(event)

    def far(client: Client) -> None:
        for event in events_at(client, execution_id, wanted, follow=follow):
            show(msgspec.structs.asdict(event))

    near_or_far(target, near=near, far=far)
    return exits.OK


def events_at(
    client: Client, execution_id: str, wanted: str | None, *, follow: bool
) -> Iterator[EventView]:
    """The server's events: page by page those that there are, then the stream."""
    after, more = 0, True
    while more:
        page = client.events(execution_id, after=after, name=wanted)
        yield from page.events
        after, more = page.after, page.more
    if follow and client.standing(execution_id).finished_at is None:
        yield from client.stream(execution_id, after=after)


def told_once() -> Callable[[str], None]:
    said = set()

    def say(sentence: str) -> None:
        if sentence not in said:
            said.add(sentence)
            click.echo(sentence, err=True)

    return say


async def envelopes(
    local: LocalNode, execution_id: str, *, follow: bool, on_wait: Callable[[str], None]
) -> AsyncIterator[dict[str, Any]]:
    """Every event so far; with `follow` those that come, too, until the last."""
    after, trace_id = 0, None
    while True:
        ended = (await local.row(execution_id)).finished_at is not None
        async for row in rows_of(local.storage.log, execution_id, after):
            for offset, event in enumerate(recorded_mappings(execution_id, row.first, row.events)):
                if row.first + offset == 1:
                    trace_id = event.get("trace_id")
                yield envelope(
                    event,
                    execution_id=execution_id,
                    seq=row.first + offset,
                    at=row.at,
                    trace_id=trace_id,
                )
            after = row.last
        if ended or not follow:
            return
        if await is_interrupted(local, await local.row(execution_id)):
            on_wait(f"interrupted; waiting for: noetl resume {execution_id}")
        await asyncio.sleep(POLL)


SHOWN = ("task", "attempt", "do", "to", "arcs", "index", "total", "status", "reason", "error")
"""Fields of an event that a line shows, in this order."""


def line_of(event: dict[str, Any], room: int, took: Interval | None = None) -> str:
    """Number, time, name, where, and the fields that tell most."""
    where = event["step"] or ""
    fields = event["data"]
    told = [f"{key}={value_words(fields[key], 60)}" for key in SHOWN if key in fields]
    if took is not None:
        told.append(f"took={seconds(took[1] - took[0])}")
    outcome = fields.get("outcome")
    if isinstance(outcome, dict):
        told.append(f"outcome={outcome.get('status')}")
    head = f"{event['seq']:>6}  {event['timestamp'][11:23]}  {event['name']:<28} {where:<20}"
    line = f"{head} {' '.join(told)}".rstrip()
    return line if len(line) <= room else line[: room - 1] + "…"
