"""The API's tokens in the database."""

from collections.abc import Sequence

from msgspec.structs import astuple

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.registers import check_added, now_ms
from noetl.ports.tokens import TokenRow


class PostgresTokens:
    """Tokens; see its contract."""

    def __init__(self, reader: PostgresReader) -> None:
        self._reader = reader

    async def add(self, row: TokenRow) -> None:
        if await self._reader.write("add_token", *astuple(row)) == 0:
            check_added(row, await self.find(row.digest))

    async def find(self, digest: str) -> TokenRow | None:
        found = await self._reader.one("find_token", digest)
        return None if found is None else TokenRow(**found)

    async def all(self) -> Sequence[TokenRow]:
        return [TokenRow(**row) for row in await self._reader.rows("all_tokens")]

    async def revoke(self, token_id: str) -> bool:
        return await self._reader.write("revoke_token", token_id, now_ms()) == 1
