"""Runs SQL on DuckDB for tasks of kind `duckdb`, in memory or on a file."""

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import msgspec

from noetl.kinds.sql import DuckdbInputs
from noetl.messages.outcome import Outcome, failed
from noetl.messages.reference import Reference
from noetl.ports.result_store import ResultStore
from noetl.tools.bounds import WITHOUT, Namespaces
from noetl.tools.framed_socket import PeerGone
from noetl.tools.refusal import Refusal
from noetl.tools.resources import cpu_of, memory_of
from noetl.tools.sql.commands import SqlTool, without_halves
from noetl.tools.sql.duck_paths import placed
from noetl.tools.sql.duck_processes import DuckDatabase, DuckProcesses
from noetl.tools.sql.duck_protocol import (
    DONE,
    FAILED,
    MEMORY,
    NAMES,
    REFUSED,
    DuckFault,
    DuckRequest,
)
from noetl.tools.sql.rows import Rows
from noetl.tools.sql.values import quoted
from noetl.tools.streams import json_in
from noetl.tools.tool import ToolCall, Workplace

_RETRYABLE = ("Could not set lock", "Conflict on", "write-write conflict", "HTTP Error")
"""In the words of DuckDB: what another process or transaction will soon let go."""
DIED = DuckFault(
    "ProcessDied",
    "the process of the database ended in the middle of the command: it crashed,"
    " or was killed; what it held in memory is gone",
)


class DuckFailed(Exception):
    """DuckDB refused a command, or died of it."""

    def __init__(self, fault: DuckFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class DuckDbTool(SqlTool):
    """
    A database in memory lives as long as the step run that first used it. Each database has a
    process of its own, and each call a connection, so that calls of one step run may run at once.
    """

    stopped = "interrupted"
    empty: ClassVar[dict[str, Any]] = {"exception_type": None, "message": None, "rowcount": None}

    def __init__(self, *, namespaces: Namespaces = "auto", private: Sequence[str] = ()) -> None:
        self._processes = DuckProcesses(namespaces, private)
        self._databases: dict[str, DuckDatabase] = {}
        """By step run where they are in memory, by path where they are files."""
        self._warned = False

    async def forget(self, scratch: str) -> None:
        self._drop(scratch)

    async def close(self) -> None:
        for key in list(self._databases):
            self._drop(key)
        self._processes.close()

    def _drop(self, key: str) -> None:
        database = self._databases.pop(key, None)
        if database is not None:
            database.close()

    async def _command(
        self, call: ToolCall[DuckdbInputs], workplace: Workplace, rows: Rows
    ) -> dict[str, Any]:
        named = call.inputs.database
        path = MEMORY if named in (None, MEMORY) else str(call.path(str(named)))
        text, settings = placed(call.inputs.text, call.folder, call.files), settings_of(call)
        key = call.scratch if path == MEMORY else path
        async with self._database(key, call, workplace) as database:
            spool = self._processes.folder
            async with shown_rows(call, workplace.results, spool) as view:
                params = call.inputs.params
                request = DuckRequest(path, call.files, spool, settings, text, params, view)
                return await asked(database, request, rows)

    @asynccontextmanager
    async def _database(
        self, key: str, call: ToolCall[DuckdbInputs], workplace: Workplace
    ) -> AsyncIterator[DuckDatabase]:
        """That of a file is let go after the last call, so that other processes can use it."""
        database = self._databases.get(key)
        if database is None:
            made = await self._processes.database()
            database = self._databases.setdefault(key, made)
            if database is not made:
                made.close()
        if self._processes.free and not self._warned:
            self._warned = True
            workplace.log(call, "system", WITHOUT)
        database.users += 1
        try:
            yield database
        except PeerGone:
            if self._databases.get(key) is database:
                self._drop(key)
            raise DuckFailed(DIED) from None
        finally:
            database.users -= 1
            if key != call.scratch and not database.users:
                self._drop(key)

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        if isinstance(fault, DuckFailed):
            return failure_of(fault.fault, call.inputs.text)
        if isinstance(fault, OSError) and not isinstance(fault, TimeoutError):
            says = f"the process of DuckDB cannot be started: {fault}"
            return failed("duckdb", says, retryable=True)
        return super()._failure(call, fault)


async def asked(database: DuckDatabase, request: DuckRequest, rows: Rows) -> dict[str, Any]:
    """OUT-3: the rows as they come, or their number."""
    async with database.ask(request) as answers:
        async for tag, told in answers:
            if tag == NAMES:
                rows.begin(told)
            elif tag == DONE:
                return {} if told is None else {"rowcount": told}
            elif tag == REFUSED:
                raise Refusal("input", told)
            elif tag == FAILED:
                raise DuckFailed(msgspec.convert(told, DuckFault))
            else:
                for row in told:
                    rows.add(row)
    raise PeerGone


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


def failure_of(fault: DuckFault, command: str) -> Outcome:
    """The outcome of a command that DuckDB refused."""
    message = without_halves(fault.message, command)
    block = {"exception_type": fault.exception, "message": message, "rowcount": None}
    if fault.exception == "PermissionException":
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
    call: ToolCall[DuckdbInputs], results: ResultStore, folder: str
) -> AsyncIterator[str | None]:
    """
    The statement that makes the view `rows`. Its file lives as long as the `with`, in `folder`.
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
