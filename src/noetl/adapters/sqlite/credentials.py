"""Registered credentials in the home's database."""

from collections.abc import Callable, Sequence
from typing import Any

import apsw
from msgspec.structs import astuple

from noetl.adapters.sqlite.database import rows_of, write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.credentials import SealedCredential

FIELDS = SealedCredential.__struct_fields__


class SqliteCredentials:
    """Credentials; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def keep(self, credential: SealedCredential) -> None:
        row = astuple(credential)
        await self._writer.transact(lambda home: write(home, "keep_credential", row))

    async def find(self, name: str) -> SealedCredential | None:
        rows = await self._reader.rows("find_credential", (name,))
        return _row(rows[0]) if rows else None

    async def all(self) -> Sequence[SealedCredential]:
        return [_row(row) for row in await self._reader.rows("all_credentials")]

    async def remove(self, name: str) -> bool:
        row = (name,)
        removed = await self._writer.transact(lambda home: write(home, "remove_credential", row))
        return removed == 1

    async def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        def rewrite(connection: apsw.Connection) -> int | Exception:
            try:
                changed = [change(_row(row)) for row in rows_of(connection, "all_credentials")]
            except Exception as broken:
                return broken  # before anything was written
            for credential in changed:
                write(connection, "keep_credential", astuple(credential))
            return len(changed)

        answer = await self._writer.transact(rewrite)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _row(columns: tuple[Any, ...]) -> SealedCredential:
    return SealedCredential(**dict(zip(FIELDS, columns, strict=True)))
