"""Routes about the server itself: who is there, whether it is well, what it counts."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl import __version__
from noetl.api import types as t
from noetl.api.answers import answered, answered_aside
from noetl.api.context import ApiContext, tell_about
from noetl.api.metrics import TYPE
from noetl.api.roles import pool_named
from noetl.api.rows import view_of
from noetl.errors import ServerRefused
from noetl.ports.pools import PoolRow
from noetl.ports.roster import WorkerRow
from noetl.server.waiting import RECENT


class RuntimeRoutes:
    """Answers about servers and workers."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane
        self._metrics = context.metrics
        self._closing = context.closing

    async def runtime(self) -> Response[t.Runtime]:
        """Servers, workers and pools seen in the last minute, and what waits."""
        since, roster = int(time.time() * 1000) - RECENT, self._plane.storage.roster
        workers = await roster.workers(since_ms=since)
        servers = await roster.servers(since_ms=since)
        answers, seconds = self._metrics.totals()
        told = t.Runtime(
            server=self._plane.name,
            version=__version__,
            servers=[view_of(t.ServerView, row) for row in servers],
            workers=[view_of(t.WorkerView, row) for row in workers],
            pools=pools_of(workers),
            waits_for=list(self._plane.health()["waits_for"]),
            counts=await self._plane.counts(),
            http=t.HttpTotals(answers=answers, seconds=round(seconds, 6)),
        )
        return await answered_aside(told)

    async def live(self) -> Response[t.Health]:
        """Whether the process is alive; needs no token."""
        return health(self._plane.health()["live"])

    async def ready(self) -> Response[t.Health]:
        """Whether it accepts requests; 503 while it waits for database or queue, or stops."""
        return health(self._plane.health()["ready"] and not self._closing.is_set())

    async def metrics(self) -> Response[bytes]:
        """Metrics for Prometheus."""
        return Response(self._metrics.text(await self._plane.counts()), media_type=TYPE)


class PoolsRoutes:
    """Answers for the limits of pools (LIMIT-1)."""

    def __init__(self, context: ApiContext) -> None:
        self._pools = context.plane.storage.pools
        self._refresh = context.plane.pools.refresh
        self._questions = context.questions

    async def page(self) -> Response[t.PoolLimits]:
        """Pools with a limit, by name."""
        return await answered_aside(await self._questions.pools())

    async def put(
        self, name: FromPath[str], data: JSONBody[t.PoolRequest]
    ) -> Response[t.PoolLimit]:
        """Set how many parts of a pool run at once; every server knows it within seconds."""
        row = PoolRow(name=pool_named(name), at_once=data.at_once, set_at=int(time.time() * 1000))
        tell_about(str(data.at_once))
        await self._pools.put(row)
        await self._refresh()
        return await answered_aside(view_of(t.PoolLimit, row))

    async def remove(self, name: FromPath[str]) -> None:
        """Let a pool run as much as its workers take."""
        if not await self._pools.remove(pool_named(name)):
            said = f"no limit is set for pool '{name[:100]}'"
            raise ServerRefused(said, code="pool_not_found", status=404)
        await self._refresh()


class DocumentRoutes:
    """Answers with the OpenAPI document, which is made when it is first asked for."""

    def __init__(self, _: ApiContext) -> None:
        self._made: dict[str, Any] | None = None

    async def openapi(self) -> Response[dict[str, Any]]:
        """The OpenAPI description."""
        if self._made is None:
            # Imported when it is asked for: it builds an app of its own.
            from noetl.api.description import openapi

            self._made = await asyncio.to_thread(openapi)
        return answered(self._made, fixed=True)


def health(well: bool) -> Response[t.Health]:
    return answered(t.Health(status="ok" if well else "waiting"), status=200 if well else 503)


def pools_of(workers: Sequence[WorkerRow]) -> list[t.Pool]:
    pools: dict[str, list[WorkerRow]] = {}
    for row in workers:
        pools.setdefault(row.pool, []).append(row)
    return [
        t.Pool(
            name=name,
            workers=len(rows),
            slots=sum(row.slots for row in rows),
            busy=sum(row.busy for row in rows),
        )
        for name, rows in sorted(pools.items())
    ]
