"""Routes of executions: start, list, look at, order (SRV-1)."""

import asyncio
import re
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec
from litestar import Response
from litestar.params import FromPath, FromQuery, HeaderParameter, JSONBody, QueryParameter

from noetl.api import types as t
from noetl.api.answers import answered, answered_aside
from noetl.api.context import USUAL, ApiContext, Asking, Cursor, Limit, sender_of, tell_about
from noetl.api.patterns import PRINTED
from noetl.api.refusals import refusal_of
from noetl.control.execution import Status
from noetl.errors import NoetlError, ServerAway, ServerRefused
from noetl.messages.requests import Order
from noetl.node.housekeeping import prune
from noetl.node.server import ServerNode
from noetl.ports.event_log import ExecutionRow
from noetl.server.policies import RetentionPolicy
from noetl.server.verify import Verified
from noetl.server.views.explanation import Explanation
from noetl.server.views.outline import Outline, outline_of
from noetl.server.views.standing import Listed, Standing, listed_of
from noetl.server.views.state import state_of

Key = Annotated[
    str | None,
    HeaderParameter(name="Idempotency-Key", min_length=1, max_length=200, pattern=PRINTED),
]
TraceParent = Annotated[
    str | None,
    HeaderParameter(
        name="traceparent",
        max_length=500,
        description="W3C trace context: the trace that the execution belongs to.",
    ),
]
Strict = Annotated[
    bool,
    QueryParameter(name="strict", description="Refuse a payload that does not fit (VAL-7)."),
]
Text = Annotated[str | None, QueryParameter(max_length=500)]
Said = Annotated[
    str | None, QueryParameter(max_length=500, description="Part of the path, the id or the error.")
]
Label = Annotated[
    str | None, QueryParameter(max_length=500, description="NAME=VALUE, of the playbook.")
]
Seq = Annotated[int | None, QueryParameter(ge=1, le=2**31 - 2, description="An event.")]
Wait = Annotated[float, QueryParameter(ge=0, le=60, description="Seconds to wait for the end.")]

ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._:-]{0,199}")


class StartTerms(NamedTuple):
    """What a start is given beside its body."""

    trace: str | None
    sender: str
    strict: bool


class ExecutionsRoutes:
    """Answers for executions."""

    def __init__(self, context: ApiContext) -> None:
        self._context = context
        self._plane = context.plane
        self._questions = context.questions

    async def execute(
        self,
        request: Asking,
        data: JSONBody[t.ExecuteRequest],
        key: Key = None,
        trace: TraceParent = None,
        strict: Strict = False,
    ) -> Response[t.StartedExecution]:
        """Start an execution; the answer comes after the commit (promise 1)."""
        given = StartTerms(trace, sender_of(request)[0], strict)
        begun = await self._begin(data, key, given)
        where = {"location": f"/api/executions/{begun.execution_id}"}
        return answered(begun, status=201, headers=where)

    async def start_many(
        self,
        request: Asking,
        data: JSONBody[t.BatchRequest],
        trace: TraceParent = None,
        strict: Strict = False,
    ) -> Response[t.ExecutionBatch]:
        """Start many at once; a refused one does not stop the others."""
        given = StartTerms(trace, sender_of(request)[0], strict)
        begun = await asyncio.gather(*(self._begun(one, given) for one in data.executions))
        refused = [one for one, made in zip(data.executions, begun, strict=True) if made.error]
        if refused:  # those that began have logs of their own, which name the sender
            paths = dict.fromkeys(str(one.path or one.playbook_id) for one in refused)
            tell_about(f"{len(refused)} of {len(begun)} refused: {' '.join(paths)}")
        return answered(t.ExecutionBatch(executions=list(begun)), status=201)

    async def _begun(self, asked: t.KeyedRequest, given: StartTerms) -> t.Begun:
        try:
            return t.Begun(execution=await self._begin(asked, asked.key, given))
        except NoetlError as wrong:
            return t.Begun(error=refusal_of(wrong)[1])

    async def _begin(
        self, asked: t.ExecuteRequest, key: str | None, given: StartTerms
    ) -> t.StartedExecution:
        refuse_unclear(asked)
        row = await self._plane.execute(
            playbook_id=asked.playbook_id,
            path=asked.path,
            version=asked.version,
            payload=asked.payload,
            ctx=asked.ctx,
            key=key,
            traceparent=given.trace,
            sender=given.sender,
            strict=given.strict,
        )
        return await started(self._plane, row, asked.payload)

    async def prune(self, data: JSONBody[t.PruneRequest]) -> Response[t.Pruned]:
        """Remove ended executions, or say which would go (`dry_run`); archive them before."""
        asked = msgspec.structs.asdict(data)
        dry_run, most = asked.pop("dry_run"), asked.pop("limit")
        where = f"to {data.archive}" if data.archive else ""
        tell_about(" ".join(filter(None, (data.path, *data.status, where))))
        policy = RetentionPolicy(**asked | {"status": tuple(data.status)})
        pruned = await prune(self._plane, policy, most=most, dry_run=dry_run)
        tell_about(f"{len(pruned.executions)} {'would go' if dry_run else 'removed'}")
        return await answered_aside(pruned)

    async def page(
        self,
        status: FromQuery[Status | None] = None,
        path: Text = None,
        parent: Text = None,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        prefix: Text = None,
        key: Text = None,
        text: Said = None,
        label: Label = None,
        cursor: Cursor = None,
        limit: Limit = USUAL,
    ) -> Response[t.ExecutionPage]:
        """
        Executions, the newest first.

        `path` may be a glob; `prefix` begins their ids, and `key` is the Idempotency-Key of one.
        """
        page = await self._questions.executions(
            status=status,
            path=path,
            parent=parent,
            since=millis(since),
            until=millis(until),
            prefix=prefix,
            key=key,
            text=text,
            label=label,
            cursor=cursor,
            limit=limit,
        )
        return await answered_aside(page)

    async def standing(self, execution_id: FromPath[str]) -> Response[Standing]:
        """The status of an execution and what it waits for."""
        return await answered_aside(await self._questions.standing(known(execution_id)))

    async def explanation(self, execution_id: FromPath[str]) -> Response[Explanation]:
        """Why it failed or waits: the chain of causes."""
        return await answered_aside(await self._questions.explanation(known(execution_id)))

    async def outline(self, execution_id: FromPath[str]) -> Response[Outline]:
        """The steps and arcs of its playbook, as they are drawn."""
        row = await self._plane.row(known(execution_id))
        return await answered_aside(await outline_of(self._plane.storage, row.digest))

    async def verify(self, request: Asking, execution_id: FromPath[str]) -> Response[Verified]:
        """Repeat every decision of its log and compare (EVT-5)."""
        proving = self._questions.verified(known(execution_id))
        proof = await self._context.unless_gone(request, proving)
        if proof is None:
            raise ServerAway("the server is stopping; try again")
        return await answered_aside(proof)

    async def state(
        self, execution_id: FromPath[str], seq: Seq = None
    ) -> Response[t.ExecutionState]:
        """The state rebuilt from the log (EVT-5); with `seq` as it was after that event."""
        if seq is not None:
            return await answered_aside(await self._questions.state(known(execution_id), seq=seq))
        execution, _ = await self._plane.state(known(execution_id))
        return await answered_aside(t.ExecutionState(**state_of(execution)))

    async def result(
        self, request: Asking, execution_id: FromPath[str], wait: Wait = 0
    ) -> Response[t.Summary]:
        """Its result or current status; with `wait`, once it has ended or that time has passed."""
        await self._plane.row(known(execution_id))
        summary = None
        if wait:
            waiting = self._plane.summary(execution_id, wait=wait)
            summary = await self._context.unless_gone(request, waiting)
        if summary is None:
            summary = await self._plane.summary(execution_id)
        return await answered_aside(t.Summary(**summary))

    async def lines(
        self,
        execution_id: FromPath[str],
        step: Text = None,
        cursor: Cursor = None,
        limit: Limit = USUAL,
    ) -> Response[t.LinePage]:
        """The output of the tasks."""
        page = await self._questions.lines(
            known(execution_id), step=step, cursor=cursor, limit=limit
        )
        return await answered_aside(page)

    async def cancel(
        self,
        request: Asking,
        execution_id: FromPath[str],
        data: JSONBody[t.OrderRequest | None] = None,
    ) -> Response[Listed]:
        """Cancel an execution and its children; one that has ended is refused."""
        return await self._order(request, execution_id, "cancel", data)

    async def pause(
        self,
        request: Asking,
        execution_id: FromPath[str],
        data: JSONBody[t.OrderRequest | None] = None,
    ) -> Response[Listed]:
        """Let nothing new begin."""
        return await self._order(request, execution_id, "pause", data)

    async def resume(
        self,
        request: Asking,
        execution_id: FromPath[str],
        data: JSONBody[t.OrderRequest | None] = None,
    ) -> Response[Listed]:
        """Resume a paused execution."""
        return await self._order(request, execution_id, "resume", data)

    async def _order(
        self, request: Asking, execution_id: str, kind: Order, data: t.OrderRequest | None
    ) -> Response[Listed]:
        reason, sender = "" if data is None else data.reason, sender_of(request)[0]
        row = await self._plane.order(known(execution_id), kind, reason, sender=sender)
        return await answered_aside((await self._questions.listed([row]))[0])


async def started(
    plane: ServerNode, row: ExecutionRow, payload: dict[str, Any]
) -> t.StartedExecution:
    """What is answered to whoever started it, with what of the payload does not fit (VAL-7)."""
    warnings = await plane.library.warnings(row.digest, payload)
    listed = msgspec.structs.asdict(listed_of(row, interrupted=False))
    return t.StartedExecution(**listed, warnings=warnings)


def known(execution_id: str) -> str:
    """The id, if it can be one: anything else never reaches a store, where it may be a path."""
    if ID.fullmatch(execution_id) is None:
        raise ServerRefused(
            f"'{execution_id[:100]}' is not an execution id", code="malformed", status=400
        )
    return execution_id


def refuse_unclear(asked: t.ExecuteRequest) -> None:
    if (asked.playbook_id is None) == (asked.path is None):
        raise ServerRefused(
            "expected `playbook_id`, or `path` and optionally `version`", code="invalid", status=422
        )
    if asked.version is not None and asked.path is None:
        raise ServerRefused("`version` goes with `path`", code="invalid", status=422)


def millis(moment: datetime | None) -> int | None:
    """A time as the log has it; one without an offset is UTC."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
