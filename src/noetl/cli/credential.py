"""`noetl credential`: what is registered in the home's keychain. Values go in and never out."""

import json
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
import msgspec

from noetl.adapters.memory.storage import MemoryStorage
from noetl.adapters.sqlite.locks import FILE
from noetl.adapters.sqlite.storage import open_storage
from noetl.api.types import Credential
from noetl.cli import exits
from noetl.cli.background.launch import used_by
from noetl.cli.contexts import Target, named_by_user
from noetl.cli.home import using
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.ordering import noting
from noetl.cli.output import JSON, examples, print_line, tell, tell_each
from noetl.cli.source import reason_of
from noetl.cli.target import Asked, aimed, ask, at_server, is_new, pages
from noetl.errors import CredentialMissing, SettingRefused, UnreadableFile
from noetl.keychain.fields import (
    MAIN,
    PUBLIC,
    REQUIRED,
    Fields,
    kind_of,
    missing_in,
    parsed,
    placed,
)
from noetl.keychain.keys import KeySource
from noetl.keychain.store import Rotated, Store, shown
from noetl.node.opening import open_local_storage, open_settings_storage
from noetl.node.pid_file import PidFile
from noetl.playbook.blocks import CREDENTIAL_KINDS
from noetl.playbook.suggest import did_you_mean
from noetl.ports.storage import Storage
from noetl.settings import Settings, read_settings

EPILOG = """\b
Examples:
  noetl credential add pg_main --kind postgres --field host=db --field user=app
  noetl credential add api --kind bearer --stdin < token.txt
  noetl credential add lake --kind s3 --file lake.json
  noetl credential list
  noetl credential rotate
"""
ADDED = (
    "credential add pg_main --kind postgres --field host=db --field user=app --file pg.json",
    "credential add billing --kind oauth2 --file billing.json",
)
T = TypeVar("T")
NAME = click.argument("name", metavar="NAME")
KINDS = ", ".join(REQUIRED)
ON_THE_LINE = (
    "warning: a secret on a command line can be seen by other users and stays in the shell's "
    "history; use --stdin, --file or the prompt"
)


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def credential() -> None:
    """
    Register credentials for `auth` and the `secrets` tool.

    They are encrypted in the home, with the key of NOETL_KEY, of the file NOETL_KEY_FILE, or of
    the file `key` in the home. No command shows a value.
    """


@credential.command(epilog=examples("credential add api --kind bearer --stdin < token.txt", *ADDED))
@NAME
@click.option("--kind", required=True, metavar="KIND", help=f"One of: {KINDS}; or a plugin's own.")
@click.option("--field", "pairs", multiple=True, metavar="KEY=VALUE", help="A field; may repeat.")
@click.option("--stdin", is_flag=True, help="Read the secret from standard input.")
@click.option("--file", "path", metavar="FILE", help="Read the secret from a file.")
@JSON
@aimed
def add(
    name: str,
    kind: str,
    pairs: tuple[str, ...],
    stdin: bool,
    path: str | None,
    as_json: bool,
    target: Target,
) -> None:
    """
    Register a credential, or replace it.

    The secret is JSON with its fields, or plain text, which becomes the kind's own secret field
    (a password, a token). Without --stdin and --file you are asked for missing fields.
    """
    if stdin and path:
        raise click.UsageError("--stdin and --file exclude each other")
    target = named_by_user(target, "a credential would go to whoever wrote it")
    kind = kind_of(kind)
    fields = fields_in(pairs)
    if any(field not in PUBLIC for field in fields):
        print_line(ON_THE_LINE, err=True)
    if stdin or path:
        fields |= secret_in(kind, text_from(path))
    elif sys.stdin.isatty():
        fields |= asked_for(kind, fields)
    if not fields:
        raise click.UsageError("nothing to register: give --stdin, --file or --field")
    if target.local:
        noted = ("credential.put", f"{name} {kind}")
        in_store(lambda store: store.add(name, kind, fields), make=True, noted=noted)
    else:
        at_server(target, lambda client: client.put_credential(name, kind, fields))
    meant = "" if kind in CREDENTIAL_KINDS else did_you_mean(kind, CREDENTIAL_KINDS, "")
    if meant:  # else it may be one for a plugin
        print_line(f"warning: no tool knows the kind '{kind}'; {meant}", err=True)
    said = f"registered '{name}' ({kind}: {', '.join(shown(fields))})"
    tell({"name": name, "kind": kind, "fields": shown(fields)}, said, as_json=as_json)


@credential.command("list", epilog=examples("credential list --json"))
@JSON
@aimed
def listing(as_json: bool, target: Target) -> None:
    """List what is registered: names, kinds and times."""
    rows = [] if is_new(target) else ask(target, rows_of)
    none = "no credentials; see: noetl credential add --help"
    tell_each(rows, line_of, as_json=as_json, none=none)


def line_of(row: Credential) -> str:
    return f"{row.name:<24} {row.kind:<12} {row.updated_at}"


async def rows_of(asked: Asked) -> list[Credential]:
    return [row async for page in pages(asked.credentials) for row in page.credentials]


@credential.command(epilog=examples("credential show pg_main"))
@NAME
@JSON
@aimed
def show(name: str, as_json: bool, target: Target) -> None:
    """Show a credential: its kind and the names of its fields, never a value."""
    refuse_far(target, "shows no fields; `noetl credential list` has names and kinds")
    found = in_store(lambda store: store.fields(name))
    if found is None:
        raise unknown(name, target)
    kind, fields = found
    names = [f"  {field}{'' if field in PUBLIC else ' = ***'}" for field in shown(fields)]
    facts = {"name": name, "kind": kind, "fields": shown(fields)}
    tell(facts, f"{name} ({kind})", *names, as_json=as_json)


@credential.command(epilog=examples("credential rm pg_main"))
@NAME
@JSON
@aimed
def rm(name: str, as_json: bool, target: Target) -> None:
    """Remove a credential."""
    if not target.local:
        at_server(target, lambda client: client.remove_credential(name))
    elif not in_store(lambda store: store.remove(name), noted=("credential.remove", name)):
        raise unknown(name, target)
    tell({"name": name, "removed": True}, f"removed '{name}'", as_json=as_json)


@credential.command(epilog=examples("credential rotate", "credential rotate --lost"))
@click.option("--lost", is_flag=True, help="The old key is lost: continue without it.")
@JSON
@aimed
def rotate(lost: bool, as_json: bool, target: Target) -> int:
    """
    Make a new key and encrypt everything with it, in the home and in the database of NOETL_DB.

    Each is one transaction, and the old key is dropped after them; interrupted, run it again. Where
    the key comes from NOETL_KEY, set that to the new key, a comma and the old one first.

    A key that encrypts nothing in either is not rotated: it may encrypt something elsewhere.

    Values that no available key opens are listed and left unchanged, and the exit code is 1:
    register them again, or add their key as another line of the key file and rotate again.
    """
    refuse_far(target, "keeps its key to itself: rotate it where the server runs")
    rotated = in_stores(lambda stores: stores[0].rotate(*stores[1:], lost=lost))
    tell(rotated, *lines_of(rotated), as_json=as_json)
    whole = not (rotated.unreadable or rotated.log_keys_lost or rotated.token_keys_lost)
    return exits.OK if whole else exits.FAILED


def lines_of(rotated: Rotated) -> Iterator[str]:
    yield f"key {rotated.key_id}: {rotated.credentials} credentials encrypted with it"
    for row in rotated.unreadable:
        yield f"unreadable: '{row.name}' ({row.kind}) needs key {row.key_id}; register it again"
    if rotated.log_keys_lost:
        yield (
            f"unreadable: {rotated.log_keys_lost} keys of recorded secrets; executions that "
            "recorded one can be replayed, not resumed"
        )
    if rotated.token_keys_lost:
        yield f"unreadable: keys of {rotated.token_keys_lost} worker tokens; create them again"


def refuse_far(target: Target, why: str) -> None:
    if not target.local:
        raise click.UsageError(f"a server {why}")


def in_store(
    work: Callable[[Store], Awaitable[T]],
    *,
    make: bool = False,
    noted: tuple[str, str] | None = None,
) -> T:
    """
    Do something with what is registered in the home; looking makes no home. `noted`: of an order,
    what it is and what for.
    """
    home = read_settings().home

    async def opened() -> Storage:
        if not make and not (home / FILE).exists():
            return MemoryStorage()
        return await open_storage(home, looking=not make)

    async def done(storage: Storage) -> T:
        return await work(Store(storage.credentials, KeySource(home)))

    return using(opened(), done if noted is None else noting(*noted, done))


def in_stores(work: Callable[[list[Store]], Awaitable[T]]) -> T:
    """Do something with everything that the key of the home serves: the home, and NOETL_DB."""
    settings = read_settings()
    refuse_other_database(settings)
    keys = KeySource(settings.home)

    async def with_database(storage: Storage) -> T:
        stores = [Store(storage.credentials, keys)]
        if settings.db is None:
            return await work(stores)
        database = await open_settings_storage(settings, partial(print_line, err=True))
        try:
            return await work([*stores, Store(database.credentials, keys)])
        finally:
            await database.close()

    return using(open_local_storage(settings), with_database)


def refuse_other_database(settings: Settings) -> None:
    """A server that runs on this home tells what else the key of the home encrypts."""
    running = PidFile(settings.home, "server").running()
    used = None if running is None else running.uses.get("database")
    at_home = msgspec.structs.replace(settings, db=None)
    if used not in (None, used_by(settings)["database"], used_by(at_home)["database"]):
        raise SettingRefused(
            f"the server on {settings.home} encrypts what is in {used} with the same key, which "
            "this would drop: set NOETL_DB as that server has it"
        )


def unknown(name: str, target: Target) -> CredentialMissing:
    rows = [] if is_new(target) else ask(target, rows_of)
    hint = did_you_mean(name, [row.name for row in rows], "see `noetl credential list`")
    return CredentialMissing(f"no credential '{name}'; {hint}")


def fields_in(pairs: tuple[str, ...]) -> Fields:
    fields: Fields = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            # What stands there may be a secret: it is not repeated.
            raise click.UsageError("--field expects KEY=VALUE")
        fields[key] = value
    return fields


def text_from(path: str | None) -> str:
    """The secret as it stands in a file or comes on standard input; a last newline is not of it."""
    try:
        text = sys.stdin.read() if path is None else Path(path).read_text("utf-8")
    except (OSError, ValueError) as wrong:
        where = "standard input" if path is None else f"'{path}'"
        raise UnreadableFile(f"cannot read {where}: {reason_of(wrong)}") from None
    if not text.strip():
        raise click.UsageError("the secret is empty")
    return text.removesuffix("\n").removesuffix("\r")


def secret_in(kind: str, text: str) -> Fields:
    """Its fields; plain text is the field that makes the kind a secret."""
    broken = broken_at(text) if text.lstrip().startswith("{") else ""
    if broken:
        # A secret is not repeated: where it breaks is all that is said.
        field = MAIN.get(kind, "value")
        raise click.UsageError(
            f"the secret begins like JSON and is not JSON ({broken}); correct it, or "
            f'give a text that begins so as JSON: {{"{field}": "…"}}'
        )
    return placed(kind, parsed(text))


def broken_at(text: str) -> str:
    """Why a text is no JSON, without anything of it; empty where it is."""
    try:
        json.loads(text)
    except json.JSONDecodeError as wrong:
        return f"line {wrong.lineno}, column {wrong.colno}: {wrong.msg}"
    except (RecursionError, ValueError):
        return "it is nested too deeply, or a number in it is too long"
    return ""


def asked_for(kind: str, fields: Fields) -> Fields:
    """What the kind still needs, from a person at a terminal."""
    given: Fields = {}
    wanted = [words.partition(" or ")[0] for words in missing_in(kind, fields)]
    main = MAIN.get(kind, "value")
    if main not in fields and main not in wanted:
        wanted.append(main)
    for field in wanted:
        given[field] = click.prompt(field, hide_input=field not in PUBLIC, err=True)
    return given
