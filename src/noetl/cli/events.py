"""`noetl events`: the log of an execution, event by event (EVT-1)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import click
import msgspec

from noetl.api.questions import PlaneQuestions
from noetl.api.types import EventView
from noetl.cli.contexts import Target
from noetl.cli.output import ID, print_json, print_line
from noetl.cli.running.words import seconds, value_words
from noetl.cli.target import Asked, FarQuestions, aimed, ask
from noetl.cli.terminal import columns, is_terminal
from noetl.messages.filtering import wanted
from noetl.messages.globs import matches
from noetl.messages.names import ALIASES, EVENTS
from noetl.messages.places import iteration_place, place_of
from noetl.messages.times import Interval, Times
from noetl.playbook.suggest import did_you_mean

EPILOG = """\b
Examples:
  noetl events last
  noetl events 06h3k9v2q8m4x0c7w1 --json --name 'task.*' | jq .data.outcome
  noetl events 06h3k9v2q8m4x0c7w1 --follow
"""

POLL = 0.25
"""Seconds between two looks at the end of the log."""


@click.command(epilog=EPILOG)
@ID
@click.option(
    "--name", metavar="GLOB", help="Only events whose name matches; older names work too."
)
@click.option("--follow", is_flag=True, help="Wait for more, until the execution has ended.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per event and line.")
@aimed
def events(
    execution_id: str, name: str | None, follow: bool, as_json: bool, target: Target
) -> None:
    """Print the events of an execution in order."""
    is_wanted = wanted(name)
    if name is not None and not any(matches(known, name) for known in (*EVENTS, *ALIASES)):
        hint = did_you_mean(name, EVENTS, "names: docs/reference/events.md")
        print_line(f"no event is called '{name}'; {hint}", err=True)
    room, times = columns(), Times()

    def show(event: dict[str, Any]) -> None:
        took = times.take(event)
        if not is_wanted(event):
            return
        if as_json:
            print_json(event)
        else:
            print_line(line_of(event, room, took))

    async def work(asked: Asked) -> None:
        if isinstance(asked, FarQuestions):
            coming = events_at(asked, execution_id, name, follow=follow)
        else:
            coming = events_here(asked, execution_id, follow=follow)
        async for event in coming:
            show(msgspec.structs.asdict(event))

    ask(target, work)


async def events_at(
    far: FarQuestions, execution_id: str, name: str | None, *, follow: bool
) -> AsyncIterator[EventView]:
    """The server's events: page by page those that there are, then the stream."""
    after, more = 0, True
    while more:
        page = await far.events(execution_id, after=after, name=name)
        for event in page.events:
            yield event
        after, more = page.after, page.more
    if follow and (await far.standing(execution_id)).finished_at is None:
        for event in far.client.stream(execution_id, after=after):
            yield event


async def events_here(
    here: PlaneQuestions, execution_id: str, *, follow: bool
) -> AsyncIterator[EventView]:
    """Every event so far; with `follow` those that come, too, until the last."""
    after, told = 0, False
    while True:
        ended = (await here.plane.row(execution_id)).finished_at is not None
        page = await here.events(execution_id, after=after)
        for event in page.events:
            yield event
        after = page.after
        if page.more:
            continue
        if ended or not follow:
            return
        [now] = await here.listed([await here.plane.row(execution_id)])
        if now.interrupted and not told:
            print_line(f"interrupted; waiting for: noetl resume {execution_id}", err=True)
            told = True
        await asyncio.sleep(POLL)


SHOWN = (
    *("task", "attempt", "do", "to", "arcs", "total", "status", "reason", "by", "label"),
    *("signal", "kept", "labels", "error"),
)
"""Fields of an event that a line shows, in this order."""
USUAL = {"attempt": 1, "do": "continue"}
"""What a line need not say."""


def where_of(event: dict[str, Any]) -> str:
    """The step, and which iteration of its loop."""
    step = event["step"] or ""
    if "index" in event["data"]:
        return iteration_place(step, event["entity_id"])
    return place_of(step, event["task_run_id"])


def line_of(event: dict[str, Any], room: int, took: Interval | None = None) -> str:
    """Number, time, name, where, and the fields that tell most."""
    fields = event["data"]
    where = where_of(event)
    if "arcs" in fields:  # the log counts from 0, people from 1
        fields = {**fields, "arcs": [number + 1 for number in fields["arcs"]]}
    shown = [key for key in SHOWN if key in fields and fields[key] != USUAL.get(key)]
    told = [f"{key}={value_words(fields[key], 60)}" for key in shown]
    if took is not None:
        told.append(f"took={seconds(took[1] - took[0])}")
    outcome = fields.get("outcome")
    if isinstance(outcome, dict):
        told.append(f"outcome={outcome.get('status')}")
    head = f"{event['seq']:>6}  {event['timestamp'][11:23]}  {event['name']:<28} {where:<20}"
    line = f"{head} {' '.join(told)}".rstrip()
    return line if len(line) <= room or not is_terminal() else line[: room - 1] + "…"
