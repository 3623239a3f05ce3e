"""Which storage, and which result store, do the settings ask for?"""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from noetl.adapters.files.object_store import RESULTS, FileObjectStore
from noetl.adapters.sqlite.storage import open_storage as open_sqlite
from noetl.errors import HomeInUse, LogUnavailable, SettingRefused
from noetl.extras import is_installed, needs
from noetl.ports.result_store import ResultStore
from noetl.private import private_file, private_folder
from noetl.settings import Settings

if TYPE_CHECKING:
    from noetl.ports.storage import Storage

LOCK = "server.lock"
PATIENT = 30.0
"""Seconds: whoever was waited for as long as this is away, and has not refused."""


def lock_home(settings: Settings) -> int | None:
    """
    The open file that locks a home on SQLite for its one server: a second one is refused. A
    database serves many.
    """
    if settings.db is not None:
        return None
    private_folder(settings.home)
    descriptor = private_file(settings.home / LOCK, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "another process"
        os.close(descriptor)
        raise HomeInUse(
            f"a server (process {holder}) runs on {settings.home} already: stop it with "
            "`noetl server stop`, or give this one another NOETL_HOME or a --db of its own"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


async def open_settings_storage(
    settings: Settings, says: Callable[[str], None], *, looking: bool = False
) -> "Storage":
    """The home on SQLite, or in the database that is set. `looking`: nothing will be written."""
    if settings.db is None:
        return await open_sqlite(settings.home, says=says, looking=looking)
    _demand_driver()
    from noetl.adapters.postgres.storage import open_storage as open_postgres

    while True:
        began = time.monotonic()
        try:
            return await open_postgres(
                settings.db,
                folder=settings.home,
                lease=settings.lease_ttl,
                says=says,
                looking=looking,
            )
        except LogUnavailable as away:
            if looking or time.monotonic() - began < PATIENT:  # it answered, and will not have us
                raise
            says(f"{away}; it is waited for")


def _demand_driver() -> None:
    if not is_installed("postgres"):
        raise SettingRefused(needs("a database (NOETL_DB, --db)", "postgres"))


async def open_local_storage(settings: Settings, *, looking: bool = False) -> "Storage":
    """`noetl run` keeps what it does in the home folder, whatever servers use."""
    return await open_sqlite(settings.home, looking=looking)


def open_results(settings: Settings, *, local: bool = False) -> ResultStore:
    """RES-1: files below the home folder, the database, NATS, S3 or GCS."""
    chosen = "files" if local else settings.results
    chosen = chosen or ("files" if settings.db is None else "postgres")
    if chosen == "files":
        return ResultStore(FileObjectStore(settings.home / RESULTS))
    if chosen == "postgres":
        if settings.db is None:
            raise SettingRefused("NOETL_RESULTS=postgres needs NOETL_DB, the database to use")
        _demand_driver()
        from noetl.adapters.postgres.object_store import PostgresObjectStore

        return ResultStore(PostgresObjectStore(settings.db))
    from noetl.adapters.objects.opening import open_object_results

    return open_object_results(chosen, queue=settings.queue)


def open_archive(settings: Settings, place: str, *, local: bool = False) -> ResultStore:
    """KEEP-1: where removed executions are kept: in the result store, a bucket or a folder."""
    chosen = "files" if local else settings.results
    if place == "results":
        if chosen == "files" or (chosen is None and settings.db is None):
            return ResultStore(FileObjectStore(settings.home / RESULTS, suffix=""))
        return open_results(settings, local=local)
    from noetl.server.policies import BUCKETS

    if place.startswith(BUCKETS):
        from noetl.adapters.objects.opening import open_object_results

        return open_object_results(place)
    return ResultStore(FileObjectStore(Path(place.removeprefix("file://")), suffix=""))
