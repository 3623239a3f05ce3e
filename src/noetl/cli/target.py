"""A question that is answered by the local home or by a server, whichever the command is for."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import click

from noetl.api.questions import PlaneQuestions
from noetl.cli.contexts import Target, target_of
from noetl.cli.home import in_home
from noetl.client.asks import Ask, AwaitedQuestions
from noetl.client.client import Client, Page

T = TypeVar("T")


class FarQuestions(AwaitedQuestions):
    """A server's answers to what a command asks of a home as well: awaited, and there at once."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def send(self, ask: Ask[T]) -> T:
        return self.client.send(ask)


Asked = PlaneQuestions | FarQuestions


def aimed(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command `--server` and `--context`; it gets `target`, which says where to go."""

    @click.option("--server", metavar="URL", help="Ask this server, not the home (NOETL_SERVER).")
    @click.option("--context", metavar="NAME", help="Ask the server of this context.")
    @wraps(command)
    def aimed_command(*args: Any, server: str | None, context: str | None, **options: Any) -> T:
        return command(*args, target=target_of(server, context), **options)

    return aimed_command


def ask(target: Target, work: Callable[[Asked], Awaitable[T]]) -> T:
    """The answer of the home, or of the server that is meant; see `in_home`."""
    if target.local:
        return in_home(lambda local: work(PlaneQuestions(local)))
    return at_server(target, lambda client: at_once(work(FarQuestions(client))))


def at_once(work: Awaitable[T]) -> T:
    """What never waits needs no event loop: Ctrl-C ends a call that blocks, as ever."""
    try:
        next(work.__await__())
    except StopIteration as done:
        answer: T = done.value
        return answer
    raise AssertionError("a question to a server is answered before anything is awaited")


async def pages(
    question: Callable[..., Awaitable[Page]], *args: Any, **query: Any
) -> AsyncIterator[Page]:
    """Every page of a question with a cursor."""
    cursor: str | None = None
    while True:
        page = await question(*args, **query, cursor=cursor)
        yield page
        cursor = page.next
        if cursor is None:
            return


def at_server(target: Target, far: Callable[[Client], T]) -> T:
    assert target.url is not None, "a target that is not local has an address"
    with Client(target.url, target.token) as client:
        return far(client)
