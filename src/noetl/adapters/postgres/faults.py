"""What a failure of PostgreSQL means: wait for it, refuse one decision, or refuse them all."""

from urllib.parse import urlsplit

import asyncpg

from noetl.errors import LogUnavailable


class Struck(Exception):
    """The row of this process is gone, or a later connection of it has taken over."""


AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    Struck,
)
"""The connection or the server is gone, or busy with others: come again."""

REFUSED = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
)
"""Coming again does not help before somebody has changed something."""

OF_THE_WORLD = (
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    asyncpg.DataCorruptedError,
    asyncpg.UndefinedTableError,
    asyncpg.InvalidSchemaNameError,
    *REFUSED,
)
"""Nothing can be written for now, whatever it is."""

REASONS: list[tuple[type[Exception], str, str]] = [
    (asyncpg.DiskFullError, "no space left on the disk of {place}", "free some"),
    (asyncpg.ReadOnlySQLTransactionError, "{place} is read-only", "use its primary server"),
    (asyncpg.InvalidCatalogNameError, "there is no database at {place}", "create it"),
    (
        asyncpg.InvalidAuthorizationSpecificationError,
        "{place} refuses the user or the password",
        "check both",
    ),
    (
        asyncpg.InsufficientPrivilegeError,
        "{place} allows too little: {error}",
        "grant the user what is missing",
    ),
    (asyncpg.DataCorruptedError, "the log at {place} is damaged: {error}", "restore it"),
    (asyncpg.UndefinedTableError, "the tables at {place} are gone: {error}", "restore them"),
    (asyncpg.InvalidSchemaNameError, "the tables at {place} are gone: {error}", "restore them"),
    (OSError, "PostgreSQL at {place} does not answer: {error}", "start it, or check the address"),
    (TimeoutError, "PostgreSQL at {place} does not answer in time", "check the server"),
    (asyncpg.InterfaceError, "the connection to {place} is lost: {error}", "check the server"),
]


def unavailable(error: Exception, place: str, execution_id: str | None = None) -> LogUnavailable:
    """The error as one sentence; with an execution, how to go on with it."""
    reason, remedy = "the log at {place} failed: {error}", "check the server"
    for kind, says, do in REASONS:
        if isinstance(error, kind):
            reason, remedy = says, do
            break
    onward = f" and run `noetl resume {execution_id}`" if execution_id else " and try again"
    words = " ".join(str(error).split()) or type(error).__name__
    return LogUnavailable(reason.format(place=place, error=words) + f"; {remedy}{onward}")


def place_of(dsn: str) -> str:
    """The address for people: without user and password."""
    parts = urlsplit(dsn)
    where = parts.netloc.rpartition("@")[2]
    return f"postgresql://{where}{parts.path}"
