"""Routes of the log: pages of events, and the live stream with resume (EVT-1)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from litestar import Response
from litestar.params import FromPath, HeaderParameter, QueryParameter
from litestar.response import Stream

from noetl.api import types as t
from noetl.api.answers import answered, shown
from noetl.api.context import USUAL, ApiContext, Asking, Limit
from noetl.api.executions import known
from noetl.errors import NoetlError
from noetl.messages.filtering import Wanted, wanted
from noetl.ports.event_log import LogRow
from noetl.server.replay import enveloped

LAST = 2**31 - 2
"""No execution has more events."""
After = Annotated[int | None, QueryParameter(ge=0, le=LAST, description="The last `seq` known.")]
LastEventId = Annotated[
    str | None, HeaderParameter(name="Last-Event-ID", max_length=20, description="As `after`.")
]
Glob = Annotated[
    str | None, QueryParameter(max_length=200, description="Names to show; older names are known.")
]
About = Annotated[
    str | None,
    QueryParameter(max_length=200, description="A step run, a task run or an iteration."),
]

BEAT = 15.0
"""Seconds of silence after which a comment says that the stream is alive."""
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventsRoutes:
    """Answers for the log."""

    def __init__(self, context: ApiContext, *, beat: float = BEAT) -> None:
        self._context = context
        self._plane = context.plane
        self._questions = context.questions
        self._beat = beat

    async def page(
        self,
        execution_id: FromPath[str],
        after: After = None,
        limit: Limit = USUAL,
        name: Glob = None,
        about: About = None,
    ) -> Response[t.EventPage]:
        """Events in order, starting after `after`."""
        page = await self._questions.events(
            known(execution_id), after=after or 0, name=name, about=about, limit=limit
        )
        return answered(page)

    async def stream(
        self,
        request: Asking,
        execution_id: FromPath[str],
        after: After = None,
        last: LastEventId = None,
        name: Glob = None,
    ) -> Stream:
        """Every event as it comes, as server-sent events, until the execution has ended."""
        row = await self._plane.row(known(execution_id))
        start = after or 0
        if last is not None and last.isascii() and last.isdecimal():
            start = min(int(last), LAST)
        if last is not None and row.finished_at is not None and start >= row.seq:
            # It has all of it, and came back only because the stream had ended: 204 stops that.
            return Stream(iter(()), status_code=204, headers=HEADERS)
        frames = self._frames(request.scope.get("auth"), execution_id, start, wanted(name))
        return Stream(frames, media_type="text/event-stream", headers=HEADERS)

    async def _frames(
        self, reader: object, execution_id: str, after: int, is_wanted: Wanted
    ) -> AsyncIterator[bytes]:
        """
        Frames, one row of the log at a time: the next is read when these are sent, so a slow
        reader costs one row of memory and slows nobody else (T13).
        """
        yield b"retry: 1000\n\n"
        try:
            trace = await self._questions.trace(execution_id)
            rows = self._plane.follow(execution_id, after=after)
            async for row in with_beats(rows, self._context.closing, self._beat):
                if not await self._context.gate.lasts(reader):
                    return  # revoked or over: who comes back is told so
                if row is None:
                    yield b": nothing new\n\n"
                    continue
                for event in enveloped(row, execution_id, trace, after):
                    if is_wanted(event):
                        yield frame(event)
            if not self._context.closing.is_set():
                ended = await self._plane.row(execution_id)
                status = msgspec.json.encode({"status": ended.status, "seq": ended.seq})
                yield b"event: end\ndata: " + status + b"\n\n"
        except NoetlError:  # the log is away: without an end the reader comes back
            yield b": the log cannot be read now\n\n"


def frame(event: dict[str, Any]) -> bytes:
    """JSON has no line breaks of its own, so one `data` line holds it."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event["seq"],
        event["name"].encode(),
        shown(event),
    )


async def with_beats(
    rows: AsyncIterator[LogRow], closing: asyncio.Event, beat: float
) -> AsyncIterator[LogRow | None]:
    """The rows; None after each `beat` seconds without one. Ends when the server stops."""
    stopping = asyncio.create_task(closing.wait())
    pending: asyncio.Task[LogRow] | None = None
    try:
        while not closing.is_set():
            if pending is None:
                pending = asyncio.ensure_future(anext(rows))
            await asyncio.wait(
                [pending, stopping], timeout=beat, return_when=asyncio.FIRST_COMPLETED
            )
            if not pending.done():
                if not closing.is_set():
                    yield None
                continue
            done, pending = pending, None
            try:
                row = done.result()
            except StopAsyncIteration:
                return
            yield row
    finally:
        stopping.cancel()
        if pending is not None:
            pending.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await pending
        if hasattr(rows, "aclose"):
            await rows.aclose()
