"""Which server a command talks to: one that was named, a context, or none (the local home)."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from noetl.errors import SettingRefused, UnwritableFile
from noetl.private import private_file, private_folder
from noetl.settings import Reading, document_in, read_setting, read_with_origins, settings_file
from noetl.tools.environment import VARIABLES

FILE = "contexts.toml"
"""In the home; only its owner can read it, since it holds tokens."""
LOCAL = "local"
"""The context that is always there: the home itself, no server."""


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """A server by name."""

    name: str
    server: str
    token: str | None = None
    origin: str = ""
    """The file that it stands in."""


class Target(msgspec.Struct, frozen=True):
    """Where a command goes."""

    url: str | None
    """None: the local home."""
    token: str | None = None
    context: str | None = None
    users: bool = True
    """Whether the user named it; else only the `noetl.toml` of the folder did."""

    @property
    def local(self) -> bool:
        return self.url is None


def target_of(server: str | None, context: str | None) -> Target:
    """
    Where a command goes that was given these flags.

    Flags come before the environment, that before `noetl.toml`, that before the context in use; a
    server that is named beats a context that is named in the same place. A token that a file holds
    goes only to the server that it stands beside; the one of the environment never to a server that
    only the `noetl.toml` of a folder names.
    """
    return target_in(read_with_origins(flags={"server": server, "context": context}))


def target_in(reading: Reading) -> Target:
    """Where a command goes by these settings."""
    chosen = place_of(reading)
    known = contexts_of(reading)
    if chosen == "server":
        url, users = reading.settings.server, is_users(reading.origins["server"])
        return Target(url, token_for(url, reading, known), users=users)
    name = reading.settings.context or in_use(reading.settings.home)
    if name is None or name == LOCAL:
        return Target(None, None, name)
    found = known.get(name)
    if found is None:
        names = ", ".join([LOCAL, *known])
        raise SettingRefused(f"there is no context '{name}'; there are: {names}")
    token, users = found.token, is_users(found.origin)
    if token is None and reading.origins["token"].startswith("NOETL_"):
        token = reading.settings.token if users else None
    return Target(found.server, token, name, users)


def named_by_user(target: Target, why: str) -> Target:
    """The target, unless only the file of a folder names it (decision 0072)."""
    if target.users:
        return target
    raise SettingRefused(
        f"only the {settings_file({})} of this folder names the server {target.url}, and {why}; "
        "name it yourself: --server URL, NOETL_SERVER, or `noetl context add`"
    )


RANKS = ("flag", "NOETL_")


def rank_of(origin: str) -> int:
    """The earlier place wins; what was not set comes last."""
    if origin == "default":
        return len(RANKS) + 1
    return next((n for n, start in enumerate(RANKS) if origin.startswith(start)), len(RANKS))


def place_of(reading: Reading) -> str:
    """Whether a server or a context decides."""
    server, context = (rank_of(reading.origins[name]) for name in ("server", "context"))
    return "server" if server <= context and reading.settings.server is not None else "context"


def token_for(url: str | None, reading: Reading, known: Mapping[str, Context]) -> str | None:
    origin, named = reading.origins["token"], reading.origins["server"]
    if origin == named or (origin.startswith("NOETL_") and is_users(named)):
        return reading.settings.token
    return next((one.token for one in known.values() if one.server == url), None)


def token_at_home() -> str | None:
    """The token for a server that runs on the home."""
    reading = read_with_origins()
    return reading.settings.token if is_users(reading.origins["token"]) else None


def is_users(origin: str) -> bool:
    """
    Whether the user named it: by a flag, in the environment, in a file that NOETL_CONFIG names, or
    in the home. Whoever wrote the `noetl.toml` of a folder is not the owner of the user's token.
    """
    return bool(VARIABLES.get("NOETL_CONFIG")) or origin != str(settings_file({}))


# ── the files ────────────────────────────────────────────────────────────────────────────────


def contexts_of(reading: Reading) -> dict[str, Context]:
    """Every context by name; one of the home hides one of `noetl.toml`, which may be foreign."""
    found: dict[str, Context] = {}
    for file in (settings_file(VARIABLES), reading.settings.home / FILE):
        if file is not None and file.is_file():
            found |= contexts_in(file)
    return found


def contexts_in(file: Path) -> dict[str, Context]:
    """The contexts of one file."""
    return {str(name): context_of(name, fields, file) for name, fields in table_in(file).items()}


def table_in(file: Path) -> dict[str, Any]:
    table = document_in(file).get("contexts", {})
    if not isinstance(table, dict):
        raise SettingRefused(f"{file}: contexts must be tables: [contexts.NAME]")
    return table


def context_of(name: str, fields: Any, file: Path) -> Context:
    where = f"{file}: contexts.{name}"
    if not isinstance(fields, dict) or not isinstance(fields.get("server"), str):
        raise SettingRefused(f'{where} needs a server: server = "http://HOST:PORT"')
    strangers = sorted(set(fields) - {"server", "token"})
    if strangers:
        raise SettingRefused(f"{where}: there is no key '{strangers[0]}'; there are: server, token")
    return Context(
        name=name,
        server=read_setting("server", f"{where}: server", fields["server"]),
        token=fields.get("token"),
        origin=str(file),
    )


def in_use(home: Path) -> str | None:
    """The context that `noetl context use` chose."""
    file = home / FILE
    chosen = document_in(file).get("context") if file.is_file() else None
    return chosen if isinstance(chosen, str) else None


def write_contexts(home: Path, contexts: Mapping[str, Context], chosen: str | None) -> None:
    """Keep the home's contexts, all at once and for its owner's eyes alone."""
    lines = [] if chosen is None else [f"context = {json.dumps(chosen)}"]
    for one in contexts.values():
        lines += ["", f"[contexts.{json.dumps(one.name)}]", f"server = {json.dumps(one.server)}"]
        if one.token is not None:
            lines.append(f"token = {json.dumps(one.token)}")
    fresh = home / f"{FILE}.new"
    try:
        private_folder(home)
        with os.fdopen(private_file(fresh, os.O_WRONLY | os.O_TRUNC), "w") as file:
            file.write("\n".join(lines).lstrip("\n") + "\n")
        fresh.replace(home / FILE)
    except OSError as wrong:
        raise UnwritableFile(f"cannot write {home / FILE}: {wrong.strerror}") from None
