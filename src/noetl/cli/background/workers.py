"""Workers in the background: started together, and awaited until each has its line."""

import click

from noetl.cli.background.launch import Launched, await_ready, launch, variables
from noetl.node.pid_file import PidFile, RunningProcess
from noetl.settings import Settings
from noetl.tools.environment import VARIABLES


def started(settings: Settings, number: int, *, patience: float) -> list[RunningProcess]:
    """So many new workers, each a process of its own."""
    environment = environment_of(settings)
    begun = []
    for place in free_places(settings, number):
        file = file_of(settings, place)
        words = ["worker", "start", "--foreground", "--place", str(place)]
        begun.append((launch(words, file.log, environment), file))
    return [awaited(launched, file, patience) for launched, file in begun]


def environment_of(settings: Settings) -> dict[str, str]:
    """What the workers are told; of server and queue the one that was chosen."""
    told = {**VARIABLES, **variables(settings)}
    for name in ("NOETL_SERVER", "NOETL_TOKEN", "NOETL_CONTEXT"):
        told.pop(name, None)
    if settings.server is not None:
        told["NOETL_SERVER"] = settings.server
        told.pop("NOETL_QUEUE", None)
    if settings.token is not None:
        told["NOETL_TOKEN"] = settings.token
    return told


def file_of(settings: Settings, place: int) -> PidFile:
    return PidFile(settings.home, f"worker-{settings.pool}-{place}")


def free_places(settings: Settings, number: int) -> list[int]:
    found: list[int] = []
    place = 0
    while len(found) < number:
        place += 1
        if file_of(settings, place).running() is None:
            found.append(place)
    return found


def awaited(launched: Launched, file: PidFile, patience: float) -> RunningProcess:
    """The worker once it takes work; what it says before that is passed on."""

    def ready() -> RunningProcess | None:
        running = file.running()
        return running if running is not None and running.ready else None

    found = await_ready(launched, ready, what="the worker", file=file, patience=patience)
    if found is None:
        raise click.ClickException(
            f"the worker has not reached a server after {patience:g} s; it goes on trying in the "
            "background (`noetl worker logs --follow` shows it, `noetl worker stop` ends it)"
        )
    return found
