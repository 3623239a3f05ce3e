"""Registered credentials in the home's database."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
from msgspec.structs import astuple

from noetl.adapters.sqlite.database import FILE, open_database, patiently
from noetl.adapters.sqlite.faults import unavailable
from noetl.adapters.sqlite.statements import FOLDER, SQL, load
from noetl.ports.credentials import SealedCredential

OWN = load((FOLDER / "credentials.sql").read_text("utf-8"))
FIELDS = SealedCredential.__struct_fields__
T = TypeVar("T")


class SqliteCredentials:
    """Credentials; see its contract. It has its own connection, opened when first asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: apsw.Connection | None = None

    def keep(self, credential: SealedCredential) -> None:
        def write(connection: apsw.Connection) -> None:
            connection.execute(OWN["create"])
            connection.execute(OWN["keep"], astuple(credential))

        self._transact(write)

    def find(self, name: str) -> SealedCredential | None:
        rows = self._rows("find", (name,))
        return _row(rows[0]) if rows else None

    def all(self) -> Sequence[SealedCredential]:
        return [_row(row) for row in self._rows("all")]

    def remove(self, name: str) -> bool:
        def write(connection: apsw.Connection) -> bool:
            connection.execute(OWN["create"])
            connection.execute(OWN["remove"], (name,))
            return connection.changes() == 1

        return self._transact(write)

    def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        def write(connection: apsw.Connection) -> int:
            connection.execute(OWN["create"])
            rows = connection.execute(OWN["all"]).fetchall()
            for row in rows:
                connection.execute(OWN["keep"], astuple(change(_row(row))))
            return len(rows)

        return self._transact(write)

    def close(self) -> None:
        """Let go of the file."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _rows(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        if self._opened is None and not (self._folder / FILE).exists():
            return []  # looking for a credential makes no home

        def read() -> list[tuple[Any, ...]]:
            connection = self._connection()
            if not connection.execute(OWN["exists"]).fetchall():
                return []
            return connection.execute(OWN[statement], parameters).fetchall()

        return self._attempt(read)

    def _transact(self, job: Callable[[apsw.Connection], T]) -> T:
        def write() -> T:
            connection = self._connection()
            connection.execute(SQL["begin"])
            try:
                answer = job(connection)
                connection.execute(SQL["commit"])
            except BaseException:
                if not connection.get_autocommit():
                    connection.execute(SQL["rollback"])
                raise
            return answer

        return self._attempt(write)

    def _attempt(self, work: Callable[[], T]) -> T:
        try:
            return patiently(work)
        except apsw.Error as error:
            raise unavailable(error, self._folder) from error

    def _connection(self) -> apsw.Connection:
        if self._opened is None:
            self._opened = open_database(self._folder)
        return self._opened


def _row(columns: tuple[Any, ...]) -> SealedCredential:
    return SealedCredential(**dict(zip(FIELDS, columns, strict=True)))
