"""The API's tokens in the home's database."""

from collections.abc import Sequence

import apsw
from msgspec.structs import astuple

from noetl.adapters.registers import check_added, now_ms
from noetl.adapters.sqlite.database import write
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.writer import SqliteWriter
from noetl.ports.tokens import TokenRow

FIELDS = TokenRow.__struct_fields__


class SqliteTokens:
    """Tokens; see its contract."""

    def __init__(self, writer: SqliteWriter, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def add(self, row: TokenRow) -> None:
        def add(connection: apsw.Connection) -> int:
            return write(connection, "add_token", astuple(row))

        if await self._writer.transact(add) == 0:
            check_added(row, await self.find(row.digest))

    async def find(self, digest: str) -> TokenRow | None:
        found = await self._rows("find_token", digest)
        return found[0] if found else None

    async def all(self) -> Sequence[TokenRow]:
        return await self._rows("all_tokens")

    async def revoke(self, token_id: str) -> bool:
        def revoke(connection: apsw.Connection) -> bool:
            return write(connection, "revoke_token", (now_ms(), token_id)) == 1

        return await self._writer.transact(revoke)

    async def _rows(self, statement: str, *parameters: str) -> list[TokenRow]:
        rows = await self._reader.rows(statement, parameters)
        return [TokenRow(**dict(zip(FIELDS, row, strict=True))) for row in rows]
