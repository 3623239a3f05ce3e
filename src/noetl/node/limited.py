"""What becomes of a start whose playbook has a limit (LIMIT-2)."""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from noetl.control.limits import words_of
from noetl.control.restoring import onto_old
from noetl.errors import ExecutionNotFound, LimitReached, ServerRefused
from noetl.messages import requests as r
from noetl.playbook.plan import Plan

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane


class LimitedStarts:
    """Asks the limit before an execution begins: it goes on, is queued, or is refused."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def asked(
        self, plan: Plan, execution_id: str, request: dict[str, Any], *, hopes: bool = False
    ) -> dict[str, Any]:
        """
        What the request is to say besides; raises LimitReached. Whoever `hopes`, and asks again
        where PlaceLost is raised, takes a place that is likely free with the commit of the start:
        then nothing is asked before (decision 0091).
        """
        assert plan.limit is not None, "only such a start is asked about"
        if await self._counts_with_its_parent(plan.path, request.get("parent_execution_id")):
            return {}
        payload, kept = request["payload"], request.get("kept")
        if kept is not None:  # of a restart the payload is what changes (RST-4)
            payload = onto_old(kept.workload, payload)
        from noetl.server.limits import asked_by_start, start_claim  # few playbooks have one

        limits = self._plane.limits
        answer = await asked_by_start(plan, payload, execution_id)
        if not isinstance(answer, r.LimitAnswer):
            return {"refused": answer}
        claim = start_claim(plan, answer, execution_id)
        if hopes and limits.is_likely_free(claim):
            return {"limit": answer, "claim": claim}
        answer = replace(answer, place=await limits.ask(claim))
        over = plan.limit.spec.over
        if answer.place and over == "refuse":
            if not await self._plane.limits.withdraw(execution_id):
                return {"limit": replace(answer, place=0)}
            key = f" for '{answer.key}'" if answer.key else ""
            numbers = words_of(plan.limit.spec)
            held = await self._held(plan, answer.key)
            raise LimitReached(
                f"the limit of playbook '{plan.path}' is reached{key} ({numbers}){held}"
            )
        if answer.place and over == "cancel_old":
            self._plane.server.chore(self._cancel_older(answer, execution_id))
        return {"limit": answer}

    async def ended_before(self, execution_id: str) -> None:
        """Another began it, and it may be over: what was asked for it now is for nobody."""
        row = await self._plane.storage.executions.find(execution_id)
        if row is not None and row.finished_at is not None:
            await self._plane.limits.give_back(execution_id)

    async def _held(self, plan: Plan, key: str) -> str:
        from noetl.server.holders import holders_of, listed  # few starts are refused

        assert plan.limit is not None, "it is reached"
        names = await holders_of(self._plane.storage, plan.path, key, plan.limit.spec)
        if not names:
            return "; try again later"
        return f", held by {listed(names)}; try again when one of them has ended"

    async def _counts_with_its_parent(self, path: str, parent: str | None) -> bool:
        """A child under the limit of an execution above it would wait for itself."""
        while parent is not None:
            row = await self._plane.storage.executions.find(parent)
            if row is not None and row.path == path:
                return True
            parent = None if row is None else row.parent_execution_id
        return False

    async def _cancel_older(self, answer: r.LimitAnswer, execution_id: str) -> None:
        for older in await self._plane.limits.before(answer, execution_id):
            with suppress(ServerRefused, ExecutionNotFound):
                await self._plane.order(older, "cancel", f"{execution_id} was started (limit)")
