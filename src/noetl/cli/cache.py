"""`noetl cache`: outcomes that are kept for later runs (CACHE)."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from noetl.api.types import CacheView
from noetl.cli.contexts import Target
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.ordering import noting
from noetl.cli.output import JSON, examples, tell, tell_each
from noetl.cli.running.words import short
from noetl.cli.target import aimed, ask, at_server, is_new
from noetl.cli.tokens import in_store
from noetl.ports.cache import CacheFilter

F = TypeVar("F", bound=Callable[..., Any])
EPILOG = """\b
Examples:
  noetl cache list
  noetl cache list --path weather/report --task fetch.get
  noetl cache clear --path weather/report --key oslo
"""


def chosen(command: F) -> F:
    """The options that say which entries are meant."""
    for name, what in (
        ("--key", "Only entries kept under this key."),
        ("--task", "Only entries of this task: its step and label, as fetch.get."),
        ("--path", "Only entries of this playbook."),
    ):
        command = click.option(name, metavar=name[2:].upper(), help=what)(command)
    return command


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def cache() -> None:
    """List and clear the outcomes that tasks with a `cache` have kept."""


@cache.command("list", epilog=examples("cache list --path weather/report --json"))
@chosen
@click.option(
    "--limit", type=click.IntRange(1, 200), default=50, show_default=True, help="Maximum number."
)
@JSON
@aimed
def listing(
    path: str | None, task: str | None, key: str | None, limit: int, as_json: bool, target: Target
) -> None:
    """List kept outcomes, the latest first."""
    rows: list[CacheView] = []
    if not is_new(target):
        rows = ask(
            target, lambda asked: asked.cache(path=path, task=task, key=key, limit=limit)
        ).entries
    tell_each(rows, line_of, as_json=as_json, none="nothing is cached")


def line_of(row: CacheView) -> str:
    name = f"{row.path} {row.task}"
    return f"{name:<40}  {short(row.key, 40):<24}  until {row.expires_at}  {row.execution_id}"


@cache.command(epilog=examples("cache clear --path weather/report", "cache clear"))
@chosen
@JSON
@aimed
def clear(
    path: str | None, task: str | None, key: str | None, as_json: bool, target: Target
) -> None:
    """Remove kept outcomes, so that the tasks run again. Without an option: all of them."""
    removed = 0
    if not target.local:
        removed = at_server(
            target, lambda client: client.clear_cache(path=path, task=task, key=key).removed
        )
    elif not is_new(target):
        wanted = CacheFilter(path=path, task=task, key=key)
        about = " ".join(filter(None, (path, task, key))) or "all"
        removed = in_store(noting("cache.clear", about, lambda home: home.cache.clear(wanted)))
    words = f"removed {removed:,} kept outcome{'s' * (removed != 1)}"
    tell({"removed": removed}, words, as_json=as_json)
