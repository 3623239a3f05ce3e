"""`noetl pool`: how much runs at once in a pool of workers (LIMIT-1)."""

import time

import click

from noetl.api.roles import pool_named
from noetl.api.types import PoolLimit
from noetl.cli.contexts import Target
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.ordering import noting
from noetl.cli.output import JSON, examples, tell, tell_each
from noetl.cli.target import aimed, ask, at_server, is_new
from noetl.cli.tokens import in_store
from noetl.errors import NoetlError
from noetl.ports.pools import PoolRow

EPILOG = """\b
Examples:
  noetl pool set gpu --at-once 4
  noetl pool list
  noetl pool remove gpu
"""
NAME = click.argument("name", metavar="NAME")


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def pool() -> None:
    """
    Limit what runs at once in a pool, over all servers and workers.

    Without a limit the places of its workers bound it. Servers know a change within two seconds.
    """


@pool.command("list", epilog=examples("pool list --json"))
@JSON
@aimed
def listing(as_json: bool, target: Target) -> None:
    """List pools with a limit."""
    rows: list[PoolLimit] = []
    if not is_new(target):
        rows = ask(target, lambda asked: asked.pools()).pools
    tell_each(rows, line_of, as_json=as_json, none="no pool has a limit")


def line_of(row: PoolLimit) -> str:
    return f"{row.name:<24}  at_once: {row.at_once:<8}  since {row.set_at}"


@pool.command("set", epilog=examples("pool set gpu --at-once 4"))
@NAME
@click.option(
    "--at-once", type=click.IntRange(1, 1_000_000), required=True, help="How many parts at once."
)
@JSON
@aimed
def set_limit(name: str, at_once: int, as_json: bool, target: Target) -> None:
    """Set the limit of a pool, or change it."""
    if target.local:
        row = PoolRow(name=pool_named(name), at_once=at_once, set_at=int(time.time() * 1000))
        in_store(noting("pool.set", f"{name} {at_once}", lambda home: home.pools.put(row)))
    else:
        at_server(target, lambda client: client.set_pool(name, at_once))
    tell({"name": name, "at_once": at_once}, f"pool '{name}': at_once {at_once}", as_json=as_json)


@pool.command(epilog=examples("pool remove gpu"))
@NAME
@JSON
@aimed
def remove(name: str, as_json: bool, target: Target) -> None:
    """Remove the limit of a pool."""
    if not target.local:
        at_server(target, lambda client: client.remove_pool(name))
    elif not in_store(noting("pool.remove", name, lambda home: home.pools.remove(name))):
        raise NoetlError(f"no limit is set for pool '{name}'; see `noetl pool list`")
    tell({"name": name, "removed": True}, f"pool '{name}' has no limit any more", as_json=as_json)
