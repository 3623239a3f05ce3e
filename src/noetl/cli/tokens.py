"""`noetl server token`: who may use a server. The first token is made here, in the store itself."""

import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, get_args

import click

from noetl.api.entries import token_fields
from noetl.api.tokens import new_token
from noetl.api.types import Role, TokenMade, TokenView
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import JSON, print_json
from noetl.cli.running.attend import runner
from noetl.cli.target import aimed, at_server
from noetl.errors import NoetlError
from noetl.ports.storage import Storage
from noetl.ports.tokens import TokenRow
from noetl.settings import read_settings

T = TypeVar("T")
ROLES = get_args(Role)
UNITS = {"m": 60, "h": 3600, "d": 86_400}
SPAN = re.compile(r"(\d+)([mhd])")
EPILOG = """\b
Examples:
  noetl server token add ada --role admin
  noetl server token add ci --role operator --expires 90d
  noetl server token list
  noetl server token revoke 5f2c9a1d7e3b8046
"""


def example(line: str) -> str:
    return f"\b\nExamples:\n  noetl server token {line}"


class DurationType(click.ParamType[int]):
    """A time such as 90d, in seconds."""

    name = "span"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        found = SPAN.fullmatch(str(value))
        if found is None or int(found[1]) == 0:
            self.fail(f"expected a time such as 12h or 90d, got '{value}'", param, ctx)
        return int(found[1]) * UNITS[found[2]]


@click.group(epilog=EPILOG, invoke_without_command=True)
@click.pass_context
def token(ctx: click.Context) -> None:
    """
    Make, list and revoke tokens.

    Without --server they are those of this home (or of NOETL_DB): whoever can write there may
    make the first one. Roles: viewer < operator < author < admin; worker is for workers alone.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@token.command(epilog=example("add ci --role operator --expires 90d"))
@click.argument("name", metavar="NAME")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What it may do.")
@click.option(
    "--expires", type=DurationType(), metavar="SPAN", help="When it ends: 12h, 90d; else never."
)
@JSON
@aimed
def add(name: str, role: Role, expires: int | None, as_json: bool, target: Target) -> int:
    """
    Make a token; its text is printed this once.

    Only a digest of it is kept. NAME says whose it is.
    """
    if target.local:
        made = in_store(lambda home: make_token(home, name, role, expires))
    else:
        made = at_server(target, lambda client: client.make_token(name, role, expires_in=expires))
    if as_json:
        print_json(made)
    else:
        click.echo(made.token)
        click.echo(f"token {made.token_id} of '{name}' ({role}); it is not shown again", err=True)
    return exits.OK


@token.command("list", epilog=example("list --json"))
@JSON
@aimed
def listing(as_json: bool, target: Target) -> int:
    """List tokens: names, roles and times, never their text."""
    if target.local:
        rows = in_store(all_tokens)
    else:
        rows = at_server(
            target,
            lambda client: [one for page in client.pages(client.tokens) for one in page.tokens],
        )
    for row in rows:
        if as_json:
            print_json(row)
        else:
            click.echo(f"{row.token_id}  {row.role:<8}  {row.name:<24}  {ends(row)}")
    if not rows and not as_json:
        click.echo("no tokens; see: noetl server token add --help", err=True)
    return exits.OK


def ends(row: TokenView) -> str:
    if row.revoked_at is not None:
        return f"revoked {row.revoked_at}"
    return "" if row.expires_at is None else f"until {row.expires_at}"


@token.command(epilog=example("revoke 5f2c9a1d7e3b8046"))
@click.argument("token_id", metavar="ID")
@JSON
@aimed
def revoke(token_id: str, as_json: bool, target: Target) -> int:
    """Revoke a token, at once and for good."""
    if target.local:
        known = in_store(lambda home: home.tokens.revoke(token_id))
        if not known:
            raise NoetlError(f"no token '{token_id}'; see `noetl server token list`")
    else:
        at_server(target, lambda client: client.revoke_token(token_id))
    if as_json:
        print_json({"token_id": token_id, "revoked": True})
    else:
        click.echo(f"revoked {token_id}")
    return exits.OK


def in_store(work: Callable[[Storage], Awaitable[T]]) -> T:
    """In the home, or in the database that is set: where a server would look."""
    from noetl.node.opening import open_settings_storage

    def says(sentence: str) -> None:
        click.echo(sentence, err=True)

    async def opened() -> T:
        home = await open_settings_storage(read_settings(), says)
        try:
            return await work(home)
        finally:
            await home.close()

    return runner()(opened())


async def make_token(home: Storage, name: str, role: Role, expires: int | None) -> TokenMade:
    now = int(time.time() * 1000)
    until = None if expires is None else now + expires * 1000
    text, row = new_token(name, role, now_ms=now, expires_at=until)
    await home.tokens.add(row)
    return TokenMade(token=text, **token_fields(row))


async def all_tokens(home: Storage) -> list[TokenView]:
    rows: list[TokenRow] = list(await home.tokens.all())
    return [TokenView(**token_fields(row)) for row in rows]
