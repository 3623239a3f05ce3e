"""Runs SQL on DuckDB for tasks of kind `duckdb`, in memory or on a file."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import duckdb
import msgspec

from noetl.kinds.sql import DuckdbInputs
from noetl.messages.outcome import Outcome, failed
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.refusal import Refusal
from noetl.tools.resources import cpu_of, memory_of
from noetl.tools.sql.commands import Params, SqlTool, ThreadedWork, no_statement
from noetl.tools.sql.duck_paths import placed
from noetl.tools.sql.rows import Rows
from noetl.tools.sql.values import distinct, json_text, plain, quoted
from noetl.tools.streams import json_in
from noetl.tools.tool import ToolCall, Workplace

THREADS = 4
_INTERRUPT_EVERY = 0.05
_MEMORY = ":memory:"
_CONFIG: dict[str, str | bool | int | float | list[str]] = {"autoinstall_known_extensions": "false"}
_RETRYABLE = ("Could not set lock", "Conflict on", "write-write conflict", "HTTP Error")
"""In the words of DuckDB: what another process or transaction will soon let go."""
_COUNTS = {("Count", "BIGINT"), ("Success", "BOOLEAN")}
"""How DuckDB answers a statement that has no rows to show."""
_UNREADABLE = ("TIME ZONE", "INTERVAL")
"""Types that the driver returns inexactly, or only with another package: read as text."""

Done = TypeVar("Done")


class Database(msgspec.Struct, frozen=True):
    """A connection; `spool` holds what it writes on the way, where files are bounded."""

    connection: duckdb.DuckDBPyConnection
    spool: str | None = None

    def close(self) -> None:
        self.connection.close()
        if self.spool is not None:
            shutil.rmtree(self.spool, ignore_errors=True)


class DuckDbTool(SqlTool):
    """
    A database in memory lives as long as the step run that first used it. Each call has a
    connection of its own, so that calls of one step run may run at once.
    """

    stopped = "interrupted"
    empty: ClassVar[dict[str, Any]] = {"exception_type": None, "message": None, "rowcount": None}

    def __init__(self) -> None:
        self._in_memory: dict[str, Database] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="duckdb")

    async def forget(self, scratch: str) -> None:
        database = self._in_memory.pop(scratch, None)
        if database is not None:
            database.close()

    async def close(self) -> None:
        for scratch in list(self._in_memory):
            await self.forget(scratch)
        self._threads.shutdown(wait=False)

    async def _command(
        self, call: ToolCall[DuckdbInputs], workplace: Workplace, rows: Rows
    ) -> dict[str, Any]:
        text = placed(call.inputs.text, call.folder, call.files)
        async with (
            self._database(call) as database,
            shown_rows(call, workplace.results, database.spool) as view,
        ):
            threaded = partial(self._in_thread, database.connection)
            work = DuckWork(database.connection, text, call.inputs.params, view)
            await threaded(work.run)
            return await work.answer(rows, threaded)

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        if isinstance(fault, duckdb.Error):
            return failure_of(fault)
        return super()._failure(call, fault)

    @asynccontextmanager
    async def _database(self, call: ToolCall[DuckdbInputs]) -> AsyncIterator[Database]:
        """A file is let go after each call, so that other processes can use it."""
        in_memory = call.inputs.database in (None, _MEMORY)
        if in_memory:
            if call.scratch not in self._in_memory:
                self._in_memory[call.scratch] = opened(_MEMORY, call.files)
            kept = self._in_memory[call.scratch]
            database = Database(kept.connection.cursor(), kept.spool)
        else:
            opening = partial(opened, str(call.path(str(call.inputs.database))), call.files)
            loop = asyncio.get_running_loop()
            database = await loop.run_in_executor(self._threads, opening)
        try:
            for setting, value in settings_of(call).items():
                database.connection.execute(f"SET {setting} = $1", [value])
            yield database
        finally:
            (database.connection if in_memory else database).close()

    async def _in_thread(
        self, connection: duckdb.DuckDBPyConnection, work: Callable[[], Done]
    ) -> Done:
        """Cancelling waits until the thread has let go of the connection."""
        running = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not running.done():  # an interrupt before the query begins has no effect
                connection.interrupt()
                await asyncio.wait([running], timeout=_INTERRUPT_EVERY)
            running.exception()
            raise


def opened(path: str, root: str | None) -> Database:
    """Below a root the database itself refuses every other file, for as long as it lives."""
    connection = duckdb.connect(path, config=_CONFIG)
    if root is None:
        return Database(connection)
    spool = tempfile.mkdtemp(prefix="noetl-duckdb-")
    connection.execute("SET allowed_directories = $1", [[str(Path(root).resolve()), spool]])
    connection.execute("SET temp_directory = $1", [spool])
    connection.execute("SET enable_external_access = false")
    return Database(connection, spool)


def settings_of(call: ToolCall[Any]) -> dict[str, Any]:
    """TASK-11: `resources` bound memory and threads; relative files start at the playbook."""
    settings: dict[str, Any] = {}
    memory, cpu = memory_of(call.resources), cpu_of(call.resources, "a number such as 2")
    if memory is not None:
        settings["memory_limit"] = f"{memory}B"
    if cpu is not None:
        settings["threads"] = max(1, int(cpu))  # a part of a processor still needs one
    if call.folder is not None:
        settings["file_search_path"] = call.folder
    return settings


def failure_of(fault: duckdb.Error) -> Outcome:
    """The outcome of a command that DuckDB refused."""
    message = str(fault).strip()
    block = {"exception_type": type(fault).__name__, "message": message, "rowcount": None}
    if isinstance(fault, duckdb.PermissionException):
        says = f"{message}; the worker's setting 'files' bounds what tools may reach"
        return failed("input", f"DuckDB says: {says}", block=block)
    retryable = any(words in message for words in _RETRYABLE)
    return failed("duckdb", f"DuckDB says: {message}", retryable=retryable, block=block)


_NEVER = "'\x01%Y'"
_AS_IT_IS = (
    "format = 'array'",
    "sample_size = -1",  # every row has a say in what its column is
    "map_inference_threshold = -1",
    f"dateformat = {_NEVER}",  # text stays text; a cast, or the target's column, makes it a date
    f"timestampformat = {_NEVER}",
)


@asynccontextmanager
async def shown_rows(
    call: ToolCall[DuckdbInputs], results: ResultStore, folder: str | None
) -> AsyncIterator[str | None]:
    """
    The statement that makes the view `rows`. Its file lives as long as the `with`, in `folder` or
    in the system's place for such.
    """
    rows, columns = call.inputs.rows, call.inputs.columns
    if rows is None:
        if columns is not None:
            raise Refusal("input", "'columns' describes 'rows', which are missing")
        yield None
        return
    if not isinstance(rows, list | Reference):
        raise Refusal("input", "'rows' is not a list of mappings, which was expected")
    handle, path = tempfile.mkstemp(prefix="noetl-rows-", suffix=".json", dir=folder)
    os.close(handle)
    try:
        try:
            with open(path, "wb") as file:
                async for piece in json_in(rows, results):
                    await asyncio.to_thread(file.write, piece)
        except OSError as fault:
            says = f"cannot write the rows to {path}: {fault.strerror}"
            raise Refusal("internal", says, retryable=True) from None
        yield view_of(path, columns)
    finally:
        os.unlink(path)


def view_of(path: str, columns: Mapping[str, str] | None) -> str:
    """The statement after which `rows` is a table of this connection."""
    options = list(_AS_IT_IS)
    if columns:
        typed = ", ".join(f"{quoted(name)}: {quoted(kind)}" for name, kind in columns.items())
        options[1:] = [f"columns = {{{typed}}}"]
    return (
        f"create or replace temp view rows as from read_json({quoted(path)}, {', '.join(options)})"
    )


class DuckWork(ThreadedWork):
    """Runs the statements of a command, after the one that makes the view of its rows."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, text: str, params: Params, view: str | None
    ) -> None:
        super().__init__(connection, text, params)
        self._view = view

    def run(self) -> None:
        statements = self._cursor.extract_statements(self._text)
        if not statements:
            raise no_statement()
        shares = dealt(statements, self._params)
        if self._view is not None:
            self._cursor.execute(self._view)
        for statement, share in zip(statements, shares, strict=True):
            self._cursor.execute(statement, share)
        self._look_at(statements[-1], shares[-1])

    def _look_at(self, last: duckdb.Statement, share: Params) -> None:
        columns = [(str(name), str(kind)) for name, kind, *_ in self._cursor.description or ()]
        if last.type != duckdb.StatementType.SELECT and (not columns or columns[0] in _COUNTS):
            counted = self._cursor.fetchall() if columns else []
            self.rowcount = sum(row[0] for row in counted if type(row[0]) is int)
            return
        self.names = distinct(name for name, _ in columns)
        kinds = [kind for _, kind in columns]
        hidden = [any(part in kind for part in _UNREADABLE) for kind in kinds]
        if last.type == duckdb.StatementType.SELECT and any(hidden):
            self._cursor.execute(spelled_out(last.query, hidden), share)
        else:
            hidden = [False] * len(kinds)
        self._readers = [
            _spelled(kind) if spelled else json_text if kind == "JSON" else plain
            for kind, spelled in zip(kinds, hidden, strict=True)
        ]


def spelled_out(query: str, hidden: Sequence[bool]) -> str:
    """The same rows, with the columns that the driver cannot read exactly as JSON text."""
    names = [f"c{number}" for number in range(len(hidden))]
    shown = [
        f"to_json({name})::varchar" if spell else name
        for name, spell in zip(names, hidden, strict=True)
    ]
    source = query.strip().rstrip(";")
    return f"select {', '.join(shown)} from (\n{source}\n) _ ({', '.join(names)})"


def dealt(statements: Sequence[duckdb.Statement], params: Params) -> list[Params]:
    """Each statement's own parameters: by name, or as many of the list as it has places for."""
    if len(statements) == 1:
        return [params]
    if isinstance(params, dict):
        return [
            {name: value for name, value in params.items() if name in statement.named_parameters}
            for statement in statements
        ]
    shares, rest = [], list(params)
    for statement in statements:
        places = len(statement.named_parameters)
        shares.append(rest[:places])
        rest = rest[places:]
    if rest:
        says = f"'params' has {len(rest)} more values than the statements have places"
        raise Refusal("input", says)
    return list(shares)


def _spelled(kind: str) -> Callable[[Any], Any]:
    return _moment if kind == "TIMESTAMP WITH TIME ZONE" else json_text


def _moment(value: Any) -> Any:
    text = json_text(value)
    try:
        return text and datetime.fromisoformat(text).isoformat()
    except ValueError:  # infinity, or a year that Python's calendar does not know
        return text
