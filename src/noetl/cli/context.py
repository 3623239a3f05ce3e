"""`noetl context`: servers by name, and which of them commands talk to."""

import sys

import click

from noetl.cli.contexts import (
    FILE,
    LOCAL,
    Context,
    contexts_in,
    contexts_of,
    in_use,
    target_of,
    write_contexts,
)
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.output import JSON, examples, tell
from noetl.errors import SettingRefused
from noetl.settings import SETTINGS, read_settings, read_with_origins, shown

EPILOG = examples(
    "context add prod --server https://noetl.example --token-stdin < token.txt",
    "context use prod",
    "context list",
    "context use local",
)
ADDED = examples("context add prod --server https://noetl.example --token-stdin < t.txt")
NAME = click.argument("name", metavar="NAME")


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def context() -> None:
    """
    Name servers and choose the one that commands use.

    Contexts are stored in `contexts.toml` in the home, readable only by you; a project can have
    its own in `noetl.toml`. The context `local` always exists: the home itself.
    """


@context.command(epilog=ADDED)
@NAME
@click.option("--server", metavar="URL", required=True, help="URL of the server.")
@click.option("--token-stdin", is_flag=True, help="Read its token from standard input.")
@JSON
def add(name: str, server: str, token_stdin: bool, as_json: bool) -> None:
    """Add or change a named server."""
    name = checked("context", name)
    if name == LOCAL:
        raise click.UsageError("'local' is the home itself and cannot name a server")
    token = sys.stdin.read().strip() or None if token_stdin else None
    made = Context(name=name, server=checked("server", server), token=token)
    home = read_settings().home
    write_contexts(home, {**kept(), name: made}, in_use(home))
    said = f"context '{name}' is {shown('server', made.server)}; use it: noetl context use {name}"
    tell(as_object(made, used=in_use(home) == name), said, as_json=as_json)


@context.command(epilog=examples("context use prod"))
@NAME
@JSON
def use(name: str, as_json: bool) -> None:
    """Use this server for commands from now on; `local` means the home."""
    target = target_of(None, name)
    write_contexts(read_settings().home, kept(), None if name == LOCAL else name)
    url = shown("server", target.url)
    tell(
        {"name": name, "server": url}, f"commands talk to {url or 'the home'} now", as_json=as_json
    )


@context.command("list", epilog=examples("context list --json"))
@JSON
def listing(as_json: bool) -> None:
    """List contexts; the one in use is marked."""
    reading = read_with_origins()
    used = reading.settings.context or in_use(reading.settings.home) or LOCAL
    for one in [Context(name=LOCAL, server=""), *contexts_of(reading).values()]:
        mark = "*" if one.name == used else " "
        token = "  (with a token)" if one.token else ""
        where = shown("server", one.server) or f"the home {reading.settings.home}"
        line = f"{mark} {one.name:<16} {where}{token}"
        tell(as_object(one, used=one.name == used), line, as_json=as_json)


@context.command(epilog=examples("context rm prod"))
@NAME
@JSON
def rm(name: str, as_json: bool) -> None:
    """Remove a named server."""
    contexts, home = kept(), read_settings().home
    if contexts.pop(name, None) is None:
        raise SettingRefused(f"there is no context '{name}' in {home / FILE}")
    used = in_use(home)
    write_contexts(home, contexts, None if used == name else used)
    tell({"name": name, "removed": True}, f"context '{name}' is removed", as_json=as_json)


def kept() -> dict[str, Context]:
    """The contexts of the home; those of a project's file are not ours to write."""
    file = read_settings().home / FILE
    return contexts_in(file) if file.is_file() else {}


def as_object(one: Context, *, used: bool) -> dict[str, object]:
    return {
        "name": one.name,
        "server": shown("server", one.server) or None,
        "token": one.token is not None,
        "in_use": used,
    }


def checked(field: str, text: str) -> str:
    setting = SETTINGS[field]
    try:
        value: str = setting.read(text)
    except ValueError:
        got = shown(field, text)
        raise click.UsageError(f"expected {setting.expected}, got '{got}'") from None
    return value
