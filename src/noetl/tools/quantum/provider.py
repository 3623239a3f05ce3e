"""What a quantum provider is: who runs circuits, and is asked about them later (TOOL-4)."""

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec

Status = Literal["queued", "running", "done", "failed", "cancelled", "lost"]


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A circuit to run. Its parameters have their values by now."""

    key: str
    """The same for every attempt of one submission: a second order with it is the first again."""
    circuit: str
    """OpenQASM 2 or 3."""
    shots: int
    seed: int
    backend: str | None = None
    cpu: int = 1
    memory: int | None = None
    """Bytes; None leaves it to the provider."""


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says to an order that it took."""

    job: str
    backend: str
    versions: dict[str, str] = {}
    """The software that runs it, for the provenance."""


class JobState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job stands; `message` says why it failed or was lost."""

    status: Status
    message: str = ""
    retryable: bool = False


class Provider(Protocol):
    """
    One place that runs circuits; entry point group `noetl.quantum`, a callable without arguments.

    - Every method may raise `noetl.tools.refusal.Refusal`, which becomes the task's outcome; a
      circuit that cannot be read is one of kind `quantum` with `line` and `column`.
    - `credential` is what the task's `auth` names, None without one.
    - A job that is unknown here has the status `lost`: nothing will ever come of it.
    - Cancelling `submit` leaves no job behind.
    """

    async def submit(self, order: JobSpec, credential: Mapping[str, Any] | None) -> Accepted: ...

    async def poll(self, job: str, credential: Mapping[str, Any] | None) -> JobState: ...

    async def fetch(self, job: str, credential: Mapping[str, Any] | None) -> Mapping[str, int]:
        """The counts by bit string; asked only of a job that is done."""

    async def cancel(self, job: str, credential: Mapping[str, Any] | None) -> JobState:
        """The state afterwards; a job that has ended stays what it is."""

    async def forget(self, job: str) -> None:
        """The execution is over: drop what is kept in this process for its job."""

    async def close(self) -> None: ...
