"""The home folder as commands see it that look at executions and run none."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from noetl.adapters.sqlite.locks import FILE
from noetl.cli.output import print_line
from noetl.cli.running.attend import runner
from noetl.errors import ExecutionNotFound
from noetl.node.control_plane import ControlPlane
from noetl.node.local import LocalNode
from noetl.node.opening import open_results, open_settings_storage
from noetl.ports.storage import Storage
from noetl.settings import Settings, read_settings

T = TypeVar("T")
Opened = TypeVar("Opened", LocalNode, ControlPlane, Storage)


def in_home(work: Callable[[LocalNode], Awaitable[T]], *, make: bool = False) -> T:
    """
    Open the home, do the work, and let go of it. One that is not there is made if asked, and one
    that may not be written is looked at.
    """
    settings = read_settings()
    if not make:
        refuse_missing(settings)
    return using(LocalNode.open(settings, looking=not make), work)


def in_database(
    settings: Settings, work: Callable[[ControlPlane], Awaitable[T]], *, writes: bool = False
) -> T:
    """The same with the database of servers (NOETL_DB); usually it is only read."""

    async def opened() -> ControlPlane:
        says = partial(print_line, err=True)
        storage = await open_settings_storage(settings, says, looking=not writes)
        results = open_results(settings)
        return ControlPlane(settings, storage, results=results, adopts=False, says=says)

    return using(opened(), work)


def using(opening: Awaitable[Opened], work: Callable[[Opened], Awaitable[T]]) -> T:
    """Do the work with what is opened, and close it, whatever happens."""

    async def used() -> T:
        opened = await opening
        try:
            return await work(opened)
        finally:
            await opened.close()

    return runner()(used())


def refuse_missing(settings: Settings) -> None:
    if not (settings.home / FILE).exists():
        raise ExecutionNotFound(
            f"nothing has run in {settings.home} yet; `noetl run FILE` does, or set NOETL_HOME "
            "to the home that you mean"
        )
