"""A server in this process, from its start until it is told to stop."""

import asyncio
import os
from collections.abc import Mapping
from functools import partial

from noetl.api.handed import Handed, from_standard_input
from noetl.api.home_token import home_token
from noetl.api.serve import refuse_open, serve
from noetl.api.tokens import make_token, revoke_token
from noetl.cli.background.crew import Crew
from noetl.cli.background.launch import used_by, variables
from noetl.cli.background.signals import stop_as_orphan, stop_on_signals, unless
from noetl.cli.background.voice import listen_to_logging, say
from noetl.node.pid_file import Tell
from noetl.node.server import ServerNode
from noetl.settings import Settings
from noetl.tools.environment import VARIABLES

AS_ROOT = (
    "the server and its workers run as root, and so does the code of playbooks; see "
    "docs/operate/trust-model.md for workers with a user of their own"
)


async def run_server(settings: Settings, tell: Tell, *, workers: int, shard: bool = False) -> None:
    """
    Serve until SIGTERM or Ctrl-C; then workers end well, and executions are handed over.

    A shard also ends with the process that started it.
    """
    listen_to_logging()
    refuse_open(settings.host, auth=settings.auth)
    hurry = asyncio.Event()
    stop = stop_on_signals(hurry)
    handed = None
    if shard:
        handed = Handed(from_standard_input(), partial(stop_as_orphan, stop, hurry))
    plane = await unless(stop, ServerNode.open(settings, says=say))
    if plane is None:
        return
    try:
        await _served(plane, tell, stop, hurry, workers=workers, handed=handed)
    finally:
        await plane.close()
        say("the server has stopped")


async def _served(
    plane: ServerNode,
    tell: Tell,
    stop: asyncio.Event,
    hurry: asyncio.Event,
    *,
    workers: int,
    handed: Handed | None,
) -> None:
    closed = asyncio.Event()
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    settings = plane.settings
    serving = asyncio.ensure_future(
        serve(
            plane,
            settings.host,
            settings.port,
            auth=settings.auth,
            owner=home_token(settings.home) if settings.auth else None,
            handed=handed,
            stop=closed,
            ready=listening.set_result,
        )
    )
    await asyncio.wait((serving, listening), return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        await serving  # it could not listen
        return
    crew: Crew | None = None
    token_id: str | None = None
    try:
        url = plane.address = listening.result()
        tell(url, uses=used_by(settings))
        say(f"the server is ready at {url}")
        if workers and os.geteuid() == 0:
            say(AS_ROOT)
        if workers:
            token_id, environment = await crew_environment(plane, url)
            crew = Crew(workers, environment, say, settings.drain)
            crew.begin()
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
    finally:
        if crew is not None:
            say(
                "the server stops; what its workers run has "
                f"{settings.drain:g} s to end; told to stop again, they give it back at once"
            )
            await crew.end(hurry)
        if token_id is not None:
            await revoke_token(plane.storage.tokens, plane.keychain, token_id)
        closed.set()
        await serving


async def crew_environment(plane: ServerNode, url: str) -> tuple[str | None, Mapping[str, str]]:
    """What the server's own workers are told; with auth they get a token, good while it runs."""
    settings = plane.settings
    told = {**VARIABLES, **variables(settings), "NOETL_SERVER": url, "NOETL_CONTEXT": ""}
    told.pop("NOETL_TOKEN", None)
    if not settings.auth:
        return None, told
    made = await make_token(
        plane.storage.tokens,
        "workers of the server",
        "worker",
        pool=settings.pool,
        keychain=plane.keychain if settings.queue else None,  # over HTTP nothing is signed
    )
    return made.token_id, {**told, "NOETL_TOKEN": made.token}
