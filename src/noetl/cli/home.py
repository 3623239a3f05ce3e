"""The home folder as commands see it that look at executions and run none."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from noetl.adapters.sqlite.locks import FILE
from noetl.cli.running.attend import runner
from noetl.errors import ExecutionNotFound
from noetl.messages.codec import encode_shown
from noetl.node.local import LocalNode
from noetl.ports.event_log import ExecutionRow
from noetl.settings import Settings, read_settings

T = TypeVar("T")
ID = click.argument("execution_id", metavar="ID")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


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


async def is_interrupted(local: LocalNode, row: ExecutionRow) -> bool:
    """Whether it has not ended, and nobody is left who decides for it."""
    return row.finished_at is None and await local.storage.owners.holder(row.execution_id) is None


def print_json(value: object) -> None:
    """One JSON value on one line."""
    click.echo(encode_shown(value))
