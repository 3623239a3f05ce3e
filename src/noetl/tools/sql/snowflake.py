"""Runs SQL on Snowflake for tasks of kind `snowflake`."""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from itertools import islice
from typing import Any, ClassVar

import msgspec

from noetl.kinds.sql import SnowflakeInputs
from noetl.messages.outcome import Outcome, failed
from noetl.tools.refusal import Refusal, needs_extra
from noetl.tools.sql.commands import (
    Params,
    SqlTool,
    ThreadedWork,
    credential_of,
    no_statement,
)
from noetl.tools.sql.rows import Rows
from noetl.tools.sql.statements import statements_of
from noetl.tools.sql.values import distinct, json_text, plain
from noetl.tools.streams import elements_of
from noetl.tools.threads import fetched, in_thread
from noetl.tools.tool import ToolCall, Workplace

POOL = 8
CONNECT_TIMEOUT, READ_TIMEOUT = 30.0, 300.0
_FIELDS = (
    *("account", "user", "password", "host", "port", "protocol", "role", "warehouse"),
    *("database", "schema", "authenticator", "token", "passcode", "region"),
)
_AUTHENTICATORS = (
    *("snowflake", "oauth", "snowflake_jwt", "username_password_mfa"),
    "programmatic_access_token",
)
"""Others open a browser on the worker, or show a server the account of the machine."""
_PLACE = ("database", "schema", "warehouse", "role")
"""What the task may say over the credential."""
BATCH = 1000
_SEMISTRUCTURED = frozenset({5, 9, 10})
"""Type codes of VARIANT, OBJECT and ARRAY, which arrive as JSON text."""
_ASKS = frozenset(
    (
        *("select", "with", "show", "describe", "desc", "values"),
        *("call", "list", "ls", "explain", "copy"),
    )
)
"""First words of statements whose answer is rows and no report about rows."""
_SESSION = frozenset({"use", "set", "unset", "begin", "start"})
_MOVES = frozenset({"schema", "database", "temp", "temporary", "session"})
"""Creating or dropping these changes where the session stands, or what it alone sees."""


class SnowflakeTool(SqlTool):
    """Connections are kept per credential and place; one serves one call at a time."""

    empty: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("code", "sqlstate", "message", "rowcount", "query_id")
    )

    def __init__(self) -> None:
        self._idle: dict[tuple[Any, ...], list[Any]] = {}
        self._free: dict[tuple[Any, ...], asyncio.Semaphore] = {}
        self._traced: set[Any] = set()
        """Connections whose session is no longer as it was opened."""

    async def close(self) -> None:
        connections = [one for idle in self._idle.values() for one in idle]
        self._idle.clear()
        for connection in connections:
            await _hang_up(connection)

    async def _command(
        self, call: ToolCall[SnowflakeInputs], workplace: Workplace, rows: Rows
    ) -> dict[str, Any]:
        inputs = call.inputs
        settings = settings_of(call, *await credential_of("snowflake", call, workplace))
        async with self._connection(settings, call.pool or POOL) as connection:
            work = SnowWork(connection, inputs.text, inputs.params)
            threaded = partial(in_thread, stop=work.abort)
            if inputs.rows is None:
                await threaded(work.run)
            else:
                given = fetched(elements_of(inputs.rows, workplace.results, "rows"), BATCH)
                await threaded(partial(work.run_each, given))
            if work.leaves_traces:
                self._traced.add(connection)
            return {"query_id": work.query_id, **await work.answer(rows, threaded)}

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        if type(fault).__module__.startswith("snowflake.") and hasattr(fault, "errno"):
            return failure_of(fault)
        return super()._failure(call, fault)

    @asynccontextmanager
    async def _connection(self, settings: dict[str, Any], size: int) -> AsyncIterator[Any]:
        """After a fault the connection is given up: who knows what its session holds."""
        loop = asyncio.get_running_loop()
        place = (loop, size, *sorted((name, str(value)) for name, value in settings.items()))
        async with self._free.setdefault(place, asyncio.Semaphore(size)):
            idle = self._idle.setdefault(place, [])
            connection = idle.pop() if idle else await connected(settings)
            try:
                yield connection
            except asyncio.CancelledError:
                raise  # whoever stopped the work hangs up
            except Exception:
                await _hang_up(connection)
                raise
            if place not in self._idle or connection in self._traced:
                self._traced.discard(connection)
                await _hang_up(connection)
            else:
                idle.append(connection)


async def connected(settings: dict[str, Any]) -> Any:
    """A session of its own; who gives up before it is there leaves it to close itself."""
    try:
        from snowflake.connector import connect
    except ImportError:
        raise needs_extra("'snowflake'", "snowflake") from None
    given_up: list[bool] = []

    def opening() -> Any:
        connection = connect(**settings)
        if given_up:
            _close(connection)
        return connection

    return await in_thread(opening, lambda: given_up.append(True))


async def _hang_up(connection: Any) -> None:
    await in_thread(partial(_close, connection), lambda: None)


def _close(connection: Any) -> None:
    with suppress(Exception):  # it is given up, whatever it says to that
        connection.close()


def settings_of(
    call: ToolCall[SnowflakeInputs], name: str, credential: Mapping[str, Any]
) -> dict[str, Any]:
    """How to connect (KEY-1); what the task says about the place goes before the credential."""
    settings: dict[str, Any] = {
        name: credential[name] for name in _FIELDS if credential.get(name) is not None
    }
    settings |= {
        name: value for name in _PLACE if (value := getattr(call.inputs, name)) is not None
    }
    authenticator = str(settings.get("authenticator") or "snowflake").lower()
    if authenticator not in _AUTHENTICATORS and not authenticator.startswith("https://"):
        says = f"credential '{name}' has the authenticator {authenticator!r:.80}; expected"
        raise Refusal("auth", f"{says} {', '.join(_AUTHENTICATORS)}, or the https address of Okta")
    if not settings.get("account") or not settings.get("user"):
        says = f"credential '{name}' cannot be used for snowflake; expected the fields"
        raise Refusal("auth", f"{says} account, user, and password, private_key or token")
    if credential.get("private_key"):
        settings["private_key"] = key_of(credential, name)
    connect_timeout = call.timeout.connect or CONNECT_TIMEOUT
    return settings | {
        "login_timeout": max(1, round(connect_timeout)),
        "network_timeout": max(1, round(call.timeout.read or READ_TIMEOUT)),
        "session_parameters": {"CLIENT_TELEMETRY_ENABLED": False},
    }


def key_of(credential: Mapping[str, Any], name: str) -> bytes:
    """A private key in PEM, as the connector takes it."""
    from cryptography.hazmat.primitives import serialization as form

    passphrase = credential.get("private_key_passphrase")
    try:
        key = form.load_pem_private_key(
            str(credential["private_key"]).encode(),
            password=str(passphrase).encode() if passphrase else None,
        )
    except (ValueError, TypeError):  # their messages may quote the key
        says = f"the private_key of credential '{name}' cannot be read; expected PEM"
        raise Refusal("auth", says) from None
    return key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())


PERCENT = "beside params a percent sign is written %%"
_REFUSED = re.compile(
    r"incorrect username or password|authentication|password is empty|user is empty|"
    r"jwt token is invalid|account is empty|is not allowed to access|token .*expired",
    re.IGNORECASE,
)
_KINDS = (
    (range(390_100, 390_400), "auth"),
    (range(250_001, 250_010), "connection"),
    (range(251_001, 251_020), "auth"),
    (range(290_400, 290_600), "connection"),
)
"""By the number; what is not here is an answer to the statement."""
_ENDED = frozenset({604, 630})
"""Cancelled, or the statement's own timeout."""
_RETRYABLE_STATES = ("08", "40", "57")


def failure_of(fault: Any) -> Outcome:
    """The outcome of a statement or a connection that failed, from the connector's `Error`."""
    number = fault.errno if isinstance(fault.errno, int) and fault.errno > 0 else 0
    state = fault.sqlstate if fault.sqlstate and fault.sqlstate != "n/a" else None
    message = str(fault.raw_msg or fault.msg or fault).strip().partition("\n")[0]
    kind = kind_of(number, message)
    retryable = kind in ("connection", "timeout") or (
        kind == "snowflake" and (state or "").startswith(_RETRYABLE_STATES)
    )
    told = {"sqlstate": state, "message": message, "query_id": fault.sfqid}
    block = {**SnowflakeTool.empty, "code": f"{number:06d}" if number else None, **told}
    return failed(kind, f"Snowflake says {message}", retryable=retryable, block=block)


def kind_of(number: int, message: str) -> str:
    if number in _ENDED:
        return "timeout"
    kind = next((kind for numbers, kind in _KINDS if number in numbers), "snowflake")
    # A login that was refused comes with the number of a connection that failed.
    return "auth" if kind == "connection" and _REFUSED.search(message) else kind


class SnowWork(ThreadedWork):
    """Runs the statements of a command, or one of them for each of many rows."""

    def __init__(self, connection: Any, text: str, params: Params) -> None:
        super().__init__(connection.cursor(without_files()), text, params)
        self._connection = connection

    @property
    def query_id(self) -> str | None:
        found = self._cursor.sfqid
        return None if found is None else str(found)

    def run(self) -> None:
        statements = split(self._text)
        if len(statements) > 1 and isinstance(self._params, list) and self._params:
            raise Refusal("input", "several statements need 'params' as a mapping, by name")
        params = bindable(self._params) or None
        for statement in statements:
            try:
                self._cursor.execute(statement, params)
            except (KeyError, TypeError, ValueError) as wrong:  # of the connector's own formatting
                if params is None:
                    raise
                says = f"the params do not fit the statement: {wrong}"
                raise Refusal("input", f"{says}; {PERCENT}") from None
        self._look_at(statements[-1])

    def run_each(self, rows: Iterator[Any]) -> None:
        """The statement for every row, in batches and as one transaction."""
        statements = split(self._text)
        if len(statements) > 1:
            raise Refusal("input", "'rows' need one statement; put the others into own tasks")
        if self._params:
            raise Refusal("input", "'params' and 'rows' are both set; give only one of them")
        self.rowcount = 0
        self._cursor.execute("BEGIN")
        try:
            while batch := [bindable(row) for row in islice(rows, BATCH)]:
                self._cursor.executemany(statements[0], batch)
                self.rowcount += max(self._cursor.rowcount or 0, 0)
        except BaseException:
            self._cursor.execute("ROLLBACK")
            raise
        self._cursor.execute("COMMIT")

    @property
    def leaves_traces(self) -> bool:
        """Changes the session beyond the call, so that the connection is not used again."""
        return any(
            one.first in _SESSION
            or (one.first in ("create", "drop", "undrop", "alter") and one.words & _MOVES)
            for one in statements_of(self._text)
        )

    def abort(self) -> None:
        """From another thread: let the server stop, then hang up."""
        with suppress(Exception):  # whatever it is, the connection is given up
            self._connection._cancel_query(self._text, self._cursor._request_id)
        with suppress(Exception):
            self._connection.close()

    def _look_at(self, last: str) -> None:
        columns = [(str(one.name), one.type_code) for one in self._cursor.description or ()]
        words = statements_of(last)
        if not words or words[0].first not in _ASKS:
            reports = any(name.lower().startswith("number of ") for name, _ in columns)
            self.rowcount = max(self._cursor.rowcount or 0, 0) if reports else 0
            return
        self.names = distinct(name for name, _ in columns)
        self._readers = [json_text if kind in _SEMISTRUCTURED else plain for _, kind in columns]


def split(text: str) -> list[str]:
    """The statements, as the connector tells them apart; it sends one at a time."""
    from snowflake.connector.util_text import split_statements

    found = [
        (statement, moves_file)
        for statement, moves_file in split_statements(io.StringIO(text), remove_comments=True)
        if statement and statements_of(statement)
    ]
    if not found:
        raise no_statement()
    if any(moves_file for _, moves_file in found):
        raise _no_files()
    return [statement for statement, _ in found]


def _no_files() -> Refusal:
    says = "PUT and GET move files of the worker, which is not allowed"
    return Refusal("input", f"{says}; put the file by 's3' or 'gcs' and load it with COPY INTO")


@cache
def without_files() -> type[Any]:
    """
    A cursor that moves no files, whatever a server answers.

    The connector uploads and downloads the files that the answer names, to whatever statement: the
    text alone does not tell, and the server is one that a playbook may name.
    """
    from snowflake.connector.cursor import SnowflakeCursor

    class WithoutFiles(SnowflakeCursor):
        def _create_file_transfer_agent(self, *_: Any, **__: Any) -> Any:
            raise _no_files()

    return WithoutFiles


def bindable(values: Any) -> Any:
    """Parameters as the connector takes them: mappings go as JSON text."""
    if isinstance(values, dict):
        return {name: _bindable(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_bindable(value) for value in values]
    raise Refusal("input", f"a row is {values!r:.80}; expected a mapping or a list")


def _bindable(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value
