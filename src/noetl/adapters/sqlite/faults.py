"""What a failure of SQLite means to a person: where, why, and what to do."""

import os
from pathlib import Path

import apsw

from noetl.errors import LogUnavailable

OVER_SOON = (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)
"""Another process is at it: wait and try again. Never shown to anybody."""

OF_THE_WORLD = (
    apsw.FullError,
    apsw.IOError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.PermissionsError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.NoMemError,
)
"""Nothing can be written for now, whatever it is."""

REASONS: list[tuple[type[apsw.Error], str, str]] = [
    (apsw.FullError, "no space left on the disk of {home}", "free some"),
    (apsw.ReadOnlyError, "{home} is read-only", "make it writable"),
    (apsw.CantOpenError, "{home} cannot be opened: {error}", "check its permissions"),
    (apsw.PermissionsError, "{home} may not be written: {error}", "check its permissions"),
    (apsw.CorruptError, "the log in {home} is damaged: {error}", "restore it from a copy"),
    (apsw.NotADBError, "noetl.db in {home} is not a log of NoETL", "move the file away"),
    (apsw.IOError, "the disk of {home} failed: {error}", "check the disk"),
    (apsw.Error, "the log in {home} refused to write: {error}", "see `noetl doctor`"),
]


def unavailable(error: Exception, home: Path, execution_id: str | None = None) -> LogUnavailable:
    """The error as one sentence; with an execution, how to go on with it."""
    if isinstance(error, apsw.CantOpenError) and not os.access(home, os.W_OK):
        error = apsw.ReadOnlyError(str(error))  # no journal can be made beside it
    reason, remedy = "the log in {home} failed: {error}", "see `noetl doctor`"
    for kind, says, do in REASONS:
        if isinstance(error, kind):
            reason, remedy = says, do
            break
    onward = f" and run `noetl resume {execution_id}`" if execution_id else " and try again"
    return LogUnavailable(reason.format(home=home, error=error) + f"; {remedy}{onward}")
