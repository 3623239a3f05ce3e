"""Several servers on one home behind one address, minded by one process (decision 0087)."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from noetl.api.home_token import home_token
from noetl.api.serve import bound, refuse_open, url_of
from noetl.cli.background.crew import TIED, Crew
from noetl.cli.background.launch import LOOK, used_by, variables
from noetl.cli.background.signals import stop_on_signals, unless
from noetl.cli.background.voice import listen_to_logging, say
from noetl.errors import SettingRefused
from noetl.node.pid_file import RunningProcess, Tell, shard_file
from noetl.settings import Settings
from noetl.tools.environment import VARIABLES

ONE_USER = (
    "tasks of these workers have the user of the servers, and can listen on the port that the "
    "shards share: requests that the kernel brings there show them their tokens; see "
    "docs/operate/trust-model.md for workers with a user of their own"
)


def refuse_alone(settings: Settings, shards: int) -> None:
    """Shards share what they decide about, so it must be something that servers can share."""
    if settings.db is None:
        raise SettingRefused(
            f"--shards {shards} needs PostgreSQL: SQLite has one writer, so a second server on "
            "this home would only wait for the first; set --db postgresql://…, or leave out "
            "--shards"
        )
    if settings.queue is None:
        raise SettingRefused(
            f"--shards {shards} needs NATS: a worker talks to the server that decides for its "
            "execution, and behind one address it could not say which; set --queue nats://…, or "
            "leave out --shards"
        )


def shares_user(settings: Settings, workers: int) -> bool:
    """Whether tasks could see tokens of others; without auth there are none to be seen."""
    return workers > 0 and settings.auth


async def run_shards(settings: Settings, tell: Tell, *, shards: int, workers: int) -> None:
    """Mind so many servers until SIGTERM or Ctrl-C; workers are spread over them."""
    listen_to_logging()
    refuse_open(settings.host, auth=settings.auth)
    refuse_alone(settings, shards)
    hurry = asyncio.Event()
    stop = stop_on_signals(hurry)
    # It never listens: it keeps the port while a shard is away, and finds one where any will do.
    held = bound(settings.host, settings.port, shared=True)
    port = int(held.getsockname()[1])
    url = url_of(settings.host, port)
    if settings.auth:
        home_token(settings.home)  # made once, before several servers look for it
    uses = {**used_by(settings), "shards": str(shards)}
    tell(ready=False, uses=uses)
    if shares_user(settings, workers):
        say(ONE_USER)
    environment = {**VARIABLES, **variables(settings), "NOETL_PORT": str(port)}

    def words(place: int) -> Sequence[str]:
        share = workers // shards + (place <= workers % shards)
        start = ("server", "start", "--foreground", "--shard", str(place), TIED)
        return (*start, "--worker", str(share))

    crew = Crew(shards, environment, say, settings.drain, what="a shard", words=words)
    crew.begin()
    try:
        if await unless(stop, all_ready(settings.home, shards)) is not None:
            tell(url, uses=uses)
            say(f"the server is ready at {url}, in {shards} shards")
        await stop.wait()
    finally:
        say("the server stops, with all of its shards")
        await crew.end(hurry)
        held.close()
        say("the server has stopped")


async def all_ready(home: Path, shards: int) -> bool:
    waiting = set(range(1, shards + 1))
    while waiting:
        waiting = {place for place in waiting if not is_ready(shard_file(home, place).running())}
        await asyncio.sleep(LOOK)
    return True


def is_ready(running: RunningProcess | None) -> bool:
    return running is not None and running.url is not None and running.pid != os.getpid()
