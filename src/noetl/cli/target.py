"""A question that is answered by the local home or by a server, whichever the command is for."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from noetl.cli.contexts import Target, target_of
from noetl.cli.home import in_home

if TYPE_CHECKING:
    from noetl.client.client import Client
    from noetl.node.local import LocalNode

T = TypeVar("T")


def aimed(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command `--server` and `--context`; it gets `target`, which says where to go."""

    @click.option("--server", metavar="URL", help="Ask this server, not the home (NOETL_SERVER).")
    @click.option("--context", metavar="NAME", help="Ask the server of this context.")
    @wraps(command)
    def aimed_command(*args: Any, server: str | None, context: str | None, **options: Any) -> T:
        return command(*args, target=target_of(server, context), **options)

    return aimed_command


def near_or_far(
    target: Target,
    *,
    near: "Callable[[LocalNode], Awaitable[T]]",
    far: "Callable[[Client], T]",
    make: bool = False,
) -> T:
    """The answer of the home, or of the server that is meant; see `in_home`."""
    return in_home(near, make=make) if target.local else at_server(target, far)


def at_server(target: Target, far: "Callable[[Client], T]") -> T:
    from noetl.client.client import Client

    assert target.url is not None, "a target that is not local has an address"
    with Client(target.url, target.token) as client:
        return far(client)
