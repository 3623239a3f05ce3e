"""What the API needs of the control plane; `noetl.node.server.ServerNode` has it."""

from collections.abc import AsyncIterator
from typing import Any, Literal, Protocol

from noetl.control.execution import Execution
from noetl.keychain.door import KeychainDoor
from noetl.playbook.plan import Plan
from noetl.ports.catalog import CatalogEntry
from noetl.ports.event_log import ExecutionRow, LogRow
from noetl.ports.link import Answer, Call, Notifier, Question, Reply
from noetl.ports.result_store import ResultStore
from noetl.ports.storage import Storage

OrderKind = Literal["cancel", "pause", "resume"]


class WorkerCalls(Protocol):
    """Where workers' calls are answered (`ports.link.Listener`), and who rings for them."""

    @property
    def notifiers(self) -> list[Notifier]: ...

    async def answer(self, call: Call) -> Answer: ...

    async def reply(self, question: Question) -> Reply: ...


class ServerProcess(Protocol):
    """A server process, as the routes need it."""

    @property
    def name(self) -> str: ...

    address: str
    """Where others reach it; known once it listens."""

    @property
    def storage(self) -> Storage: ...
    @property
    def results(self) -> ResultStore: ...
    @property
    def keychain(self) -> KeychainDoor: ...
    @property
    def dispatcher(self) -> WorkerCalls: ...

    async def register(
        self, text: str, *, original: str | None = None
    ) -> tuple[CatalogEntry, bool]: ...

    async def execute(
        self,
        *,
        playbook_id: str | None = None,
        path: str | None = None,
        version: int | None = None,
        payload: dict[str, Any],
        key: str | None = None,
    ) -> ExecutionRow: ...

    async def order(self, execution_id: str, kind: OrderKind, reason: str) -> ExecutionRow: ...

    async def row(self, execution_id: str) -> ExecutionRow: ...

    async def state(self, execution_id: str) -> tuple[Execution, Plan]: ...

    async def summary(self, execution_id: str, *, wait: float = 0) -> dict[str, Any]: ...

    def follow(self, execution_id: str, *, after: int) -> AsyncIterator[LogRow]: ...

    async def counts(self) -> dict[str, Any]: ...

    def health(self) -> dict[str, Any]: ...
