"""Who runs here: the file that a server or a worker holds below the home while it lives."""

import contextlib
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from noetl.adapters.processes import Process
from noetl.errors import HomeInUse, UnwritableFile
from noetl.private import private_file, private_folder

LOG = logging.getLogger("noetl.home")
FOLDER = "run"
"""Below the home: pid files and logs."""
Tell = Callable[..., None]
NOTHING: Mapping[str, str] = {}


class RunningProcess(msgspec.Struct, frozen=True, kw_only=True):
    """What the file tells of the process that wrote it."""

    pid: int
    ticks: int | None
    boot: str | None
    started_at: int
    """Milliseconds since 1970."""
    ready: bool = False
    """Whether it has begun to do what it is there for."""
    url: str | None = None
    """Where a server answers, once it does."""
    pool: str | None = None
    with_server: bool = False
    """Whether it was started by the server, and ends with it."""
    uses: dict[str, str] = {}
    """What a server works with, such as its database, without passwords."""

    @property
    def alive(self) -> bool:
        return Process(self.pid, self.ticks, self.boot).alive()


class PidFile:
    """
    `run/NAME.pid` below a home, and the log beside it.

    Whoever holds it has it locked, so that two can never hold it; a file that a dead process left
    behind is recognized by the process's number and start, and means nothing.
    """

    def __init__(self, home: Path, name: str) -> None:
        self.name = name
        self.home = home
        self.path = home / FOLDER / f"{name}.pid"
        self.log = home / FOLDER / f"{name}.log"

    def running(self) -> RunningProcess | None:
        """The process that holds it; None where nobody does any more."""
        try:
            told = msgspec.json.decode(self.path.read_bytes(), type=RunningProcess)
        except (OSError, msgspec.DecodeError):
            return None
        return told if told.alive else None

    @contextlib.contextmanager
    def held(
        self, what: str, *, pool: str | None = None, with_server: bool = False
    ) -> Iterator[Tell]:
        """
        Hold it while the body runs, which tells when it is ready, and a server also where it
        answers; HomeInUse where another process holds it.
        """
        try:
            if private_folder(self.home):
                LOG.warning("%s could be read by others; it is closed now (0700)", self.home)
            private_folder(self.path.parent)
            file = self._locked(what)
        except OSError as wrong:
            raise UnwritableFile(
                f"cannot write {self.path}: {wrong.strerror}; check who owns the home"
            ) from None
        me = Process.this()
        told = RunningProcess(
            pid=me.pid,
            ticks=me.ticks,
            boot=me.boot,
            started_at=int(time.time() * 1000),
            pool=pool,
            with_server=with_server,
        )

        def tell(
            url: str | None = None, *, ready: bool = True, uses: Mapping[str, str] = NOTHING
        ) -> None:
            now = msgspec.structs.replace(told, ready=ready, url=url, uses=dict(uses))
            content = msgspec.json.encode(now)
            os.pwrite(file, content.ljust(4096), 0)

        tell(ready=False)
        try:
            yield tell
        finally:
            self.path.unlink(missing_ok=True)
            os.close(file)

    def _locked(self, what: str) -> int:
        while True:
            file = private_file(self.path, os.O_RDWR)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise self.in_use(what) from None
            # The one before may have struck the file out between our open and our lock.
            with contextlib.suppress(FileNotFoundError):
                if os.stat(self.path).st_ino == os.fstat(file).st_ino:
                    return file
            os.close(file)

    def in_use(self, what: str) -> HomeInUse:
        """Why it cannot be held, and what to do."""
        held_by = self.running()
        who = "another process" if held_by is None else f"process {held_by.pid}"
        at = f" at {held_by.url}" if held_by is not None and held_by.url else ""
        kind = self.name.partition("-")[0]
        return HomeInUse(
            f"{what} runs on this home already ({who}{at}); stop it with `noetl {kind} stop`, or "
            "set NOETL_HOME to another folder"
        )


def pid_files(home: Path, kind: str) -> list[PidFile]:
    """Those of a kind (`worker`) that are there, dead ones too, in the order of their names."""
    found = sorted((home / FOLDER).glob(f"{kind}-*.pid"))
    return [PidFile(home, path.stem) for path in found]


def shard_file(home: Path, place: int) -> PidFile:
    """What a shard of the home's server holds (decision 0087)."""
    return PidFile(home, f"server-{place}")


def shards_of(home: Path) -> list[tuple[int, RunningProcess | None]]:
    """The shards that a server says it has, by their places; None for one that is away."""
    told = PidFile(home, "server").running()
    count = 0 if told is None else int(told.uses.get("shards", "0"))
    return [(place, shard_file(home, place).running()) for place in range(1, count + 1)]
