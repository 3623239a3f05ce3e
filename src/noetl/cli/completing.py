"""What a shell can complete beside commands, options and files: executions and playbooks."""

from collections.abc import Awaitable, Callable

import click
from click.shell_completion import CompletionItem

from noetl.cli.contexts import target_of
from noetl.cli.target import Asked, ask
from noetl.errors import NoetlError

Items = list[CompletionItem[str]]
MOST = 50
"""How many are looked at: the newest."""


def executions(ctx: click.Context, incomplete: str) -> Items:
    """The newest executions; their playbook and status say which is which."""

    async def found(asked: Asked) -> Items:
        page = await asked.executions(limit=MOST)
        return [
            CompletionItem(one.execution_id, help=f"{one.path}, {one.status}")
            for one in page.executions
        ]

    return begun_with(incomplete, answered(ctx, found))


def playbooks(ctx: click.Context, incomplete: str) -> Items:
    """The paths of the catalog."""

    async def found(asked: Asked) -> Items:
        page = await asked.catalog(limit=MOST * 20)
        return [CompletionItem(one.path, help=one.description or "") for one in page.entries]

    return begun_with(incomplete, answered(ctx, found))


def answered(ctx: click.Context, question: Callable[[Asked], Awaitable[Items]]) -> Items:
    """Of the home or server that the words before name; nothing where nobody answers."""
    try:
        return ask(target_of(ctx.params.get("server"), ctx.params.get("context")), question)
    except (NoetlError, OSError):
        return []


def begun_with(incomplete: str, items: Items) -> Items:
    return [item for item in items if item.value.startswith(incomplete)]
