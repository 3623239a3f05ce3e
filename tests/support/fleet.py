"""Servers and workers as real processes on PostgreSQL and NATS, any of which may be killed."""

import random
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from tests.support.asking import asking
from tests.support.postgres import Database
from tests.support.processes import Running
from tests.support.programs import Program
from tests.support.slowness import SLOWNESS

from noetl.client.client import Client
from noetl.errors import ServerAway, ServerRefused

PATIENCE = 120.0 * SLOWNESS
"""Seconds before something that hangs fails its test; never a time that is expected to pass."""
T = TypeVar("T")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class Member:
    """One process of the fleet, and how to start it again."""

    def __init__(self, begin: Callable[[], Running], url: str | None = None) -> None:
        self._begin = begin
        self.url = url
        self.running = begin()

    def kill(self) -> None:
        self.running.kill()
        self.running.process.join(PATIENCE)

    def stop(self, patience: float = PATIENCE) -> int:
        """Told to end well; its exit code."""
        self.running.tell(signal.SIGTERM)
        return self.running.ended(patience)

    def again(self) -> None:
        self.kill()
        self.running = self._begin()


class Fleet:
    """Grow it with `server` and `worker`."""

    def __init__(self, folder: Path, database: Database, queue: str, **settings: str) -> None:
        self._folder = folder
        self._number = count(1)
        self._settings = {
            "NOETL_DB": database.url,
            "NOETL_QUEUE": queue,
            "NOETL_AUTH": "0",  # whoever asks here is nobody's owner
            "NOETL_LEASE_TTL": f"{2 * SLOWNESS:g}",
            **settings,
        }
        self.servers: list[Member] = []
        self.workers: list[Member] = []

    def server(self, **more: str) -> Member:
        """`more` stands in its environment."""
        port = free_port()
        words = ("server", "start", "--foreground", "--port", str(port))
        member = Member(self._beginner(words, more), f"http://127.0.0.1:{port}")
        self.servers.append(member)
        return member

    def worker(self, *words: str, **more: str) -> Member:
        """`more` stands in its environment."""
        member = Member(self._beginner(("worker", "start", "--foreground", *words), more))
        self.workers.append(member)
        return member

    def server_on(self, environment: dict[str, str]) -> Member:
        """As a program of its own: its environment holds from its first instruction."""
        port = free_port()
        words = ("server", "start", "--foreground", "--port", str(port))
        member = Member(self._beginner(words, environment, Program), f"http://127.0.0.1:{port}")
        self.servers.append(member)
        return member

    def worker_on(self, environment: dict[str, str]) -> Member:
        words = ("worker", "start", "--foreground")
        member = Member(self._beginner(words, environment, Program))
        self.workers.append(member)
        return member

    def _beginner(
        self,
        words: tuple[str, ...],
        more: dict[str, str] | None = None,
        kind: type[Running] | type[Program] = Running,
    ) -> Callable[[], Any]:
        number = next(self._number)
        home = self._folder / f"member-{number}"
        home.mkdir(parents=True, exist_ok=True)
        given = {**self._settings, **(more or {})}
        return lambda: kind(home, *words, name=f"member-{number}-said", **given)

    @property
    def members(self) -> list[Member]:
        return [*self.servers, *self.workers]

    # ── asking ───────────────────────────────────────────────────────────────────────────────

    def ask(self, what: Callable[[Client], T], chance: random.Random | None = None) -> T:
        """From whichever server answers, however often one is away."""
        for turn, _ in enumerate(asking(self.told, PATIENCE)):
            servers = self.servers
            server = chance.choice(servers) if chance else servers[turn % len(servers)]
            assert server.url is not None, "a server has an address"
            with suppress(ServerAway), Client(server.url, pauses=()) as client:
                return what(client)
        raise AssertionError(self.told())

    def ready(self) -> None:
        for server in self.servers:
            assert server.url is not None, "a server has an address"
            for _ in asking(self.told, PATIENCE):
                with suppress(ServerAway, ServerRefused), Client(server.url, pauses=()) as client:
                    client.ready()
                    break
                assert server.running.process.is_alive(), server.running.err

    def told(self) -> str:
        """What the members said last, for a test that fails."""
        return "\n".join(member.running.err[-2000:] for member in self.members)

    def close(self) -> None:
        for member in self.members:
            member.kill()


@contextmanager
def sailing(folder: Path, database: Database, queue: str, **settings: str) -> Iterator[Fleet]:
    """A fleet that is gone with the test."""
    fleet = Fleet(folder, database, queue, **settings)
    try:
        yield fleet
    finally:
        fleet.close()


def shown(summary: Any) -> dict[str, Any]:
    """What two runs of one playbook must have in common."""
    steps = sorted((one.step, one.runs, one.failed, one.status) for one in summary.steps)
    return {
        "status": summary.status,
        "ctx": summary.ctx,
        "result": summary.result,
        "steps": steps,
    }
