"""Groups of commands: with help where none is named, and importing one only when it is called."""

import gc
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from noetl.cli.commands import Entry
from noetl.imports import import_command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


WHOLE = 1000
"""Characters of a first sentence: none is so long."""


class HelpfulGroup(click.Group):
    """Shows its help when no command of it is named."""

    def invoke(self, ctx: click.Context) -> object:
        result = super().invoke(ctx)
        if ctx.invoked_subcommand is None:
            click.echo(ctx.get_help())
        return result

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each with its whole first sentence: click cuts it to one line."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(WHOLE)) for name, one in commands.items() if one]
            )


class LazyGroup(HelpfulGroup):
    """Lists its commands from a table; the module behind a name is imported on first use."""

    def __init__(self, *args: Any, table: Mapping[str, Entry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        entry = self.table.get(name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command = getattr(import_command(module), attribute)
        if not gc.isenabled():  # `start` had the search for garbage wait for what stays
            gc.freeze()
            gc.enable()
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # click suggests from the commands already imported: here, none.
        if not args[0].startswith("-") and args[0] not in self.table:
            raise click.UsageError(self.unknown(args[0]), ctx)
        return super().resolve_command(ctx, args)

    def unknown(self, name: str) -> str:
        """The sentence about a command that is not in the table."""
        from difflib import get_close_matches

        close = get_close_matches(name, self.table, n=1, cutoff=0.5)
        remedy = f"did you mean '{close[0]}'?" if close else f"there are: {', '.join(self.table)}"
        return f"no such command '{name}'; {remedy}"

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in self.table.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)
