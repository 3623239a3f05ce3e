"""What a worker may ask, beside its parts: playbooks, children, credentials (`ports.link`)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.errors import ServerRefused
from noetl.messages.codec import decode
from noetl.node.children import summary
from noetl.ports import link
from noetl.ports.session import ChildAsked

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane


class Answers:
    """One method for each question."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def answer(self, question: link.Question) -> Any:
        return await ANSWER[type(question)](self, question)

    async def _playbook(self, wanted: link.PlaybookWanted) -> dict[str, Any]:
        text, folder = await self._plane.library.text_of(wanted.digest)
        return {"text": text, "folder": folder}

    async def _child(self, wanted: link.ChildWanted) -> dict[str, Any]:
        return await self._plane.children.begin(decode(bytes(wanted.asked), ChildAsked))

    async def _end(self, wanted: link.EndWanted) -> dict[str, Any]:
        plane = self._plane
        active = plane.server.find(wanted.execution_id)
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
        return None if found is None else dict(msgspec.to_builtins(found))

    async def _log_keys(self, wanted: link.LogKeysWanted) -> list[dict[str, Any]]:
        """KEY-3: the keys of recorded secrets, made here, so that every worker has the same."""
        del wanted
        from noetl.keychain.store import LOG_KEY  # ciphers are imported with the first secret

        await self._plane.keychain.seals.make_ready()
        rows = await self._plane.storage.credentials.all()
        return [dict(msgspec.to_builtins(row)) for row in rows if row.kind == LOG_KEY]

    async def _owner(self, wanted: link.OwnerWanted) -> dict[str, Any]:
        row = await self._plane.storage.executions.find(wanted.execution_id)
        if row is None:
            return {"server": None, "finished": False}
        if row.finished_at is not None:  # any server can say so to whoever reports late
            return {"server": self._plane.name, "finished": True}
        owner = await self._plane.storage.owners.owner_of(wanted.execution_id)
        return {"server": owner, "finished": False}


ANSWER: dict[type[Any], Callable[[Answers, Any], Awaitable[Any]]] = {
    link.PlaybookWanted: Answers._playbook,
    link.ChildWanted: Answers._child,
    link.EndWanted: Answers._end,
    link.CancelWanted: Answers._cancel,
    link.CredentialWanted: Answers._credential,
    link.LogKeysWanted: Answers._log_keys,
    link.OwnerWanted: Answers._owner,
}
