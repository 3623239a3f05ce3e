"""How a connection is made, and how long one waits for a server that is away."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from noetl.adapters.postgres.faults import AWAY, REFUSED, place_of, unavailable
from noetl.adapters.postgres.statements import SQL
from noetl.errors import SettingRefused
from noetl.masking import without_password

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 1.0
LONGEST_CONNECT = 10.0
SETTINGS = {"application_name": "noetl", "jit": "off"}
"""Nothing of ours is worth compiling."""
# A plan that was made while a table was small must still be right when it has grown.
WRITING = SETTINGS | {"enable_seqscan": "off"}
LOOKING = {"default_transaction_read_only": "on"}

T = TypeVar("T")
Says = Callable[[str], None]


class Door:
    """The way to one database. `says` hears when a wait begins and when it is over."""

    def __init__(
        self, dsn: str, *, patience: float, says: Says | None = None, looking: bool = False
    ) -> None:
        self.dsn = dsn
        self.looking = looking
        self.place = place_of(dsn)
        self.patience = patience
        self._says = says or _quiet

    async def connect(self) -> asyncpg.Connection:
        """A connection whose commits are durable."""
        try:
            connection = await asyncpg.connect(self.dsn, **self.options(WRITING))
        except (ValueError, asyncpg.ClientConfigurationError) as wrong:
            # What is no address is quoted in pieces, and one may be of the password.
            ours = isinstance(wrong, asyncpg.ClientConfigurationError)
            why = without_password(str(wrong)) if ours else "it cannot be read"
            raise SettingRefused(
                f"the address of the database is none: {why}; expected "
                "postgresql://user:password@host:port/database, signs in the password "
                "percent-encoded"
            ) from None
        await durable(connection)
        return connection

    def options(self, settings: dict[str, str]) -> dict[str, Any]:
        """How connections are made. `looking`: the database itself refuses what would write."""
        return {
            "timeout": max(1.0, min(LONGEST_CONNECT, self.patience)),
            "command_timeout": max(1.0, self.patience),
            "server_settings": settings | (LOOKING if self.looking else {}),
        }

    async def patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Try until the server is back; LogUnavailable where it stays away, or will not have us."""
        return await ServerWait(self).until(attempt)

    def says(self, words: str) -> None:
        """Tell whoever watches."""
        self._says(words)


class ServerWait:
    """One wait for the server; it goes on over several attempts, and over several tasks."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._since: float | None = None

    async def until(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The answer of the first attempt that gets one."""
        pause = FIRST_PAUSE
        while True:
            try:
                answer = await attempt()
            except REFUSED as refused:
                raise unavailable(refused, self._door.place) from refused
            except AWAY as away:
                if self._too_long(pause):
                    raise unavailable(away, self._door.place) from away
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                self._over()
                return answer

    def _too_long(self, pause: float) -> bool:
        now = asyncio.get_running_loop().time()
        if self._since is None:
            self._since = now
            self._door.says(f"waiting for PostgreSQL at {self._door.place}")
        return now + pause > self._since + self._door.patience

    def _over(self) -> None:
        if self._since is not None:
            self._since = None
            self._door.says(f"PostgreSQL at {self._door.place} is back")


async def durable(connection: asyncpg.Connection) -> None:
    """No commit is answered before it is safe; a connection that does not come so far is closed."""
    try:
        await connection.execute(SQL["durable"])
    except BaseException:  # also whoever stops waiting for it
        connection.terminate()
        raise


def _quiet(_: str) -> None:
    """Nobody watches."""
