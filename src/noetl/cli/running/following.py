"""An execution of a server, shown here while it runs there: `execute --wait`."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import msgspec

from noetl.api.paging import cursor_of
from noetl.api.types import EventView, Summary
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.output import print_line
from noetl.cli.running.attend import runner
from noetl.cli.running.ending import EXITS, last_words, make_show, tells_more
from noetl.cli.running.held import FOR_WORKERS, HeldBack
from noetl.cli.running.show import Show
from noetl.client.async_client import AsyncClient
from noetl.client.stream import LAST
from noetl.control.execution import Execution
from noetl.errors import NoetlError, ServerAway
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.messages.envelope import fields_of
from noetl.messages.places import place_of
from noetl.server.views.explanation import Explanation
from noetl.server.waiting import WaitReason

MOST_LINES = 10_000
"""Printed lines that are shown; `noetl logs` has all."""
POLL = 0.5
"""Seconds between two looks at what was printed."""


def follow_through(target: Target, execution_id: str, path: str, *, as_json: bool) -> int:
    """Show an execution of a server to its end; output and exit code are those of `run`."""
    on = f"it continues on the server: noetl status {execution_id}"
    try:
        far = Execution(execution_id=execution_id, path=path)
        report = runner()(_follow(target, far, make_show(err=as_json)))
    except ServerAway as away:
        raise ServerAway(f"{away}; {on}") from None
    if report is None:
        print_line(f"stopped watching; {on}", err=as_json)
        return exits.INTERRUPTED
    return last_words(*report, as_json=as_json)


Ended = tuple[Summary, Explanation | None]
"""What it came to, and of one that failed why."""


async def _follow(target: Target, far: Execution, show: Show) -> Ended | None:
    assert target.url is not None, "a target that is not local has an address"
    loop = asyncio.get_running_loop()
    async with AsyncClient(target.url, target.token) as client:
        watching = loop.create_task(_see_end(client, far, show))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, watching.cancel)
        try:
            return await watching
        except asyncio.CancelledError:
            return None


async def _see_end(client: AsyncClient, far: Execution, show: Show) -> Ended:
    hearing = Hearing(client, far.execution_id, show)
    live = asyncio.ensure_future(hearing.live())
    held = HeldBack(show, partial(_waits, client), patience=FOR_WORKERS)
    try:
        await _watch(client, far, show, held)
        live.cancel()
        await hearing.rest()
    finally:
        live.cancel()
        held.end()
        show.end()
    summary = await ended(client, far.execution_id)
    return summary, await explained(client, summary)


async def explained(client: AsyncClient, summary: Summary) -> Explanation | None:
    return await client.explanation(summary.execution_id) if tells_more(summary) else None


async def _waits(client: AsyncClient, execution_id: str) -> Sequence[WaitReason]:
    return (await client.standing(execution_id)).waits


async def _watch(client: AsyncClient, far: Execution, show: Show, held: HeldBack) -> None:
    """Show what comes, a decision at a time as far as the stream brings it so."""
    coming: asyncio.Queue[EventView | None] = asyncio.Queue()
    reading = asyncio.ensure_future(_read(client, far.execution_id, coming))
    try:
        begun = False
        while (first := await coming.get()) is not None:
            batch = [first]
            while not coming.empty() and (event := coming.get_nowait()) is not None:
                batch.append(event)
            events = [event for one in batch for event in inside(one)]
            show.take(far, events)
            held.take(far.execution_id, events)
            if not begun:
                show.begin(far)
                begun = True
            if batch[-1].name == LAST:
                break
        await reading
    finally:
        reading.cancel()


async def _read(
    client: AsyncClient, execution_id: str, coming: "asyncio.Queue[EventView | None]"
) -> None:
    try:
        async for event in client.stream(execution_id):
            coming.put_nowait(event)
    finally:
        coming.put_nowait(None)


class Hearing:
    """What its tasks printed, as far as it was shown; a server streams events alone."""

    def __init__(self, client: AsyncClient, execution_id: str, show: Show) -> None:
        self._client, self._execution_id, self._show = client, execution_id, show
        self._heard = 0

    async def live(self) -> None:
        """Show lines while they come; a server that is away may be back with the next look."""
        while True:
            with suppress(NoetlError):
                await self.rest()
            await asyncio.sleep(POLL)

    async def rest(self) -> None:
        """Show every line that has come and was not shown."""
        more = True
        while more and self._heard < MOST_LINES:
            cursor = cursor_of(self._heard) if self._heard else None
            page = await self._client.lines(self._execution_id, cursor=cursor)
            for line in page.lines:
                self._heard += 1
                place = place_of(line.step, line.task_run_id)
                self._show.hear(self._execution_id, place, line.text)
            more = page.next is not None


async def ended(client: AsyncClient, execution_id: str) -> Summary:
    """What it came to, once it has ended."""
    while True:
        summary = await client.summary(execution_id, wait=30.0)
        if summary.status in EXITS:
            return summary


TAKEN = ("step", "step_run_id", "task_run_id", "parent_id")
"""Fields of an event that stand in its envelope (EVT-1)."""


def inside(event: EventView) -> list[e.Event]:
    """The event without its envelope; none where a newer server tells of something unknown."""
    taken = {name: value for name in TAKEN if (value := getattr(event, name)) is not None}
    if event.parent_id == event.step_run_id:  # only what is nested says so in the log (LOOP-7)
        taken.pop("parent_id", None)
    fields = {"name": event.name, **fields_of(event.data), **taken}
    try:
        return decode_events(msgspec.json.encode([fields]))
    except (msgspec.DecodeError, TypeError, ValueError):
        return []
