"""The home folder as commands see it that look at executions and run none."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from noetl.adapters.sqlite.locks import FILE
from noetl.cli.running.attend import runner
from noetl.errors import ExecutionNotFound
from noetl.node.local import LocalNode
from noetl.settings import Settings, read_settings

T = TypeVar("T")


def in_home(work: Callable[[LocalNode], Awaitable[T]], *, make: bool = False) -> T:
    """
    Open the home, do the work, and let go of it. One that is not there is made if asked, and one
    that may not be written is looked at.
    """
    settings = read_settings()
    if not make:
        refuse_missing(settings)

    async def opened() -> T:
        local = await LocalNode.open(settings, looking=not make)
        try:
            return await work(local)
        finally:
            await local.close()

    return runner()(opened())


def refuse_missing(settings: Settings) -> None:
    if not (settings.home / FILE).exists():
        raise ExecutionNotFound(
            f"nothing has run in {settings.home} yet; `noetl run FILE` does, or set NOETL_HOME "
            "to the home that you mean"
        )
