"""Who is there: the servers and workers that share a home, as they were last seen."""

from collections.abc import Sequence
from typing import Protocol

import msgspec


class WorkerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it was last seen."""

    name: str
    pool: str
    slots: int
    version: str
    host: str
    pid: int
    started_at: int
    """Milliseconds since 1970, by the clock of whoever writes the row."""
    seen_at: int
    busy: int = 0
    """Slots in use."""
    server: str | None = None
    """The server that heard of it last."""


class ServerRow(msgspec.Struct, frozen=True, kw_only=True):
    """A server as it was last seen."""

    name: str
    address: str
    version: str
    started_at: int
    seen_at: int


class Roster(Protocol):
    """
    For people and for lists: no decision rests on it (leases and owners do that).

    Contract, checked for every adapter by tests/contracts/test_roster.py:
    - `seen` and `server_seen` enter a row or replace the one of its name;
    - `gone` and `server_gone` strike it out; striking out twice is nothing;
    - `workers` and `servers` are in the order of names; with `since_ms` those seen then or later.
    """

    async def seen(self, row: WorkerRow) -> None: ...

    async def gone(self, name: str) -> None: ...

    async def workers(self, *, since_ms: int | None = None) -> Sequence[WorkerRow]: ...

    async def server_seen(self, row: ServerRow) -> None: ...

    async def server_gone(self, name: str) -> None: ...

    async def servers(self, *, since_ms: int | None = None) -> Sequence[ServerRow]: ...
