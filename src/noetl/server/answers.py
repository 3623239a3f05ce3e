"""What a worker may ask, beside its parts: playbooks, children, credentials (`ports.link`)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from noetl.control.ending import result_of
from noetl.control.execution import Execution
from noetl.errors import ServerRefused
from noetl.messages.codec import decode
from noetl.playbook.plan import Plan
from noetl.ports import link
from noetl.ports.event_log import ExecutionRow
from noetl.server.active import ActiveExecution
from noetl.server.library import Library


class Plane(Protocol):
    """The part of a server process that answers need."""

    @property
    def library(self) -> Library: ...

    @property
    def storage(self) -> Any: ...

    @property
    def server(self) -> Any: ...

    @property
    def name(self) -> str: ...

    async def start(
        self,
        plan: Plan,
        *,
        execution_id: str,
        payload: dict[str, Any],
        version: str | None,
        folder: str | None = None,
        parent_execution_id: str | None = None,
        parent_id: str | None = None,
    ) -> ActiveExecution | None: ...

    async def order(self, execution_id: str, kind: Any, reason: str = "") -> ExecutionRow: ...

    async def ended(self, execution_id: str, wait: float) -> bool: ...

    async def state(self, execution_id: str) -> tuple[Execution, Plan]: ...


class Answers:
    """One method for each question."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    async def answer(self, question: link.Question) -> Any:
        return await ANSWER[type(question)](self, question)

    async def _playbook(self, wanted: link.PlaybookWanted) -> dict[str, Any]:
        text, folder = await self._plane.library.text_of(wanted.digest)
        return {"text": text, "folder": folder}

    async def _child(self, wanted: link.ChildWanted) -> dict[str, Any]:
        """Its id derives from the task run: a task that runs again finds its child (TOOL-1)."""
        plane = self._plane
        if await plane.storage.executions.find(wanted.execution_id) is None:
            parent = await plane.library.origin(wanted.parent_execution_id)
            found = await plane.library.child(
                wanted.path, wanted.version, parent.path, parent.folder
            )
            plan = await plane.library.plan_of(found.text, found.folder)
            active = await plane.start(
                plan,
                execution_id=wanted.execution_id,
                payload=decode(bytes(wanted.payload)),
                version=found.version or plan.version,
                folder=found.folder,
                parent_execution_id=wanted.parent_execution_id,
                parent_id=wanted.parent_id,
            )
            if active is not None:
                return summary(active.execution)
        execution, _ = await plane.state(wanted.execution_id)
        return summary(execution)

    async def _end(self, wanted: link.EndWanted) -> dict[str, Any]:
        plane = self._plane
        active: ActiveExecution | None = plane.server.find(wanted.execution_id)
        if active is not None:
            await plane.ended(wanted.execution_id, wanted.wait)
            if active.execution.finished and active.uncommitted == 0:
                return summary(active.execution)
        elif not await plane.ended(wanted.execution_id, 0.0):
            owner = await plane.storage.owners.owner_of(wanted.execution_id)
            code = "later" if owner in (None, plane.name) else "moved"
            raise ServerRefused("another server owns the execution", code=code)
        if not await plane.ended(wanted.execution_id, 0.0):
            return {"execution_id": wanted.execution_id, "status": "running"}
        execution, _ = await plane.state(wanted.execution_id)
        return summary(execution)

    async def _cancel(self, wanted: link.CancelWanted) -> dict[str, Any]:
        if not await self._plane.ended(wanted.execution_id, 0.0):
            with suppress(ServerRefused):  # it may end meanwhile
                await self._plane.order(wanted.execution_id, "cancel", wanted.reason)
        return {}

    async def _credential(self, wanted: link.CredentialWanted) -> dict[str, Any] | None:
        """Sealed as it lies in the store: only who has the key can open it (KEY-2)."""
        found = await self._plane.storage.credentials.find(wanted.name)
        if found is None:
            return None
        return dict(msgspec.to_builtins(found))

    async def _owner(self, wanted: link.OwnerWanted) -> dict[str, Any]:
        row = await self._plane.storage.executions.find(wanted.execution_id)
        if row is None:
            return {"server": None, "finished": False}
        if row.finished_at is not None:  # any server can say so to whoever reports late
            return {"server": self._plane.name, "finished": True}
        owner = await self._plane.storage.owners.owner_of(wanted.execution_id)
        return {"server": owner, "finished": False}


def summary(execution: Execution) -> dict[str, Any]:
    """TOOL-1: what a parent sees of its child."""
    return {
        "execution_id": execution.execution_id,
        "status": execution.status,
        "ctx": execution.ctx,
        "result": result_of(execution.leaves),
        "error": execution.error,
    }


ANSWER: dict[type[Any], Callable[[Answers, Any], Awaitable[Any]]] = {
    link.PlaybookWanted: Answers._playbook,
    link.ChildWanted: Answers._child,
    link.EndWanted: Answers._end,
    link.CancelWanted: Answers._cancel,
    link.CredentialWanted: Answers._credential,
    link.OwnerWanted: Answers._owner,
}
