"""Where a command's product goes: to programs, to people, or into the file named by `-o`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from noetl.cli.source import reason_of
from noetl.cli.terminal import columns, is_terminal, steady, wants_colour, wrapped
from noetl.errors import NoetlError, UnwritableFile
from noetl.extras import needs

if TYPE_CHECKING:
    from noetl.cli.completing import Items

T = TypeVar("T")


def some_execution(ctx: click.Context, _: click.Parameter, incomplete: str) -> "Items":
    from noetl.cli.completing import executions

    return executions(ctx, incomplete)


def some_playbook(ctx: click.Context, _: click.Parameter, incomplete: str) -> "Items":
    from noetl.cli.completing import playbooks

    return playbooks(ctx, incomplete)


ID = click.argument("execution_id", metavar="ID", shell_complete=some_execution)
"""`last`, and what an id begins with, will do: `cli.target` finds the one that is meant."""
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def examples(*lines: str) -> str:
    """The end of a command's help: how it is called."""
    return "\b\nExamples:\n" + "\n".join(f"  noetl {line}" for line in lines)


def needs_extra(command: str, extra: str) -> NoetlError:
    """What to do where the library of a command is not installed."""
    return NoetlError(needs(f"`{command}`", extra))


def print_json(value: object) -> None:
    """One JSON value on one line."""
    from noetl.messages.codec import encode_shown

    click.echo(encode_shown(value))


def print_line(text: str, *, err: bool = False, keep: str = "\n\t") -> None:
    """Lines for people: nothing in them steers the terminal, whatever data they show."""
    line = steady(text, colour=wants_colour(err=err), keep=keep)
    click.echo(wrapped(line, columns(err=err)) if is_terminal(err=err) else line, err=err)


def tell(value: object, *lines: str, as_json: bool) -> None:
    """A value for programs, or the same in lines for people."""
    if as_json:
        print_json(value)
        return
    for line in lines:
        print_line(line, keep="\t")  # a title with a break in it does not look like two lines


def tell_each(
    values: Iterable[T], line: Callable[[T], str], *, as_json: bool, none: str = ""
) -> None:
    """A line for each; where there is none, people are told so."""
    empty = True
    for value in values:
        empty = False
        if as_json:
            print_json(value)
        else:
            print_line(line(value), keep="\t")
    if empty and none and not as_json:
        print_line(none, err=True)


def write(text: str | bytes, out: str | None) -> None:
    """Write the whole text to standard output, or to a file where one is named."""
    if out is None or out == "-":
        ended = text.endswith("\n") if isinstance(text, str) else text.endswith(b"\n")
        click.echo(text, nl=not ended)
        return
    try:
        Path(out).write_bytes(text.encode() if isinstance(text, str) else text)
    except (OSError, ValueError) as wrong:
        raise UnwritableFile(f"cannot write '{out}': {reason_of(wrong)}") from None


def replace(text: str, out: str) -> None:
    """Write a file that exists anew, whole or not at all; its mode stays, a link is followed."""
    target = Path(out).resolve()
    beside = target.with_name(f".{target.name}.migrating")
    try:
        beside.write_bytes(text.encode())
        beside.chmod(target.stat().st_mode)
        beside.replace(target)
    except (OSError, ValueError) as wrong:
        beside.unlink(missing_ok=True)
        raise UnwritableFile(f"cannot write '{out}': {reason_of(wrong)}") from None
