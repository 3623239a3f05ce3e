"""Who ordered what: every order that comes through the API is noted, done or refused."""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated

from litestar import Response
from litestar.params import FromQuery, QueryParameter
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from noetl.api import types as t
from noetl.api.answers import answered_aside
from noetl.api.context import ABOUT, USUAL, ApiContext
from noetl.api.executions import millis
from noetl.api.gate import CALLER
from noetl.api.registers import STARTS
from noetl.errors import NoetlError
from noetl.ports.audit import Audit, AuditRow
from noetl.ports.tokens import TokenRow, split_role

WINDOW = 60.0
MOST_REFUSED = 10
"""Refusals of one token that are noted in a minute; more of them are counted."""
MOST_CALLERS = 1000
FAILED = 500
"""From this status on it is the server that could not, and what became of the order may be open."""

Text = Annotated[str | None, QueryParameter(max_length=200)]
Most = Annotated[int, QueryParameter(ge=1, le=1000, description="Maximum number of rows.")]

NUL = "\N{SYMBOL FOR NULL}"
"""For the one character that no database keeps: an address may have it."""


class AuditRoutes:
    """Answers for whoever wants to know."""

    def __init__(self, context: ApiContext) -> None:
        self._questions = context.questions

    async def page(
        self,
        since: FromQuery[datetime | None] = None,
        until: FromQuery[datetime | None] = None,
        who: Text = None,
        what: Text = None,
        limit: Most = USUAL,
    ) -> Response[t.AuditPage]:
        """Who ordered what, the latest first."""
        page = await self._questions.audit(
            since=millis(since), until=millis(until), who=who, what=what, limit=limit
        )
        return await answered_aside(page)


class AuditedOrders:
    """Notes each order when its answer begins. `orders`: method and route → the word for it."""

    def __init__(
        self,
        audit: Audit,
        orders: Mapping[tuple[str, str], str],
        says: Callable[[str], None],
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._audit = audit
        self._orders = orders
        self._says = says
        self._now = now
        self._refused: dict[str, tuple[float, int]] = {}
        """Name of a token → when its minute began, and how many refusals it had since."""
        self._late: set[asyncio.Task[None]] = set()

    def watched(self, app: ASGIApp) -> ASGIApp:
        async def watching(scope: Scope, receive: Receive, send: Send) -> None:
            told: list[str] = []

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start":
                    noted = self._note(scope, message["status"], told)
                    if message["status"] < FAILED:
                        await noted
                    else:  # the log is away, most likely: nobody waits for it twice
                        task = asyncio.create_task(noted)
                        self._late.add(task)
                        task.add_done_callback(self._late.discard)
                await send(message)

            ABOUT.set(told)
            await app(scope, receive, sending)

        return watching

    async def _note(self, scope: Scope, status: int, told: list[str]) -> None:
        """Before the answer: who hears that it is done can rely on it. Strangers write nothing."""
        method = str(scope.get("method"))
        what = self._orders.get((method, str(scope.get("path_template"))))
        if what is None or CALLER not in scope:
            return
        caller = scope[CALLER]  # type: ignore[literal-required]
        name = caller.name if isinstance(caller, TokenRow) else ""
        role = split_role(caller.role)[0] if isinstance(caller, TokenRow) else ""
        partly = status < 400 and what in STARTS and bool(told)
        done = status < 400 and not partly
        if done and what in STARTS:
            return  # its own log says who asked for it
        missed = 0 if done else self._bound(name)
        if missed is None:
            return
        about = [str(value).lstrip("/") for value in (scope.get("path_params") or {}).values()]
        more = f"; {missed} more refusals were not noted" if missed else ""
        row = AuditRow(
            at=int(self._now() * 1000),
            who=name,
            role=role,
            what=what,
            about=" ".join([*about, *told])[:1000].replace("\0", NUL),
            result="done" if done else "refused" if status < FAILED else "unknown",
            detail="" if done else f"status {status}{more}",
        )
        try:
            await self._audit.note(row)
        except NoetlError as away:
            self._says(f"an order ({what}) could not be noted: {away}")

    def _bound(self, name: str) -> int | None:
        """None: this refusal is counted only; else how many were, before it."""
        now = self._now()
        since, count = self._refused.get(name, (now, 0))
        if now - since >= WINDOW:
            missed, since, count = max(0, count - MOST_REFUSED), now, 0
        else:
            missed = 0
        if len(self._refused) >= MOST_CALLERS:
            self._refused.clear()
        self._refused[name] = (since, count + 1)
        return None if count >= MOST_REFUSED else missed
