"""What may be asked of the registers beside the log, by routes and by commands on a home."""

from noetl.api import types as t
from noetl.api.rows import view_of
from noetl.messages.codec import decode_events
from noetl.messages.envelope import timestamp
from noetl.messages.events import ExecutionRequested
from noetl.ports.audit import AuditFilter, AuditRow
from noetl.ports.cache import CacheFilter
from noetl.ports.event_log import ExecutionRow
from noetl.ports.storage import Storage
from noetl.server.timers import now

MOST = 200
STARTS = ("start", "restart")
"""Orders that are read from the logs of the executions that they made."""
SCANNED = 2000
"""Executions that one question looks at for starts of somebody."""


class RegisterQuestions:
    """Read alone; a part of `PlaneQuestions`."""

    storage: Storage

    async def cache(
        self,
        *,
        path: str | None = None,
        task: str | None = None,
        key: str | None = None,
        limit: int = MOST,
    ) -> t.CachePage:
        """Outcomes that are kept, the latest first (CACHE-1)."""
        wanted = CacheFilter(path=path, task=task, key=key)
        rows = await self.storage.cache.page(wanted, now=now(), limit=limit)
        return t.CachePage(entries=[view_of(t.CacheView, row) for row in rows])

    async def pools(self) -> t.PoolLimits:
        """Pools with a limit, by name (LIMIT-1)."""
        rows = await self.storage.pools.all()
        return t.PoolLimits(pools=[view_of(t.PoolLimit, row) for row in rows])

    async def audit(
        self,
        *,
        since: int | None = None,
        until: int | None = None,
        who: str | None = None,
        what: str | None = None,
        limit: int = MOST,
    ) -> t.AuditPage:
        """Who ordered what, the latest first. Times are in ms."""
        wanted = AuditFilter(since=since, until=until, who=who, what=what)
        rows = list(await self.storage.audit.page(wanted, limit=limit))
        if what is None or what in STARTS:
            rows += await self._starts(wanted, limit)
        rows.sort(key=lambda row: row.at, reverse=True)
        views = [view_of(t.AuditView, row, noted_at=timestamp(row.at)) for row in rows[:limit]]
        return t.AuditPage(orders=views)

    async def _starts(self, wanted: AuditFilter, limit: int) -> list[AuditRow]:
        """Each execution says in its first event who asked for it."""
        found: list[AuditRow] = []
        before: str | None = None
        for _ in range(SCANNED // MOST):
            page = await self.storage.executions.page(
                since=wanted.since, until=wanted.until, before=before, limit=MOST
            )
            for row in page:
                start = None if row.parent_execution_id else await self._start(row)
                if start is not None and is_wanted(start, wanted):
                    found.append(start)
            if len(page) < MOST or len(found) >= limit:
                break
            before = page[-1].execution_id
        return found

    async def _start(self, row: ExecutionRow) -> AuditRow | None:
        rows = await self.storage.log.read(row.execution_id, limit=1)
        first = decode_events(rows[0].events)[0] if rows else None
        if not isinstance(first, ExecutionRequested):
            return None
        by_trigger = f"trigger {first.trigger.split('/', 1)[-1]}" if first.trigger else ""
        again = first.origin_execution_id
        return AuditRow(
            at=row.started_at,
            who=first.sender or by_trigger,
            what="restart" if again else "start",
            about=" ".join(filter(None, (row.execution_id, row.path, again and f"of {again}"))),
        )


def is_wanted(row: AuditRow, wanted: AuditFilter) -> bool:
    """Beside its time."""
    return wanted.who in (None, row.who) and wanted.what in (None, row.what)
