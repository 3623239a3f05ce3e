"""What some peers need beside their own process, each on loopback and in a folder of its own."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support import postgres
from tests.support.fleet import free_port

from bench.peers.environments import NotThere

PATIENCE = 180.0
"""Seconds for a server to listen: Airflow takes a minute on an idle machine."""
DURABLE = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "max_connections=200")


class Service(NamedTuple):
    """Where it answers, what its peer's process is told, and whose memory counts."""

    address: str = ""
    variables: Mapping[str, str] = {}
    pid: int | None = None


@contextmanager
def serving(name: str, python: Path, folder: Path) -> Iterator[Service]:
    """A service by its name in `peers.toml`; none has no name."""
    with SERVICES[name](python, folder) as service:
        yield service


@contextmanager
def none(python: Path, folder: Path) -> Iterator[Service]:
    assert python, folder
    yield Service()


@contextmanager
def on_postgres(python: Path, folder: Path) -> Iterator[Service]:
    assert python, folder
    with postgres.running(*DURABLE) as server, server.fresh_database() as database:
        address = database.url.replace("postgresql://", "postgresql+psycopg://")
        yield Service(address, {}, server.pid)


@contextmanager
def on_redis(python: Path, folder: Path) -> Iterator[Service]:
    """The append-only file as it is by default: synced every second."""
    port = free_port()
    program = python.with_name("redis-server")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder)]
    with started([str(program), *options, "--appendonly", "yes"], port, folder) as pid:
        address = f"redis://127.0.0.1:{port}/0"
        yield Service(address, {"BENCH_REDIS": address}, pid)


@contextmanager
def on_temporal(python: Path, folder: Path) -> Iterator[Service]:
    port = free_port()
    command = [str(python.with_name("temporal")), "server", "start-dev", "--headless"]
    where = ["--ip", "127.0.0.1", "--port", str(port), "--db-filename", str(folder / "temporal.db")]
    with started([*command, *where, "--log-level", "error"], port, folder) as pid:
        yield Service(f"127.0.0.1:{port}", {}, pid)


@contextmanager
def on_prefect(python: Path, folder: Path) -> Iterator[Service]:
    port = free_port()
    own = {
        "PREFECT_HOME": str(folder),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }
    where = ["--host", "127.0.0.1", "--port", str(port)]
    command = [str(python.with_name("prefect")), "server", "start", *where]
    with started(command, port, folder, own) as pid:
        yield Service("", own, pid)


@contextmanager
def on_airflow(python: Path, folder: Path) -> Iterator[Service]:
    """Everything in one command, as its documentation begins."""
    port = free_port()
    (folder / "dags").mkdir()
    dag = Path(__file__).with_name("programs") / "airflow_dags.py"
    (folder / "dags" / "bench.py").write_text(dag.read_text("utf-8"), "utf-8")
    own = {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "PATH": f"{python.parent}:{os.environ['PATH']}",
    }
    with started([str(python.with_name("airflow")), "standalone"], port, folder, own) as pid:
        yield Service("", own, pid)


SERVICES: dict[str, Callable[[Path, Path], AbstractContextManager[Service]]] = {
    "": none,
    "postgres": on_postgres,
    "redis": on_redis,
    "temporal": on_temporal,
    "prefect": on_prefect,
    "airflow": on_airflow,
}


@contextmanager
def started(
    command: list[str], port: int, folder: Path, own: Mapping[str, str] | None = None
) -> Iterator[int]:
    """A process in a session of its own, once it listens; all of it ends with the `with`."""
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, **(own or {})},
            cwd=folder,
        )
    try:
        wait_for(port, process)
        yield process.pid
    finally:
        end(process)


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise NotThere("its server does not start" if process.poll() is not None else "not ready")


def end(process: subprocess.Popen[bytes]) -> None:
    """First politely; then all of its session."""
    for how, patience in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0)):
        try:
            os.killpg(process.pid, how)
            process.wait(patience)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue
