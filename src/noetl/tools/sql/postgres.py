"""Runs SQL on PostgreSQL for tasks of kind `postgres`."""

import asyncio
import re
from contextlib import nullcontext
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from noetl.kinds.sql import PostgresInputs
from noetl.messages.outcome import Outcome, failed
from noetl.tools.refusal import Refusal, first_line
from noetl.tools.sql.commands import (
    Params,
    SqlTool,
    credential_of,
    no_statement,
    without_halves,
)
from noetl.tools.sql.connections import (
    Connection,
    SqlConnections,
    refuse_files,
    settings_of,
    without_the_worker_s_own,
)
from noetl.tools.sql.copying import Copy, copy_of
from noetl.tools.sql.loading import bound
from noetl.tools.sql.rows import TURN, Rows
from noetl.tools.sql.statements import Statement, is_plain_read, split, statements_of
from noetl.tools.sql.values import distinct
from noetl.tools.tool import ToolCall, Workplace

POOL = 10
CONNECT_TIMEOUT = 30.0
_CHUNK = 200


_RETRYABLE = ("08", "40", "53", "55P03", "57P")
"""Lost connections, conflicts, exhausted resources, locks not available, shutdown."""
_KINDS = (
    ("08P01", "input"),  # what was sent breaks the protocol: no repeat will fix it
    ("08", "connection"),
    ("28", "auth"),
    ("57014", "timeout"),
    ("", "postgres"),
)
"""By the beginning of the SQLSTATE; the first that fits."""
_REFUSED_USER = re.compile(
    r"password authentication failed|no password supplied|no pg_hba.conf entry"
    r"|authentication failed|role \".*\" does not exist"
)
_NO_TLS = re.compile(r"does not support SSL|certificate")
"""A server without TLS, or with a certificate that nobody vouches for, stays so."""
_MISSING_DATABASE = re.compile(r"database \".*\" does not exist")


def block_of(
    sqlstate: str | None = None, message: str | None = None, place: str | None = None
) -> dict[str, Any]:
    told = {"code": sqlstate, "sqlstate": sqlstate, "message": message, "place": place}
    return {**told, "rowcount": None}


class PostgresTool(SqlTool):
    """One pool per event loop, credential and size, opened when it is first needed."""

    empty = block_of()

    def __init__(self) -> None:
        self._pools: dict[tuple[Any, ...], SqlConnections] = {}
        self._latest: dict[tuple[Any, ...], tuple[dict[str, Any], SqlConnections]] = {}
        """What a credential was when it was last unlocked, and the pool that it led to."""

    async def close(self) -> None:
        pools = list(self._pools.values())
        self._pools.clear()
        self._latest.clear()
        for pool in pools:
            await pool.close()

    async def _command(
        self, call: ToolCall[PostgresInputs], workplace: Workplace, rows: Rows
    ) -> dict[str, Any]:
        inputs = call.inputs
        text = inputs.text
        if not statements_of(text):
            raise no_statement()
        pool = await self._pool(call, workplace)
        async with pool.lend(call.timeout.connect or CONNECT_TIMEOUT) as connection:
            params = bound(text, inputs.params)
            plain = is_plain_read(text) and inputs.rows is None and inputs.file is None
            if plain:  # the most common command: there is nothing else to look at
                rowcount = await run_one(connection, statements_of(text)[0], params, rows)
            else:
                statements, params = prepared(connection, text, params)
                copy = copy_of(call, statements, workplace.results)
                rowcount = await run_all(connection, statements, params, rows, copy)
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                raise Refusal("input", "the command leaves a transaction open; end it with COMMIT")
            if not plain and any(statement.leaves_traces for statement in statements):
                await connection.close()
        return {} if rowcount is None else {"rowcount": rowcount}

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        if isinstance(fault, psycopg.Error):
            return failure_of(fault, call.inputs.text)
        if isinstance(fault, UnicodeError):
            return failed("input", f"the command cannot be sent: {fault}")
        return super()._failure(call, fault)

    async def _pool(self, call: ToolCall[PostgresInputs], workplace: Workplace) -> SqlConnections:
        name, credential = await credential_of("postgres", call, workplace)
        loop, size = asyncio.get_running_loop(), call.pool or POOL
        known = self._latest.get((loop, size, name))
        if known is not None and known[0] == credential:
            return known[1]
        settings = settings_of(credential, name)
        place = (loop, size, *sorted(settings.items()))
        pool = self._pools.get(place)
        if pool is None:
            refuse_files(settings, name, call.private)
            settings |= without_the_worker_s_own(settings, name)
            pool = self._pools[place] = SqlConnections(settings, size)
        self._latest[loop, size, name] = (credential, pool)
        return pool


def prepared(
    connection: Connection, text: str, params: Params | None
) -> tuple[tuple[Statement, ...], Params | None]:
    """
    One statement keeps its parameters for the server to bind. The protocol has no parameters for
    several statements at once: there the driver writes them, quoted, into the text.
    """
    statements = statements_of(text)
    if params is None or len(statements) == 1:
        return statements, params
    written = psycopg.AsyncClientCursor(connection).mogrify(text.encode(), params)
    return split(written), None


async def run_all(
    connection: Connection,
    statements: tuple[Statement, ...],
    params: Params | None,
    rows: Rows,
    copy: Copy | None,
) -> int | None:
    """OUT-3: the last statement's rows go into `rows`; its rowcount where it has none."""
    *before, last = statements
    # A command may say itself where transactions begin and end.
    controlled = any(statement.controls_transaction for statement in statements)
    whole = connection.transaction() if before and not controlled else nullcontext()
    async with whole:
        for statement in before:
            await connection.execute(statement.text.encode())
        if copy is not None:
            return await copy(connection, last.text)
        return await run_one(connection, last, params, rows)


async def run_one(
    connection: Connection, statement: Statement, params: Params | None, rows: Rows
) -> int | None:
    """What certainly answers with rows is read in pieces; the rest as the driver gives it."""
    text = statement.text.encode()
    async with connection.cursor() as cursor:
        if statement.only_reads:
            async for row in cursor.stream(text, params, size=_CHUNK):
                if not rows.count:
                    rows.begin(names_in(cursor))
                rows.add(row)
                if rows.owed > TURN:
                    await rows.turn()
            return None
        await cursor.execute(text, params)
        names = names_in(cursor)
        if not names and cursor.description is None:
            return max(cursor.rowcount, 0)
        rows.begin(names)
        async for row in cursor:
            rows.add(row)
            if rows.owed > TURN:
                await rows.turn()
        return None


def names_in(cursor: psycopg.AsyncCursor[Any]) -> list[str]:
    """The names of the columns alone: the driver's description of them says much more."""
    found = cursor.pgresult
    if found is None:
        return []
    encoding = cursor.connection.info.encoding
    names = [(found.fname(number) or b"").decode(encoding) for number in range(found.nfields)]
    return names if len(set(names)) == len(names) else distinct(names)


def failure_of(fault: psycopg.Error, command: str = "") -> Outcome:
    """The outcome of a statement or a connection that failed."""
    sqlstate = fault.sqlstate or _state_in_words(fault)
    if sqlstate is None:
        return _without_state(fault)
    kind = next(kind for start, kind in _KINDS if sqlstate.startswith(start))
    retryable = kind == "timeout" or (kind != "input" and sqlstate.startswith(_RETRYABLE))
    message = fault.diag.message_primary or first_line(fault)
    hint = f"; {fault.diag.message_hint}" if fault.diag.message_hint else ""
    says = f"PostgreSQL says {sqlstate}: {message}{_place(fault)}{hint}"
    place = _excerpt(fault)
    block = block_of(sqlstate, message, place and without_halves(place, command))
    return failed(kind, says, retryable=retryable, block=block)


def _excerpt(fault: psycopg.Error) -> str | None:
    """The line of the statement, and a mark below the place of the fault."""
    lines = str(fault).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("LINE "):
            return "\n".join(lines[number : number + 2])
    return None


def _state_in_words(fault: psycopg.Error) -> str | None:
    """A refused connection carries its reason as text only."""
    if not isinstance(fault, psycopg.OperationalError):
        return None
    if _REFUSED_USER.search(str(fault)):
        return "28000"
    return "3D000" if _MISSING_DATABASE.search(str(fault)) else None


def _without_state(fault: psycopg.Error) -> Outcome:
    """The driver's own errors: either the way to the server, or what was to be sent."""
    message = first_line(fault)
    if isinstance(fault, psycopg.errors.ConnectionTimeout):
        says = f"no connection to PostgreSQL in time (connect timeout): {message}"
        return failed("timeout", says, retryable=True, block=block_of(None, message))
    if isinstance(fault, psycopg.OperationalError | psycopg.InterfaceError):
        says = f"no connection to PostgreSQL: {message}"
        retryable = not _NO_TLS.search(str(fault))
        return failed("connection", says, retryable=retryable, block=block_of(None, message))
    place = "%" in message or "placeholder" in message
    percent = "; beside params a percent sign is written %%" if place else ""
    says = f"the command cannot be sent: {message}{percent}"
    return failed("input", says, block=block_of(None, message))


def _place(fault: psycopg.Error) -> str:
    position = fault.diag.statement_position
    return f" (at character {position})" if position else ""
