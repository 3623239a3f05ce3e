"""A real NATS server with JetStream on loopback, with or without users."""

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(sys.executable).with_name("nats-server")
_ATTEMPTS = 5
_PATIENCE = 600.0


class NatsServer:
    """Where it listens; it can be stopped and started again on the same port."""

    def __init__(self, port: int, folder: Path) -> None:
        self.port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it runs"
        return self._process.pid

    @property
    def store(self) -> Path:
        """What it keeps."""
        return self._folder / "store"

    def start(self) -> bool:
        """Whether it listens; another process may have taken the port."""
        config = self._folder / "server.conf"
        log = (self._folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                [PROGRAM, "-a", "127.0.0.1", "-p", str(self.port), "-c", config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1.0) as peer:
                    return peer.recv(4) == b"INFO"
            except OSError:
                continue
        return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running(settings: str = "") -> Iterator[NatsServer]:
    """A server of its own in a temporary folder; `settings` are lines of its configuration."""
    folder = Path(tempfile.mkdtemp(prefix="noetl-nats-"))
    store = folder / "store"
    (folder / "server.conf").write_text(f'jetstream {{ store_dir: "{store}" }}\n{settings}\n')
    server = None
    try:
        for _ in range(_ATTEMPTS):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                server = NatsServer(int(probe.getsockname()[1]), folder)
            if server.start():
                break
            server.stop()
        else:
            raise AssertionError(f"NATS does not start:\n{(folder / 'log').read_text()}")
        yield server
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)
