"""A question that a home, a database or a server answers, whichever the command is for."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import wraps
from typing import Any, TypeVar

import click

from noetl.adapters.sqlite.locks import FILE
from noetl.api.questions import PlaneQuestions
from noetl.cli.contexts import LOCAL, Target, target_of
from noetl.cli.home import in_database, in_home
from noetl.cli.running.attend import runner
from noetl.client.asks import Ask, AwaitedQuestions
from noetl.client.client import Client, Page
from noetl.errors import ExecutionNotFound, NoetlError, PlaybookNotFound
from noetl.settings import read_settings

T = TypeVar("T")


class FarQuestions(AwaitedQuestions):
    """A server's answers to what a command asks of a home as well: awaited, and there at once."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def send(self, ask: Ask[T]) -> T:
        return self.client.send(ask)


Asked = PlaneQuestions | FarQuestions

LAST = "last"
WHOLE = re.compile(r"[0-9a-hjkmnp-tv-z]{18}(-.+)?")
"""An id as `server.ids` makes it, or that of a child: nothing needs to be looked up."""
MOST_MEANT = 100


def aimed(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command `--server` and `--context`; it gets `target`, which says where to go."""

    @click.option(
        "--server", metavar="URL", help="Use this server instead of the home (NOETL_SERVER)."
    )
    @click.option("--context", metavar="NAME", help="Use the server of this context.")
    @wraps(command)
    def aimed_command(*args: Any, server: str | None, context: str | None, **options: Any) -> T:
        target = target_of(server, context)
        if options.get("execution_id") is not None:  # `restart` of many names none
            options["execution_id"] = whole_id(target, options["execution_id"])
        if "ids" in options:
            options["ids"] = tuple(whole_id(target, word) for word in options["ids"])
        return command(*args, target=target, **options)

    return aimed_command


def ask(target: Target, work: Callable[[Asked], Awaitable[T]], *, waits: bool = False) -> T:
    """
    The answer of the server that is meant, of the database that is set, or of the home.

    `waits`: the work waits for others than the server, too.
    """

    async def at(client: Client) -> T:
        return await work(FarQuestions(client))

    if not target.local:
        return at_server(target, lambda client: (runner() if waits else at_once)(at(client)))
    settings = read_settings()
    if settings.db is not None and target.context != LOCAL:
        try:
            return in_database(settings, lambda plane: work(PlaneQuestions(plane)))
        except (ExecutionNotFound, PlaybookNotFound):
            if not (settings.home / FILE).exists():
                raise  # else it may be one of the home, which `noetl run` uses in any case
    return in_home(lambda local: work(PlaneQuestions(local)))


def whole_id(target: Target, word: str) -> str:
    """The id that is meant: `last`, or what it begins with; what fits nothing stays as it is."""
    if WHOLE.fullmatch(word) or is_new(target):
        return word
    try:
        return ask(target, lambda asked: meant_id(asked, word))
    except ExecutionNotFound:
        return word


async def meant_id(asked: Asked, word: str) -> str:
    """One that another execution started is meant only where nothing else is: its id is longer."""
    if word == LAST:
        async for page in pages(asked.executions):
            for row in page.executions:
                if row.parent_execution_id is None:
                    return row.execution_id
        raise ExecutionNotFound("nothing has run yet")
    found = (await asked.executions(prefix=word, limit=MOST_MEANT)).executions
    whole = [row.execution_id for row in found if row.execution_id == word]
    roots = [row.execution_id for row in found if row.parent_execution_id is None]
    ids = whole or roots or [row.execution_id for row in found]
    if len(ids) > 1:
        more = ", ".join(ids[:5]) + (", …" if len(ids) > 5 else "")
        raise NoetlError(f"'{word}' is the beginning of several ids: {more}; write more of it")
    if not ids:
        raise ExecutionNotFound(word)
    return ids[0]


def is_new(target: Target) -> bool:
    """Whether the command is for a home in which nothing has run yet."""
    settings = read_settings()
    here = target.local and (settings.db is None or target.context == LOCAL)
    return here and not (settings.home / FILE).exists()


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
