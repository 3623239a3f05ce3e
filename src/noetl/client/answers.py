"""What an answer means: the value that was asked for, or the exception that says why not."""

import re
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from noetl import __version__
from noetl.api import types as t
from noetl.client.asks import Ask
from noetl.errors import (
    ExecutionNotFound,
    InputsRejected,
    KeyReused,
    NoetlError,
    PlaybookNotFound,
    PlaybookRejected,
    ServerAway,
    ServerRefused,
    SettingRefused,
    TriggerNotFound,
)

T = TypeVar("T")
AGENT = f"noetl/{__version__}"
PATIENCE = 30.0
"""Seconds without a word from the server, beyond what it may take on purpose."""

ERRORS: dict[str, type[NoetlError]] = {
    "execution_not_found": ExecutionNotFound,
    "playbook_not_found": PlaybookNotFound,
    "trigger_not_found": TriggerNotFound,
    "key_reused": KeyReused,
}
"""Codes of the API that are exceptions of their own."""

AGAIN = re.compile(r"\b(?:try|ask) again\b")
LOCKED = {
    401: "set NOETL_TOKEN to a token of this server (`noetl server token add`); on the home of the "
    "server (NOETL_HOME) its owner needs none",
    403: "ask an admin for a token of that role (`noetl server token add NAME --role ROLE`)",
}


def address_of(url: str) -> tuple[bool, str, int, str]:
    """Whether it is TLS, host, port, and the path below which the API lies."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise SettingRefused(f"the server must be http://HOST:PORT, got '{url}'")
    secure = parts.scheme == "https"
    return secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/")


def target_of(ask: Ask[Any]) -> str:
    """Path and query."""
    query = {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in ask.query.items()
        if value is not None
    }
    return f"{ask.path}?{urlencode(query)}" if query else ask.path


def headers_of(ask: Ask[Any], token: str | None) -> dict[str, str]:
    headers = {"User-Agent": AGENT, "Accept": "application/json", **ask.headers}
    if ask.body is not None:
        headers["Content-Type"] = ask.media
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return headers


def value_in(ask: Ask[T], status: int, body: bytes, url: str) -> T:
    """The answer, or the exception that it stands for."""
    if status >= 400:
        raise refusal_in(status, body, url)
    if ask.answer is None:
        return None  # type: ignore[return-value]  # Ask[None]
    try:
        return msgspec.json.decode(body, type=ask.answer)  # type: ignore[no-any-return]
    except msgspec.DecodeError as wrong:
        raise ServerRefused(
            f"{url} answered something that this version ({__version__}) cannot read: {wrong}; "
            "is it a NoETL server of another version?",
            code="unreadable",
            status=status,
        ) from None


def refusal_in(status: int, body: bytes, url: str) -> NoetlError:
    try:
        fault = msgspec.json.decode(body, type=t.ErrorBody).error
    except msgspec.DecodeError:
        text = f"{url} answered {status} without a reason; is it a NoETL server?"
        return ServerRefused(text, code="unreadable", status=status)
    if fault.findings is not None:
        rejected = InputsRejected if fault.code == "inputs_rejected" else PlaybookRejected
        return rejected(tuple(fault.findings))
    known = ERRORS.get(fault.code)
    if known is not None:
        return known(fault.message)
    hint = LOCKED.get(status, fault.hint)
    return ServerRefused(hinted(fault.message, hint), code=fault.code, status=status)


def hinted(message: str, hint: str) -> str:
    """A sentence with what to do, said once."""
    clauses = [
        clause
        for clause in hint.split("; ")
        if clause and not (AGAIN.search(clause) and AGAIN.search(message))
    ]
    return "; ".join([message, *clauses])


def away(url: str, why: object) -> ServerAway:
    said = why.strerror.lower() if isinstance(why, OSError) and why.strerror else str(why)
    reason = said or type(why).__name__
    return ServerAway(
        f"no server answers at {url} ({reason}); start one with `noetl server start`, or name "
        "another with --server"
    )
