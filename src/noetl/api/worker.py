"""Routes of workers that come over HTTP: calls, questions, wake-ups, bodies (WRK-1)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

import msgspec
from litestar import Response
from litestar.params import FromQuery, QueryParameter
from litestar.response import Stream

from noetl import __version__
from noetl.api import types as t
from noetl.api.answers import NEVER_KEPT, answered
from noetl.api.context import ApiContext, Asking
from noetl.api.executions import known
from noetl.api.roles import caller_of
from noetl.api.texts import decoded
from noetl.errors import BodyLost, ServerRefused
from noetl.masking import KNOWN
from noetl.ports.link import POLL, SPEAKS, Call, Question
from noetl.ports.result_store import KEY

Name = Annotated[str, QueryParameter(min_length=1, max_length=200)]
Hint = Annotated[str | None, QueryParameter(max_length=200)]
Seconds = Annotated[float, QueryParameter(ge=0, le=30)]
Whom = Annotated[
    str | None, QueryParameter(max_length=200, description="Which server to ask; any if left out.")
]
JSON = "application/json"
FARTHEST = 2**43
"""Bytes into a body: some file systems refuse to look farther."""


class WorkerRoutes:
    """Answers for workers; the dispatcher behind it is the one that NATS leads to."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._plane = context.plane
        self._under_way: set[asyncio.Task[bytes]] = set()

    async def hello(self) -> Response[t.ServerIdentity]:
        """Which server the worker has reached, and where its results go."""
        told = t.ServerIdentity(
            server=self._plane.name,
            version=__version__,
            speaks=SPEAKS,
            store=self._plane.results.name,
        )
        return answered(told)

    async def call(self, request: Asking, server: Whom = None) -> Stream:
        """
        A call of a worker: reports, lease renewals, free places.

        The answer begins when the call has taken its place in the order, and ends after the
        commit: a worker may send the next call when the answer to this one has begun.
        """
        self._refuse_other(server)
        call = await decoded(request, Call)
        by = caller_of(request.scope.get("auth"))
        return self._answering(lambda: self._plane.dispatcher.answer(call, by))

    async def ask(self, request: Asking, server: Whom = None) -> Stream:
        """A question of a worker."""
        self._refuse_other(server)
        question: Question = await decoded(request, Question)  # type: ignore[arg-type]
        by = caller_of(request.scope.get("auth"))
        return self._answering(lambda: self._plane.dispatcher.reply(question, by))

    async def wake(
        self,
        request: Asking,
        worker: Name,
        pool: Name = "default",
        hungry: FromQuery[bool] = True,
        wait: Seconds = POLL,
    ) -> Response[t.Woken]:
        """Wait until there may be work, for at most `wait` seconds."""
        strange = caller_of(request.scope.get("auth")).strange(worker, pool)
        if strange:
            raise ServerRefused(strange, code="forbidden", status=403)
        waiting = self._context.wakes.wait(worker, pool, hungry=hungry, seconds=wait)
        rung = await self._context.unless_gone(request, waiting)
        return answered(t.Woken(server=self._plane.name, rung=bool(rung)))

    async def keep(
        self, request: Asking, execution_id: FromQuery[str], hint: Hint = None
    ) -> Response[t.Stored]:
        """
        Store a body (RES-1) of an execution that the worker has a part of.

        It is streamed, so size does not cost memory.
        """
        by = caller_of(request.scope.get("auth"))
        await self._plane.dispatcher.check_keeper(known(execution_id), by)
        writer = self._plane.results.open(execution_id)
        try:
            async for piece in request.stream():
                await asyncio.to_thread(writer.write, piece)
            reference = await writer.finish(hint)
        except BaseException:
            await writer.discard()
            raise
        return answered(t.Stored(**reference.fields()), status=201)

    async def fetch(
        self,
        store: Name,
        key: Name,
        start: Annotated[int, QueryParameter(ge=0, le=FARTHEST)] = 0,
    ) -> Stream:
        """The JSON text of a body from `start` on; the caller verifies it."""
        results = self._plane.results
        if store != results.name or KEY.fullmatch(key) is None:
            raise BodyLost(f"the body {store}:{key} is not one of this store")
        pieces = results.read(key, start)
        try:
            first = await anext(pieces, b"")
        except FileNotFoundError:
            raise BodyLost(f"the body {store}:{key} is not in {results.objects.place}") from None

        async def sent() -> AsyncIterator[bytes]:
            yield first
            async for piece in pieces:
                yield piece

        return Stream(sent(), media_type=JSON, headers=NEVER_KEPT)

    def _answering(self, answer: Callable[[], Awaitable[Any]]) -> Stream:
        """Begun in the order of arrival; ended even if the worker does not wait for it."""

        async def encoded() -> bytes:
            try:
                return msgspec.json.encode(await answer())
            except Exception as fault:  # promise 7: one bad call does not stop the others
                said = KNOWN.masked(f"{type(fault).__name__}: {fault}")
                return msgspec.json.encode({"fault": said})

        task = asyncio.get_running_loop().create_task(encoded())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

        async def sent() -> AsyncIterator[bytes]:
            yield await asyncio.shield(task)

        return Stream(sent(), media_type=JSON, headers=NEVER_KEPT)

    def _refuse_other(self, server: str | None) -> None:
        if server is not None and server != self._plane.name:
            raise ServerRefused(
                f"this is server {self._plane.name}, not {server}", code="moved", status=421
            )
