"""A worker in this process, from its start until it is told to stop and has drained."""

import asyncio
import contextlib
from collections.abc import Iterator

from noetl.cli.background.signals import stop_on_signals, stop_with_parent, unless
from noetl.cli.background.voice import listen_to_logging, say
from noetl.errors import HomeInUse
from noetl.node.pid_file import PidFile, Tell
from noetl.node.work_plane import open_line, run_worker
from noetl.settings import Settings

MOST = 1000
"""Workers of one pool on one home."""


READY = "takes up to"
"""What a worker says once it has its line to the servers."""


@contextlib.contextmanager
def place_of(settings: Settings, place: int | None, *, with_server: bool) -> Iterator[Tell]:
    """The pid file of this place in the pool, or the first that is free."""
    with contextlib.ExitStack() as stack:
        for number in range(1, MOST + 1) if place is None else (place,):
            file = PidFile(settings.home, f"worker-{settings.pool}-{number}")
            try:
                held = file.held("a worker", pool=settings.pool, with_server=with_server)
                taken = stack.enter_context(held)
            except HomeInUse:
                continue
            yield taken
            return
        raise HomeInUse(f"too many workers of pool '{settings.pool}' run on this home already")


async def work(settings: Settings, tell: Tell, *, with_parent: bool) -> None:
    """Work until SIGTERM or Ctrl-C, or until the server that started it is gone."""
    listen_to_logging()
    settings.mask()
    hurry = asyncio.Event()
    stop = stop_on_signals(hurry)
    if with_parent:
        stop_with_parent(stop, hurry)

    def says(sentence: str) -> None:
        say(sentence)
        if READY in sentence:
            tell()

    line = await unless(stop, open_line(settings, says))
    if line is not None:
        await run_worker(settings, line, stop=stop, hurry=hurry, says=says)
