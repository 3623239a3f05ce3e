"""The API on a socket: uvicorn inside the loop that the control plane runs in."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from litestar import Litestar
from litestar.datastructures import State

from noetl.api.audit import AuditedOrders
from noetl.api.context import ApiContext, Guest
from noetl.api.faults import refusal_to
from noetl.api.handed import Handed
from noetl.api.intake import Intake, sweep
from noetl.api.loopback import is_loopback
from noetl.api.pages import with_pages
from noetl.api.routes import handlers, noted_orders
from noetl.errors import SettingRefused
from noetl.node.server import ServerNode

GRACE = 10
"""Seconds that requests under way have to end when the server stops."""
BACKLOG = 2048


class Quiet(uvicorn.Server):
    """A server whose owner decides when it stops: signals are the owner's business."""

    def __init__(self, config: uvicorn.Config, handed: Handed | None) -> None:
        super().__init__(config)
        self._handed = handed

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._handed is not None:
            self._handed.begin(self._taken)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self._handed is not None:
            self._handed.end()
        await super().shutdown(sockets)

    def _taken(self, over: Callable[[], None]) -> Intake:
        """As uvicorn makes it of what it accepts itself."""
        state = self.lifespan.state
        made = Intake(config=self.config, server_state=self.server_state, app_state=state)
        made.over = over
        return made


def refuse_open(host: str, *, auth: bool) -> None:
    """Without auth nobody but this machine may reach the server."""
    if not auth and not is_loopback(host):
        raise SettingRefused(
            f"host is {host}, which others can reach, and auth is off: expected 127.0.0.1, ::1 or "
            "localhost; leave auth on (no --open, no NOETL_AUTH=0) to listen there"
        )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket, whose port nobody else can join; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol is named, or asyncio leaves Nagle's algorithm on: 40 ms for each small answer.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with refusing(made, host, port):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
        made.setblocking(False)
    return made


@contextmanager
def refusing(made: socket.socket, host: str, port: int) -> Iterator[None]:
    """What keeps us from listening there is said with what to do about it."""
    try:
        yield
    except (OSError, OverflowError) as wrong:
        made.close()
        reason = wrong.strerror if isinstance(wrong, OSError) else str(wrong)
        raise SettingRefused(
            f"cannot listen on {host}:{port}: {reason}; stop what listens there, or take another "
            "port (--port, NOETL_PORT)"
        ) from None


async def serve(
    plane: ServerNode,
    host: str,
    port: int,
    *,
    auth: bool,
    owner: str | None = None,
    guest: Guest | None = None,
    handed: Handed | None = None,
    stop: asyncio.Event,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """
    Answer requests until `stop` is set; `ready` is told the URL once it listens. `owner` is the
    token of the home; with a `guest`, who only looks, nothing is noted in the home. A shard does
    not listen: connections at the address are `handed` to it (decision 0093).

    Requests under way get some seconds to end; streams and long polls end at once.
    """
    refuse_open(host, auth=auth)
    sockets = [] if handed is not None else [listen(host, port)]
    app = create_app(plane, auth=auth, owner=owner, guest=guest)
    server = Quiet(
        uvicorn.Config(
            with_pages(app),
            http=Intake,
            ws="none",
            log_config=None,
            log_level="error",  # whoever sends nonsense may not fill the log
            access_log=False,
            lifespan="on",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=GRACE,
        ),
        handed,
    )
    serving = asyncio.create_task(server.serve(sockets=sockets))
    stopping = asyncio.create_task(stop.wait())
    sweeping = asyncio.create_task(sweep(server.server_state))
    try:
        # The socket listens already: whoever connects from now on is answered.
        plane.address = url_of(host, sockets[0].getsockname()[1] if sockets else port)
        ready(plane.address)
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        server.force_exit = True  # whoever cancels does not want to wait for anybody
        raise
    finally:
        stopping.cancel()
        sweeping.cancel()
        context_of(app).close()
        server.should_exit = True
        try:
            await serving
        finally:
            for listening in sockets:
                listening.close()


def url_of(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"


def create_app(
    plane: ServerNode, *, auth: bool, owner: str | None = None, guest: Guest | None = None
) -> Litestar:
    """The app. Whoever serves it calls `context_of(app).close()` when it is to stop."""
    context = ApiContext(plane, auth=auth, owner=owner, guest=guest)
    orders = {} if guest else noted_orders()  # a guest can order nothing
    audited = AuditedOrders(plane.storage.audit, orders, plane.says)
    return Litestar(
        handlers(lambda kind: kind(context)),
        guards=[context.gate],
        exception_handlers={Exception: refusal_to},
        middleware=[context.metrics.watched, audited.watched],
        openapi_config=None,  # it would bring routes that are not in the table
        logging_config=None,
        state=State({"context": context}),
        on_shutdown=[context.close],
    )


def context_of(app: Litestar) -> ApiContext:
    context: ApiContext = app.state.context
    return context
