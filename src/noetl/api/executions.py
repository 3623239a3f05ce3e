"""Routes of executions: start, list, look at, order (SRV-1)."""

import asyncio
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from litestar import Response
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter

from noetl.api import types as t
from noetl.api.answers import answered
from noetl.api.context import ApiContext, Asking
from noetl.api.paging import USUAL, Cursor, Limit, cursor_of, page_of, place_in
from noetl.api.plane import OrderKind
from noetl.api.refusals import refusal_of
from noetl.errors import ExecutionNotFound, NoetlError, ServerAway, ServerRefused
from noetl.ports.event_log import ExecutionRow
from noetl.server.verify import Verified, verify
from noetl.server.views.explanation import Explanation, explanation_of
from noetl.server.views.standing import Listed, Standing, line_of, listed_of, standing_of
from noetl.server.views.state import state_of

Status = Literal["running", "paused", "completed", "failed", "cancelled"]
Key = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", min_length=1, max_length=200, pattern=r"^[!-~]+$"),
]
Text = Annotated[str | None, QueryParameter(max_length=500)]
Wait = Annotated[float, QueryParameter(ge=0, le=60, description="Seconds to wait for the end.")]

ID = re.compile(r"[0-9A-Za-z._:-]{1,200}")
GLOB = frozenset("*?[")
SCANNED = 2000
"""Rows that one page looks at for a glob; a page may be short of its limit for that."""
PAGE = 200
FARTHEST = 1_000_000
"""Printed lines that can be paged to."""


class ExecutionsRoutes:
    """Answers for executions."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._plane = context.plane

    async def execute(self, data: JSONBody[t.ExecuteRequest], key: Key = None) -> Response[Listed]:
        """Start an execution; the answer comes after the commit (promise 1)."""
        refuse_unclear(data)
        row = await self._plane.execute(
            playbook_id=data.playbook_id,
            path=data.path,
            version=data.version,
            payload=data.payload,
            key=key,
        )
        where = {"location": f"/api/executions/{row.execution_id}"}
        return answered(listed_of(row, interrupted=False), status=201, headers=where)

    async def start_many(self, data: JSONBody[t.BatchRequest]) -> Response[t.ExecutionBatch]:
        """Start many at once; one that is refused does not stop the others."""
        begun = await asyncio.gather(*(self._begun(asked) for asked in data.executions))
        return answered(t.ExecutionBatch(executions=list(begun)), status=201)

    async def _begun(self, asked: t.KeyedRequest) -> t.Begun:
        try:
            refuse_unclear(asked)
            row = await self._plane.execute(
                playbook_id=asked.playbook_id,
                path=asked.path,
                version=asked.version,
                payload=asked.payload,
                key=asked.key,
            )
        except NoetlError as wrong:
            return t.Begun(error=refusal_of(wrong)[1])
        return t.Begun(execution=listed_of(row, interrupted=False))

    async def page(
        self,
        status: FromQuery[Status | None] = None,
        path: Text = None,
        parent: Text = None,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        cursor: Cursor = None,
        limit: Limit = USUAL,
    ) -> Response[t.ExecutionPage]:
        """Executions, the newest first. `path` may be a glob; then a page may be short."""
        asked: dict[str, Any] = {
            "status": status,
            "parent": parent,
            "since": millis(since),
            "until": millis(until),
        }
        before = place_in(cursor, str)
        if path is not None and GLOB & set(path):
            rows, next = await self._matching(path, before, limit, asked)
        else:
            page = self._plane.storage.executions.page
            found = await page(path=path, before=before, limit=limit + 1, **asked)
            rows, next = page_of(found, limit, lambda row: row.execution_id)
        return answered(t.ExecutionPage(executions=await self._listed(rows), next=next))

    async def standing(self, execution_id: FromPath[str]) -> Response[Standing]:
        """How an execution stands, and what it waits for."""
        row = await self._plane.row(known(execution_id))
        execution, plan = await self._plane.state(execution_id)
        return answered(await standing_of(self._plane.storage, row, execution, plan))

    async def explanation(self, execution_id: FromPath[str]) -> Response[Explanation]:
        """Why it waits or failed: the chain of causes."""
        row = await self._plane.row(known(execution_id))
        execution, plan = await self._plane.state(execution_id)
        return answered(await explanation_of(self._plane.storage, row, execution, plan))

    async def verify(self, request: Asking, execution_id: FromPath[str]) -> Response[Verified]:
        """Make every decision of its log again, and compare (EVT-5)."""
        await self._plane.row(known(execution_id))
        storage, results = self._plane.storage, self._plane.results
        proving = verify(storage.log, storage.playbooks, results, execution_id)
        proof = await self._context.unless_gone(request, proving)
        if proof is None:
            raise ServerAway("the server stops; ask again")
        return answered(proof)

    async def state(self, execution_id: FromPath[str]) -> Response[t.ExecutionState]:
        """The state that the log comes to (EVT-5)."""
        await self._plane.row(known(execution_id))
        execution, _ = await self._plane.state(execution_id)
        return answered(t.ExecutionState(**state_of(execution)))

    async def result(
        self, request: Asking, execution_id: FromPath[str], wait: Wait = 0
    ) -> Response[t.Summary]:
        """What it came to, or stands at; with `wait` once it has ended, or after that time."""
        await self._plane.row(known(execution_id))
        summary = None
        if wait:
            waiting = self._plane.summary(execution_id, wait=wait)
            summary = await self._context.unless_gone(request, waiting)
        if summary is None:
            summary = await self._plane.summary(execution_id)
        return answered(t.Summary(**summary))

    async def lines(
        self,
        execution_id: FromPath[str],
        step: Text = None,
        cursor: Cursor = None,
        limit: Limit = USUAL,
    ) -> Response[t.LinePage]:
        """What the tasks printed."""
        await self._plane.row(known(execution_id))
        first = min(max(place_in(cursor, int) or 0, 0), FARTHEST)
        printed = self._plane.storage.printed
        rows = await printed.read(execution_id, step=step, limit=first + limit + 1)
        lines = [line_of(line) for line in rows[first : first + limit]]
        next = cursor_of(first + limit) if len(rows) > first + limit else None
        return answered(t.LinePage(lines=lines, next=next))

    async def cancel(
        self, execution_id: FromPath[str], data: JSONBody[t.OrderRequest | None] = None
    ) -> Response[Listed]:
        """Cancel an execution and its children; one that has ended is refused."""
        return await self._order(execution_id, "cancel", data)

    async def pause(
        self, execution_id: FromPath[str], data: JSONBody[t.OrderRequest | None] = None
    ) -> Response[Listed]:
        """Let nothing new begin."""
        return await self._order(execution_id, "pause", data)

    async def resume(
        self, execution_id: FromPath[str], data: JSONBody[t.OrderRequest | None] = None
    ) -> Response[Listed]:
        """Let a paused execution go on."""
        return await self._order(execution_id, "resume", data)

    async def _order(
        self, execution_id: str, kind: OrderKind, data: t.OrderRequest | None
    ) -> Response[Listed]:
        reason = "" if data is None else data.reason
        row = await self._plane.order(known(execution_id), kind, reason)
        return answered((await self._listed([row]))[0])

    async def _matching(
        self, glob: str, before: str | None, limit: int, asked: dict[str, Any]
    ) -> tuple[Sequence[ExecutionRow], str | None]:
        """Rows whose path matches, of the next SCANNED."""
        found: list[ExecutionRow] = []
        for _ in range(SCANNED // PAGE):
            page = await self._plane.storage.executions.page(before=before, limit=PAGE, **asked)
            for row in page:
                before = row.execution_id
                if fnmatchcase(row.path, glob):
                    found.append(row)
                    if len(found) == limit:
                        return found, cursor_of(before)
            if len(page) < PAGE:
                return found, None
        return found, cursor_of(before)

    async def _listed(self, rows: Sequence[ExecutionRow]) -> list[Listed]:
        """Whether one is interrupted is asked once for each owner, not for each execution."""
        alive: dict[str | None, bool] = {}
        listed = []
        for row in rows:
            if row.finished_at is None and row.owner not in alive:
                holder = await self._plane.storage.owners.holder(row.execution_id)
                alive[row.owner] = holder is not None
            interrupted = row.finished_at is None and not alive[row.owner]
            listed.append(listed_of(row, interrupted=interrupted))
        return listed


def known(execution_id: str) -> str:
    """The id, if it can be one: anything else never reaches the store."""
    if ID.fullmatch(execution_id) is None:
        raise ExecutionNotFound(f"no execution '{execution_id[:100]}'")
    return execution_id


def refuse_unclear(asked: t.ExecuteRequest) -> None:
    if (asked.playbook_id is None) == (asked.path is None):
        raise ServerRefused(
            "expected `playbook_id`, or `path` and perhaps `version`", code="invalid", status=422
        )
    if asked.version is not None and asked.path is None:
        raise ServerRefused("`version` goes with `path`", code="invalid", status=422)


def millis(moment: datetime | None) -> int | None:
    """A time as the log has it; one without an offset is UTC."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
