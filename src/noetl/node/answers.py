"""What a worker may ask, beside its parts: playbooks, children, credentials (`ports.link`)."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.errors import ServerRefused
from noetl.messages.codec import decode
from noetl.messages.details import MOST_REPORTED, refuse_detailed
from noetl.node.children import asks_for, summary, task_of
from noetl.ports import link
from noetl.ports.result_store import EXECUTION_ID
from noetl.ports.session import ChildAsked, is_task_of
from noetl.server.timers import moved_by_pauses

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane


class Answers:
    """One method for each question."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def answer(self, question: link.Question) -> Any:
        return await ANSWER[type(question)](self, question)

    async def _playbook(self, wanted: link.PlaybookWanted) -> dict[str, Any]:
        active = self._plane.server.find(lease_of(wanted).execution_id)
        if active is None or active.plan.digest != wanted.digest:
            raise ServerRefused("the part is of another playbook", code="refused")
        text, folder = await self._plane.library.text_of(wanted.digest)
        return {"text": text, "folder": folder}

    async def _child(self, wanted: link.ChildWanted) -> dict[str, Any]:
        text = bytes(wanted.asked)
        refuse_detailed(text, MOST_REPORTED, None)
        asked, hold = decode(text, ChildAsked), lease_of(wanted)
        active = self._plane.server.find(hold.execution_id)
        if active is None:
            raise ServerRefused("another server decides for the parent", code="moved")
        if asked.parent_execution_id != hold.execution_id:
            raise ServerRefused("the child is one of another execution", code="refused")
        refuse_others(hold, asked.execution_id)
        step = active.plan.steps[active.execution.runs[hold.step_run_id].step]
        if not asks_for(active.plan, step, asked.path):
            raise ServerRefused(
                f"step '{step.name}' has no task that runs playbook '{asked.path}'", code="refused"
            )
        return await self._plane.children.begin(asked)

    async def _end(self, wanted: link.EndWanted) -> dict[str, Any]:
        """Of a child: another server may decide for it than for its parent, which is asked."""
        plane = self._plane
        refuse_others(lease_of(wanted), wanted.execution_id)
        active = plane.server.find(wanted.execution_id)
        ended = await plane.ended(wanted.execution_id, wanted.wait)
        if active is not None and active.execution.finished and active.uncommitted == 0:
            return summary(active.execution)
        if not ended:
            return {"execution_id": wanted.execution_id, "status": "running"}
        execution, _ = await plane.state(wanted.execution_id)
        return summary(execution)

    async def _cancel(self, wanted: link.CancelWanted) -> dict[str, Any]:
        refuse_others(lease_of(wanted), wanted.execution_id)
        if not await self._plane.ended(wanted.execution_id, 0.0):
            with suppress(ServerRefused):  # it may end meanwhile
                await self._plane.order(wanted.execution_id, "cancel", wanted.reason)
        return {}

    async def _credential(self, wanted: link.CredentialWanted) -> dict[str, Any] | None:
        """Sealed as it lies in the store: only who has the key can open it (KEY-2)."""
        from noetl.keychain.store import LOG_KEY, RESERVED  # ciphers come with the first secret

        found = await self._plane.storage.credentials.find(wanted.name)
        if found is None or (wanted.name.startswith(RESERVED) and found.kind != LOG_KEY):
            return None
        return dict(msgspec.to_builtins(found))

    async def _log_keys(self, wanted: link.LogKeysWanted) -> list[dict[str, Any]]:
        """KEY-3: the keys of recorded secrets, made here, so that every worker has the same."""
        from noetl.keychain.handing import handed  # ciphers are imported with the first secret
        from noetl.keychain.store import LOG_KEY

        await self._plane.keychain.seals.make_ready()
        store = self._plane.keychain.opened.store
        found = []
        for row in await self._plane.storage.credentials.all():
            if row.kind == LOG_KEY:
                told = handed(wanted.public, store.opened(row)) if wanted.public else ""
                found.append({**msgspec.to_builtins(row), "handed": told})
        return found

    async def _kept(self, wanted: link.KeptWanted) -> dict[str, Any] | None:
        """CACHE-1: of tasks of the step that the part is of, and of no other playbook."""
        hold = lease_of(wanted)
        active = self._plane.server.find(hold.execution_id)
        if active is None:
            raise ServerRefused("another server decides for the execution", code="moved")
        step = active.execution.runs[hold.step_run_id].step
        if wanted.task not in active.plan.cached or not wanted.task.startswith(f"{step}."):
            raise ServerRefused(f"step '{step}' has no cache '{wanted.task}'", code="refused")
        hit = await self._plane.cache.find(active, wanted.task, wanted.key)
        if hit is None:
            return None
        return {"execution_id": hit.execution_id, "at": hit.at, "outcome": hit.outcome}

    async def _delay(self, wanted: link.DelayWanted) -> int | None:
        hold = lease_of(wanted)
        active = self._plane.server.find(hold.execution_id)
        if active is None:
            raise ServerRefused("another server decides for the execution", code="moved")
        return await moved_by_pauses(active, hold.step_run_id, wanted.task_run_id, wanted.wait)

    async def _owner(self, wanted: link.OwnerWanted) -> dict[str, Any]:
        known = EXECUTION_ID.fullmatch(wanted.execution_id) is not None
        row = await self._plane.storage.executions.find(wanted.execution_id) if known else None
        if row is None:
            return {"server": None, "finished": False}
        if row.finished_at is not None:  # any server can say so to whoever reports late
            return {"server": self._plane.name, "finished": True}
        owner = await self._plane.storage.owners.owner_of(wanted.execution_id)
        return {"server": owner, "finished": False}


def lease_of(wanted: link.Question) -> link.Hold:
    """The lease that the dispatcher has looked at before it passed the question on."""
    assert wanted.hold is not None, "the dispatcher lets no other question through"
    return wanted.hold


def refuse_others(hold: link.Hold, execution_id: str) -> None:
    """WRK-1: a worker asks for the children of the run that it holds, and for no other."""
    task = task_of(execution_id, hold.execution_id)
    if task is None or not is_task_of(task, hold.step_run_id):
        raise ServerRefused("the execution is not a child of the part", code="refused")


ANSWER: dict[type[Any], Callable[[Answers, Any], Awaitable[Any]]] = {
    link.PlaybookWanted: Answers._playbook,
    link.ChildWanted: Answers._child,
    link.EndWanted: Answers._end,
    link.CancelWanted: Answers._cancel,
    link.CredentialWanted: Answers._credential,
    link.LogKeysWanted: Answers._log_keys,
    link.KeptWanted: Answers._kept,
    link.DelayWanted: Answers._delay,
    link.OwnerWanted: Answers._owner,
}
