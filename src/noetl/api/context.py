"""What the answers of one app share: the plane behind it, and the word that it stops."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated, NamedTuple, TypeVar

from litestar import Request
from litestar.datastructures import State
from litestar.params import QueryParameter

from noetl.api.gate import Gate
from noetl.api.home_token import rows_of_home
from noetl.api.metrics import Metrics
from noetl.api.questions import PlaneQuestions
from noetl.api.tickets import Tickets
from noetl.api.wakes import HttpWakes
from noetl.node.server import ServerNode
from noetl.ports.tokens import TokenRow, Tokens, digest_of, split_role

T = TypeVar("T")
Asking = Request[object, object, State]
Limit = Annotated[int, QueryParameter(ge=1, le=200, description="Maximum number of entries.")]
Cursor = Annotated[
    str | None, QueryParameter(max_length=2000, description="`next` of the page before.")
]
USUAL = 50
ABOUT: ContextVar[list[str] | None] = ContextVar("about", default=None)
"""What the order under way is for, as far as it has been told."""


class Guest(NamedTuple):
    """Somebody who comes with a ticket and only looks (`noetl view`)."""

    tokens: Tokens
    tickets: Tickets


class ApiContext:
    """One for each app; `closing` ends whatever waits, so that a stop takes no minute."""

    def __init__(
        self,
        plane: ServerNode,
        *,
        auth: bool = False,
        owner: str | None = None,
        guest: Guest | None = None,
    ) -> None:
        self.plane = plane
        own = {} if owner is None else rows_of_home(owner)
        tickets = None if owner is None else Tickets(owner, own[digest_of(owner)])
        self.tokens = plane.storage.tokens if guest is None else guest.tokens
        """Where sessions are kept: of somebody who only looks, not in the home."""
        if guest is not None:
            auth, tickets = True, guest.tickets
        self.gate = Gate(self.tokens if auth else None, own, tickets=tickets)
        self.questions = PlaneQuestions(plane)
        self.wakes = HttpWakes()
        self.metrics = Metrics()
        self.closing = asyncio.Event()
        plane.dispatcher.notifiers.append(self.wakes)

    def close(self) -> None:
        """Whatever waits is answered now."""
        self.closing.set()
        self.wakes.close()

    async def unless_gone(self, request: Asking, work: Awaitable[T]) -> T | None:
        """What the work comes to; None where the client is gone or the server stops before."""
        asked = asyncio.ensure_future(work)
        others = [
            asyncio.create_task(gone(request)),
            asyncio.create_task(self.closing.wait()),
        ]
        try:
            await asyncio.wait([asked, *others], return_when=asyncio.FIRST_COMPLETED)
            return asked.result() if asked.done() else None
        finally:
            for task in (asked, *others):
                task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await asked


async def gone(request: Asking) -> None:
    """Return when the client has gone; its body must have been read or be none."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def sender_of(request: Asking) -> tuple[str, tuple[str, ...] | None]:
    """Who asks, and what an approval may name him by: his token's role and name."""
    row = request.scope.get("auth")
    if not isinstance(row, TokenRow):  # without auth whoever reaches the server may do everything
        return "", None
    return row.name, (split_role(row.role)[0], row.name)


def tell_about(what: str) -> None:
    """Say what the order under way is for, where its URL does not; never a value of it."""
    told = ABOUT.get()
    if told is not None:
        told.append(what)
