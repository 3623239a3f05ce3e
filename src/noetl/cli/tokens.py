"""`noetl server token`: who may use a server. The first token is made here, in the store itself."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, get_args

import click

from noetl.api.tokens import make_token, revoke_token, shown_token
from noetl.api.types import Role, TokenMade, TokenView
from noetl.cli.contexts import Target
from noetl.cli.home import using
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.ordering import noting
from noetl.cli.output import JSON, examples, print_json, print_line, tell, tell_each
from noetl.cli.target import aimed, at_server
from noetl.errors import NoetlError
from noetl.keychain.door import KeychainDoor
from noetl.ports.storage import Storage
from noetl.settings import read_settings

T = TypeVar("T")
ROLES = get_args(Role)
UNITS = {"m": 60, "h": 3600, "d": 86_400}
SPAN = re.compile(r"(\d+)([mhd])")
EPILOG = """\b
Examples:
  noetl server token add ada --role admin
  noetl server token add ci --role operator --expires 90d
  noetl server token add gpu-workers --role worker --pool gpu
  noetl server token list
  noetl server token revoke 5f2c9a1d7e3b8046
"""


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


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def token() -> None:
    """
    Create, list and revoke tokens.

    Without --server, this works on the tokens of this home (or of NOETL_DB); anyone who can write
    there can create the first one. Roles: viewer < approver < operator < author < admin; worker
    is for workers only.
    """


@token.command(epilog=examples("server token add ci --role operator --expires 90d"))
@click.argument("name", metavar="NAME")
@click.option("--role", type=click.Choice(ROLES), required=True, help="Its role.")
@click.option(
    "--expires",
    type=DurationType(),
    metavar="SPAN",
    help="Lifetime, such as 12h or 90d; default: no end.",
)
@click.option("--pool", metavar="POOL", help="For a worker: its pool [default].")
@JSON
@aimed
def add(
    name: str, role: Role, expires: int | None, pool: str | None, as_json: bool, target: Target
) -> None:
    """
    Create a token and print it; it is not shown again.

    Only a digest of it is stored. NAME says who uses it.
    """
    asked: dict[str, Any] = {"expires_in": expires, "pool": pool}
    if target.local:

        async def make(home: Storage) -> TokenMade:
            return await made_in(home, name, role, asked)

        made = in_store(noting("token.add", f"{name} {role}", make))
    else:
        made = at_server(target, lambda client: client.make_token(name, role, **asked))
    if as_json:
        print_json(made)
    else:
        click.echo(made.token)
        print_line(f"token {made.token_id} of '{name}' ({role}); it is not shown again", err=True)


@token.command("list", epilog=examples("server token list --json"))
@JSON
@aimed
def listing(as_json: bool, target: Target) -> None:
    """List tokens: names, roles and times, never their text."""
    if target.local:
        rows = in_store(all_tokens)
    else:
        rows = at_server(
            target,
            lambda client: [one for page in client.pages(client.tokens) for one in page.tokens],
        )
    none = "no tokens; see: noetl server token add --help"
    tell_each(rows, line_of, as_json=as_json, none=none)


def line_of(row: TokenView) -> str:
    role = f"worker of {row.pool or 'any pool'}" if row.role == "worker" else row.role
    return f"{row.token_id}  {role:<17}  {row.name:<24}  {ends(row)}"


def ends(row: TokenView) -> str:
    if row.revoked_at is not None:
        return f"revoked {row.revoked_at}"
    return "" if row.expires_at is None else f"until {row.expires_at}"


@token.command(epilog=examples("server token revoke 5f2c9a1d7e3b8046"))
@click.argument("token_id", metavar="ID")
@JSON
@aimed
def revoke(token_id: str, as_json: bool, target: Target) -> None:
    """Revoke a token immediately and permanently."""
    if target.local:

        async def revoked(home: Storage) -> bool:
            return await revoke_token(home.tokens, keys_of(home), token_id)

        known = in_store(noting("token.revoke", token_id, revoked))
        if not known:
            raise NoetlError(f"no token '{token_id}'; see `noetl server token list`")
    else:
        at_server(target, lambda client: client.revoke_token(token_id))
    tell({"token_id": token_id, "revoked": True}, f"revoked {token_id}", as_json=as_json)


async def made_in(home: Storage, name: str, role: Role, asked: dict[str, Any]) -> TokenMade:
    return await make_token(home.tokens, name, role, keychain=keys_of(home), **asked)


def keys_of(home: Storage) -> KeychainDoor:
    return KeychainDoor(lambda: home.credentials, home.folder, home.key)


def in_store(work: Callable[[Storage], Awaitable[T]]) -> T:
    """In the home, or in the database that is set: where a server would look."""
    from noetl.node.opening import open_settings_storage

    opening = open_settings_storage(read_settings(), lambda said: print_line(said, err=True))
    return using(opening, work)


async def all_tokens(home: Storage) -> list[TokenView]:
    return [shown_token(TokenView, row) for row in await home.tokens.all()]
