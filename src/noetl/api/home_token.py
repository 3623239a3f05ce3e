"""
The token of a home: whoever can read the file `token` in it may do everything at its server.

A second token, for workers and nothing else, is derived from it: so a worker that is started on
the home is not given the first.
"""

import hashlib
import os
import secrets
from pathlib import Path
from urllib.parse import urlsplit

from noetl.api.loopback import host_in, is_loopback
from noetl.api.tokens import PREFIX
from noetl.errors import SettingRefused
from noetl.node.pid_file import PidFile
from noetl.ports.tokens import HOME, TokenRow, digest_of
from noetl.private import open_to_others, private_file, private_folder
from noetl.settings import read_settings

FILE = "token"
NAME, ANYWHERE = "localhost", ("0.0.0.0", "::")


def home_token(home: Path) -> str:
    """The token of this home, made where there is none, or where others could read it."""
    path = home / FILE
    private_folder(home)
    if path.exists() and not open_to_others(path) and (kept := path.read_text().strip()):
        return kept
    text = PREFIX + secrets.token_urlsafe(32)
    draft = path.with_name(f"{FILE}.{os.getpid()}")
    with os.fdopen(private_file(draft, os.O_WRONLY | os.O_TRUNC), "w") as file:
        file.write(f"{text}\n")
    draft.replace(path)
    return text


def worker_token(text: str) -> str:
    """What a worker on the home shows; the home's own token cannot be found from it."""
    return PREFIX + hashlib.sha256(f"worker of {text}".encode()).hexdigest()


def rows_of_home(text: str) -> dict[str, TokenRow]:
    """Both, by their digests, as the gate knows them; they are in no store."""
    # Another token of the home has another id: sessions of the one before end with it.
    named = f"{HOME}-{digest_of(text)[:16]}"
    rows = [
        TokenRow(token_id=named, name=name, role=role, digest=digest_of(shown), created_at=0)
        for name, role, shown in (
            ("owner of the home", "admin", text),
            ("worker of the home", "worker", worker_token(text)),
        )
    ]
    return {row.digest: row for row in rows}


def at_home(url: str, home: Path | None = None) -> tuple[str, str | None]:
    """
    Where to go for a server at this address, and the token of the home if it is the home's own.

    Nobody else is shown the token: neither a server on another machine, nor whoever listens on the
    port of a server that has ended, nor who has the same port at another address of this machine.
    A name may mean several addresses: whoever shows the token goes to the server's own.
    """
    try:
        home = read_settings().home if home is None else home
        running = PidFile(home, "server").running()
        if running is None or running.url is None or not is_same(url, running.url):
            return url, None
        token = (home / FILE).read_text().strip()
        return (running.url, token) if token else (url, None)
    except (OSError, SettingRefused):
        return url, None


def is_same(url: str, its: str) -> bool:
    """Whether a URL means the server of this machine that listens at the other."""
    try:
        given, listens = urlsplit(url), urlsplit(its)
        alike = (given.scheme, given.port) == (listens.scheme, listens.port)
    except ValueError:
        return False
    name, host = host_in(url), host_in(its)
    by_name = name == NAME and is_loopback(host)
    return alike and (name == host or by_name or (host in ANYWHERE and is_loopback(name)))
