"""The file `noetl.db` of a home: opened, created, brought up to date, or refused untouched."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import apsw
from msgspec.structs import astuple

from noetl.adapters.sqlite.faults import unavailable
from noetl.adapters.sqlite.locks import FILE, Locks
from noetl.adapters.sqlite.statements import MIGRATIONS, SQL
from noetl.errors import LogUnavailable
from noetl.messages.names import NAMES
from noetl.private import private_folder, private_in_place

VERSION = len(MIGRATIONS)
"""A change of the table of names needs a migration too, and be it an empty one."""
CHECKPOINT_PAGES = 4000
CACHE_KIB = 16_000
"""A batch of a thousand executions touches as many pages of the index: they fit."""

Parameters = dict[str, Any] | tuple[Any, ...]


def rows_of(
    connection: apsw.Connection, statement: str, parameters: Parameters = ()
) -> list[tuple[Any, ...]]:
    """All rows of a statement of this name."""
    return connection.execute(SQL[statement], parameters).fetchall()


def write(connection: apsw.Connection, statement: str, parameters: Parameters) -> int:
    """Run the statement of this name; the answer is how many rows it touched."""
    connection.execute(SQL[statement], parameters)
    return connection.changes()


def open_database(folder: Path, locks: Locks | None = None) -> apsw.Connection:
    """The connection that writes; the home and its tables are created where they are missing."""
    try:
        private_folder(folder)
    except OSError as refused:
        raise LogUnavailable(
            f"the home {folder} cannot be created: {refused.strerror or refused}; "
            "set NOETL_HOME to a folder that can be written"
        ) from refused
    try:
        return (locks or Locks(folder)).patiently(lambda: _opened(folder))
    except apsw.Error as error:
        raise unavailable(error, folder) from error


def may_be_written(folder: Path) -> bool:
    """Whether this process may write the home and its file."""
    return all(os.access(path, os.W_OK) for path in (folder, folder / FILE))


def open_to_look(folder: Path, locks: Locks) -> apsw.Connection:
    """A home that may not be written, for whoever only reads."""
    try:
        connection = locks.patiently(lambda: _unwritable(folder / FILE))
        version = int(connection.pragma("user_version"))
    except apsw.Error as error:
        raise unavailable(error, folder) from error
    if version != VERSION:
        connection.close()
        _refuse_newer(version, folder)
        raise LogUnavailable(
            f"{folder / FILE} has format {version}, this program reads {VERSION}, and the home is "
            "read-only; make it writable and try again: it is brought up to date then"
        )
    return connection


def open_reader(folder: Path) -> apsw.Connection:
    """A connection that only reads, beside the one that writes."""
    if not may_be_written(folder):
        return _unwritable(folder / FILE)
    connection = apsw.Connection(str(folder / FILE), flags=apsw.SQLITE_OPEN_READWRITE)
    connection.execute("pragma query_only = on")
    return connection


def _unwritable(path: Path) -> apsw.Connection:
    """
    Nothing is made beside the file, which SQLite would do to find its way in a journal.

    Without a journal the file is all there is, and nobody changes it. With one, its index is
    read if it is there, and else built in memory, which takes that nobody asks for locks.
    """
    journal, index = (path.with_name(f"{path.name}-{end}") for end in ("wal", "shm"))
    how = "immutable=1" if not journal.exists() else "" if index.exists() else "vfs=unix-none"
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(str(path))}?mode=ro&{how}", flags=flags)
    if how == "vfs=unix-none":
        connection.execute("pragma locking_mode = exclusive")
    return connection


def _opened(folder: Path) -> apsw.Connection:
    _refuse_newer(_version_on_disk(folder / FILE), folder)
    private_in_place(folder / FILE)  # the journal and its index get the mode of the file
    connection = apsw.Connection(str(folder / FILE))
    try:
        # The version may still stand in the journal alone: until it is known nothing may change,
        # not even by closing.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        version = _check_version(connection, folder)
        if connection.readonly("main"):
            raise apsw.ReadOnlyError("the file is read-only")
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        connection.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"pragma cache_size = -{CACHE_KIB}")
        if version < VERSION:
            _migrate(connection, folder)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: apsw.Connection, folder: Path) -> int:
    version = int(connection.pragma("user_version"))
    _refuse_newer(version, folder)
    if version == 0 and connection.execute("select 1 from sqlite_schema limit 1").fetchall():
        created = int(connection.pragma("user_version"))
        if created != 0:
            return created  # by another process, in between
        raise LogUnavailable(
            f"{folder / FILE} is a database of something else; move it away, or set NOETL_HOME "
            "to another folder"
        )
    return version


def _version_on_disk(path: Path) -> int:
    """`user_version` as the file's head has it: opening a journal would leave files behind."""
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError:
        return 0  # SQLite will say what is wrong
    return int.from_bytes(head[60:64]) if head.startswith(b"SQLite format 3") else 0


def _refuse_newer(version: int, folder: Path) -> None:
    if version > VERSION:
        raise LogUnavailable(
            f"{folder / FILE} has format {version}, this program knows {VERSION}: it was written "
            "by a newer NoETL and is left untouched; update NoETL, or set NOETL_HOME to another "
            "folder"
        )


def _migrate(connection: apsw.Connection, folder: Path) -> None:
    """All in one transaction; whoever comes second finds it done."""
    connection.execute(SQL["begin"])
    try:
        version = _check_version(connection, folder)
        if version < VERSION:
            for migration in MIGRATIONS[version:]:
                connection.execute(migration.read_text("utf-8"))
            connection.execute(SQL["unname_events"])
            connection.executemany(
                SQL["name_event"], [(name, *astuple(NAMES[name])) for name in NAMES]
            )
            connection.execute(f"pragma user_version = {VERSION}")
        connection.execute(SQL["commit"])
    except BaseException:
        if not connection.get_autocommit():
            connection.execute(SQL["rollback"])
        raise
