"""Which process decides for which execution."""

from noetl.adapters.postgres.reader import PostgresReader
from noetl.adapters.postgres.writer import PostgresWriter
from noetl.errors import ExecutionNotFound, HomeInUse
from noetl.ports.event_log import Adoption


class PostgresOwners:
    """Owners; see its contract. An owner is alive while its lease is, by the database's clock."""

    def __init__(self, writer: PostgresWriter, reader: PostgresReader, me: str) -> None:
        self._writer = writer
        self._reader = reader
        self.me = me

    @property
    def sure_until(self) -> float:
        return self._writer.lease.sure_until

    @property
    def lapses(self) -> int:
        return self._writer.lease.lapses

    async def claim(self, execution_id: str) -> bool:
        await self._writer.enter()
        follows = False
        # The loop goes round again only if the owner has changed between the two statements.
        while True:
            found = await self._reader.one("owner_of", execution_id)
            if found is None:
                place = self._reader.door.place
                raise ExecutionNotFound(f"no execution {execution_id} in {place}; see `noetl list`")
            owner, pid, host, alive = found
            if owner == self.me:
                return follows  # by a claim of this call whose answer was lost, or since long
            if alive:
                raise HomeInUse(
                    f"execution {execution_id} is run by process {pid}; wait for it (on {host}), "
                    f"or stop it with `noetl cancel {execution_id}`"
                )
            follows = owner is not None
            if await self._reader.rows("claim_execution", execution_id, self.me, owner):
                return follows

    async def owned(self) -> list[str]:
        return [row[0] for row in await self._reader.rows("owned_executions", self.me)]

    async def release(self, execution_id: str) -> None:
        await self._writer.drain()
        await self._reader.write("release_execution", execution_id, self.me)

    async def holder(self, execution_id: str) -> str | None:
        found = await self._reader.one("owner_of", execution_id)
        return str(found["pid"]) if found is not None and found["alive"] else None

    async def owner_of(self, execution_id: str) -> str | None:
        found = await self._reader.one("owner_of", execution_id)
        return found["owner"] if found is not None and found["alive"] else None

    async def adopt(self, limit: int) -> Adoption:
        (any_orphan,) = await self._reader.one("any_orphan")
        if not any_orphan:
            return Adoption(term=0, execution_ids=[])
        await self._writer.enter()
        term = await self.term()
        rows = await self._reader.rows("adopt", self.me, term, limit)
        names = [row["execution_id"] for row in rows]
        return Adoption(term=term if names else 0, execution_ids=names)

    async def term(self) -> int:
        return int((await self._reader.one("draw_term"))["last"])

    async def leave(self) -> None:
        await self._writer.drain()
        await self._reader.write("leave_executions", self.me)
