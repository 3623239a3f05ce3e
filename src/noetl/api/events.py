"""Routes of the log: pages of events, and the live stream with resume (EVT-1)."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Annotated, TypeVar

import msgspec
from litestar import Response
from litestar.params import FromPath, HeaderParameter, QueryParameter
from litestar.response import Stream

from noetl.api import types as t
from noetl.api.answers import answered_aside
from noetl.api.context import USUAL, ApiContext, Asking, Limit
from noetl.api.executions import known
from noetl.api.frames import FollowedLog, SharedFrames, StreamForm
from noetl.errors import NoetlError
from noetl.ports.event_log import LogRow

T = TypeVar("T")
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

Iterations = Annotated[
    bool | None,
    QueryParameter(description="`false`: what happens inside iterations is counted, not told."),
]

PIECE = 256 * 1024
"""Bytes of the log that are sent at once, about."""
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
        self._shared = SharedFrames()

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
        return await answered_aside(page)

    async def stream(
        self,
        request: Asking,
        execution_id: FromPath[str],
        after: After = None,
        last: LastEventId = None,
        name: Glob = None,
        iterations: Iterations = None,
    ) -> Stream:
        """Every event as it comes, as server-sent events, until the execution has ended."""
        row = await self._plane.row(known(execution_id))
        start = after or 0
        if last is not None and last.isascii() and last.isdecimal():
            start = min(int(last), LAST)
        if last is not None and row.finished_at is not None and start >= row.seq:
            # It has all of it, and came back only because the stream had ended: 204 stops that.
            return Stream(iter(()), status_code=204, headers=HEADERS)
        form = StreamForm(name, True if iterations is None else iterations)
        frames = self._frames(request.scope.get("auth"), execution_id, start, form)
        return Stream(frames, media_type="text/event-stream", headers=HEADERS)

    async def _frames(
        self, reader: object, execution_id: str, after: int, form: StreamForm
    ) -> AsyncIterator[bytes]:
        """
        Frames, a page of the log at a time: the next is read when these are sent, so a slow
        reader costs one page of memory, shared with who is at the same place, and slows nobody
        else (T13).
        """
        yield b"retry: 1000\n\n"
        try:
            log = FollowedLog(execution_id, await self._questions.trace(execution_id), form)
            while (kept := self._shared.kept(log, after)) is not None:
                if not await self._context.gate.lasts(reader):
                    return
                yield kept.frames
                after = kept.last
            pages = self._plane.follow(execution_id, after=after)
            async for page in with_beats(pages, self._context.closing, self._beat):
                if not await self._context.gate.lasts(reader):
                    return  # revoked or over: who comes back is told so
                if page is None:
                    yield b": nothing new\n\n"
                    continue
                for rows in pieces(page):
                    if found := self._shared.of(log, rows, after):
                        yield found
                    after = rows[-1].last
            if not self._context.closing.is_set():
                ended = await self._plane.row(execution_id)
                status = msgspec.json.encode({"status": ended.status, "seq": ended.seq})
                yield b"event: end\ndata: " + status + b"\n\n"
        except NoetlError:  # the log is away: without an end the reader comes back
            yield b": the log cannot be read now\n\n"


def pieces(page: Sequence[LogRow]) -> Iterator[Sequence[LogRow]]:
    """The rows of a page, so many at once as are sent at once; one that is larger goes alone."""
    begin, size = 0, 0
    for place, row in enumerate(page):
        if size and size + len(row.events) > PIECE:
            yield page[begin:place]
            begin, size = place, 0
        size += len(row.events)
    if page:
        yield page[begin:]


async def with_beats(
    pages: AsyncIterator[T], closing: asyncio.Event, beat: float
) -> AsyncIterator[T | None]:
    """The pages; None after each `beat` seconds without one. Ends when the server stops."""
    stopping = asyncio.create_task(closing.wait())
    pending: asyncio.Task[T] | None = None
    try:
        while not closing.is_set():
            if pending is None:
                pending = asyncio.ensure_future(anext(pages))
            await asyncio.wait(
                [pending, stopping], timeout=beat, return_when=asyncio.FIRST_COMPLETED
            )
            if not pending.done():
                if not closing.is_set():
                    yield None
                continue
            done, pending = pending, None
            try:
                page = done.result()
            except StopAsyncIteration:
                return
            yield page
    finally:
        stopping.cancel()
        if pending is not None:
            pending.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration, Exception):
                await pending
        if hasattr(pages, "aclose"):
            await pages.aclose()
