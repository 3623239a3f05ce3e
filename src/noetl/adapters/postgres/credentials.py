"""Registered credentials in the database of the log."""

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import astuple

from noetl.adapters.postgres.blocking import BlockingDoor, Connection
from noetl.adapters.postgres.statements import FOLDER, load
from noetl.ports.credentials import SealedCredential

SQL = {
    name: text.encode()
    for name, text in load((FOLDER / "credentials.sql").read_text("utf-8")).items()
}
FIELDS = SealedCredential.__struct_fields__
PATIENCE = 5.0
"""Little: whoever asks for a credential stands still meanwhile."""


class PostgresCredentials:
    """Credentials; see its contract. The tables must be there: the log's home makes them."""

    def __init__(self, dsn: str, *, patience: float = PATIENCE) -> None:
        patience = min(patience, PATIENCE)
        self._door = BlockingDoor(dsn, patience=patience, what="a credential")

    def keep(self, credential: SealedCredential) -> None:
        self._door.connected(lambda home: home.execute(SQL["keep"], astuple(credential)))

    def find(self, name: str) -> SealedCredential | None:
        found = self._door.connected(lambda home: home.execute(SQL["find"], (name,)).fetchone())
        return None if found is None else _row(found)

    def all(self) -> Sequence[SealedCredential]:
        found = self._door.connected(lambda home: home.execute(SQL["all"]).fetchall())
        return [_row(row) for row in found]

    def remove(self, name: str) -> bool:
        return self._door.connected(lambda home: home.execute(SQL["remove"], (name,)).rowcount) == 1

    def rewrite(self, change: Callable[[SealedCredential], SealedCredential]) -> int:
        def rewrite(connection: Connection) -> int:
            with connection.transaction():
                connection.execute(SQL["nobody_else_writes"])
                rows = connection.execute(SQL["all"]).fetchall()
                for row in rows:
                    connection.execute(SQL["keep"], astuple(change(_row(row))))
            return len(rows)

        return self._door.connected(rewrite)

    def close(self) -> None:
        """Let go of the connections."""
        self._door.close()


def _row(columns: tuple[Any, ...]) -> SealedCredential:
    return SealedCredential(**dict(zip(FIELDS, columns, strict=True)))
