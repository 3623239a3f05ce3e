"""Several servers on one home behind one address, minded by one process (decisions 0087, 0093)."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from noetl.api.home_token import home_token
from noetl.api.serve import listen, refuse_open, url_of
from noetl.cli.background.crew import TIED, Crew
from noetl.cli.background.door import ShardDoor
from noetl.cli.background.launch import LOOK, used_by, variables
from noetl.cli.background.signals import stop_on_signals, unless
from noetl.cli.background.voice import listen_to_logging, say
from noetl.errors import SettingRefused
from noetl.node.pid_file import RunningProcess, Tell, shard_file
from noetl.settings import Settings
from noetl.tools.environment import VARIABLES


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


async def run_shards(settings: Settings, tell: Tell, *, shards: int, workers: int) -> None:
    """Mind so many servers until SIGTERM or Ctrl-C; workers are spread over them."""
    listen_to_logging()
    refuse_open(settings.host, auth=settings.auth)
    refuse_alone(settings, shards)
    hurry = asyncio.Event()
    stop = stop_on_signals(hurry)
    listening = listen(settings.host, settings.port)
    port = int(listening.getsockname()[1])
    door = ShardDoor(listening)
    url = url_of(settings.host, port)
    if settings.auth:
        home_token(settings.home)  # made once, before several servers look for it
    uses = {**used_by(settings), "shards": str(shards)}
    tell(ready=False, uses=uses)
    environment = {**VARIABLES, **variables(settings), "NOETL_PORT": str(port)}

    def words(place: int) -> Sequence[str]:
        share = workers // shards + (place <= workers % shards)
        start = ("server", "start", "--foreground", "--shard", str(place), TIED)
        return (*start, "--worker", str(share))

    crew = Crew(
        shards, environment, say, settings.drain, what="a shard", words=words, tie=door.place
    )
    crew.begin()
    try:
        if await unless(stop, all_ready(settings.home, shards)) is not None:
            tell(url, uses=uses)
            say(f"the server is ready at {url}, in {shards} shards")
        await stop.wait()
    finally:
        say("the server stops, with all of its shards")
        await crew.end(hurry)
        door.close()
        say("the server has stopped")


async def all_ready(home: Path, shards: int) -> bool:
    waiting = set(range(1, shards + 1))
    while waiting:
        waiting = {place for place in waiting if not is_ready(shard_file(home, place).running())}
        await asyncio.sleep(LOOK)
    return True


def is_ready(running: RunningProcess | None) -> bool:
    return running is not None and running.url is not None and running.pid != os.getpid()
