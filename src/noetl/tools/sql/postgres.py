"""Runs SQL on PostgreSQL for tasks of kind `postgres`."""

import asyncio
from contextlib import nullcontext
from typing import Any

import msgspec
import psycopg
from psycopg.pq import TransactionStatus

from noetl.errors import CredentialMissing
from noetl.kinds.sql import PostgresInputs
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.refusal import Refusal, unforeseen
from noetl.tools.sql.cargo import Cargo, cargo_of
from noetl.tools.sql.connections import Connection, SqlConnections, settings_of
from noetl.tools.sql.copying import run_copy
from noetl.tools.sql.loading import bound
from noetl.tools.sql.rows import Rows
from noetl.tools.sql.sqlstate import block_of, failure_of
from noetl.tools.sql.statements import Statement, split, statements_of
from noetl.tools.sql.values import distinct
from noetl.tools.tool import ToolCall, Workplace

POOL = 10
CONNECT_TIMEOUT = 30.0
_CHUNK = 200

Params = list[Any] | dict[str, Any] | None


class PostgresTool:
    """One pool per event loop, credential and size, opened when it is first needed."""

    keeps_time = True

    def __init__(self) -> None:
        self._pools: dict[tuple[Any, ...], SqlConnections] = {}

    async def call(self, call: ToolCall[PostgresInputs], workplace: Workplace) -> Outcome:
        rows = Rows(call, workplace.results)
        try:
            async with asyncio.timeout(call.timeout.total):
                outcome = await self._run(call, workplace, rows)
        except Refusal as refusal:
            outcome = refusal.outcome
        except CredentialMissing as missing:
            outcome = failed("auth", str(missing))
        except psycopg.Error as fault:
            outcome = failure_of(fault)
        except TimeoutError:
            says = f"the command was not done in time (total timeout of {call.timeout.total:g} s)"
            outcome = failed("timeout", f"{says} and was cancelled", retryable=True)
        except UnicodeError as fault:
            outcome = failed("input", f"the command cannot be sent: {fault}")
        except Exception as fault:
            outcome = unforeseen(fault)
        finally:
            await rows.discard()
        return outcome if outcome.block else msgspec.structs.replace(outcome, block=block_of())

    async def forget(self, scratch: str) -> None:
        """Nothing lives for a step run."""

    async def close(self) -> None:
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await pool.close()

    async def _run(
        self, call: ToolCall[PostgresInputs], workplace: Workplace, rows: Rows
    ) -> Outcome:
        text = command_of(call.inputs)
        pool = await self._pool(call, workplace)
        async with pool.lend(call.timeout.connect or CONNECT_TIMEOUT) as connection:
            params = bound(text, call.inputs.params)
            statements, params = prepared(connection, text, params)
            cargo = cargo_of(call, statements, workplace.results)
            rowcount = await run_all(connection, statements, params, rows, cargo)
            if connection.info.transaction_status != TransactionStatus.IDLE:
                raise Refusal("input", "the command leaves a transaction open; end it with COMMIT")
            if any(statement.leaves_traces for statement in statements):
                await connection.close()
        if rowcount is not None:
            return ok({"rowcount": rowcount}, block=block_of(rowcount=rowcount))
        return ok(await rows.finish(), block=block_of(rowcount=rows.count))

    async def _pool(self, call: ToolCall[PostgresInputs], workplace: Workplace) -> SqlConnections:
        name = call.inputs.auth
        if name is None:
            raise Refusal("input", "postgres needs 'auth', the name of a credential")
        settings = settings_of(await workplace.unlock(name), name)
        size = call.pool or POOL
        place = (asyncio.get_running_loop(), size, *sorted(settings.items()))
        pool = self._pools.get(place)
        if pool is None:
            pool = self._pools[place] = SqlConnections(settings, size)
        return pool


def command_of(inputs: PostgresInputs) -> str:
    """TOOL-0: `command`, or `query`, which is the same."""
    text = inputs.command if inputs.command is not None else inputs.query
    statements = statements_of(text) if text is not None else ()
    if text is None or not statements:
        raise Refusal("input", "the command holds no statement; give SQL in 'command' or 'query'")
    return text


def prepared(
    connection: Connection, text: str, params: Params
) -> tuple[tuple[Statement, ...], Params]:
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
    params: Params,
    rows: Rows,
    cargo: Cargo | None,
) -> int | None:
    """OUT-3: the last statement's rows go into `rows`; its rowcount where it has none."""
    *before, last = statements
    whole = connection.transaction() if before and not controlled(statements) else nullcontext()
    async with whole:
        for statement in before:
            await connection.execute(statement.text.encode())
        if cargo is not None:
            return await run_copy(connection, last.text, cargo)
        return await run_one(connection, last, params, rows)


def controlled(statements: tuple[Statement, ...]) -> bool:
    """Whether the command itself says where transactions begin and end."""
    return any(statement.controls_transaction for statement in statements)


async def run_one(
    connection: Connection, statement: Statement, params: Params, rows: Rows
) -> int | None:
    """What certainly answers with rows is read in pieces; the rest as the driver gives it."""
    text = statement.text.encode()
    async with connection.cursor() as cursor:
        if statement.only_reads:
            async for row in cursor.stream(text, params, size=_CHUNK):
                if not rows.count:
                    rows.begin(distinct(column.name for column in cursor.description or ()))
                rows.add(row)
            return None
        await cursor.execute(text, params)
        if cursor.description is None:
            return max(cursor.rowcount, 0)
        rows.begin(distinct(column.name for column in cursor.description))
        async for row in cursor:
            rows.add(row)
        return None
