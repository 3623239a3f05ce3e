"""Orders to an execution, whoever owns it: durable when they return, refused with a reason."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from noetl.control.evolve import said_by
from noetl.control.execution import Execution
from noetl.control.waits import refusal_of_signal, was_sent
from noetl.errors import LogUnavailable, OutcomeUnknown, ServerRefused, VersionConflict
from noetl.messages import requests as r
from noetl.messages.codec import recorded_events
from noetl.messages.depth import refuse_deep
from noetl.messages.envelope import timestamp
from noetl.messages.events import Event
from noetl.messages.wait_events import SignalReceived, WaitDone
from noetl.pipeline.frame import TaskWait
from noetl.ports.event_log import ExecutionRow
from noetl.ports.session import PartLost
from noetl.server.afterwards import ended_words

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane


PATIENCE = 5.0
"""Seconds within which whoever answers is told whether the answer was taken."""
AGAIN = 0.1
PAGE = 200


class Orders:
    """Decided here where the execution is owned here, else left for its owner with all fields."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def order(
        self, execution_id: str, kind: r.Order, reason: str = "", *, sender: str = ""
    ) -> ExecutionRow:
        """Cancel, pause or resume: durable when this returns, whoever owns the execution."""
        await self._not_over(execution_id, kind)
        await self._give(execution_id, r.PLAIN_ORDERS[kind](reason=reason, sender=sender))
        return await self._plane.row(execution_id)

    async def _give(self, execution_id: str, given: r.AnyOrder) -> bool:
        """
        Any order, with all that it carries, to an execution that has not ended. Whether it was
        carried out here; else it was left for whoever decides, or the execution has ended.
        """
        active = self._plane.server.find(execution_id)
        if active is not None and self._plane.ownership.sure():
            try:
                return await self._plane.ownership.order(active, given)
            except PartLost:
                pass  # it ended, or stood so already
            except VersionConflict:  # another server decides for it by now
                await self._plane.ownership.leave(execution_id, given)
            except LogUnavailable as away:
                raise OutcomeUnknown(
                    f"it is not known whether the order was recorded: {away}; ask again"
                ) from away
        else:
            await self._plane.ownership.leave(execution_id, given)
        return False

    async def _not_over(self, execution_id: str, what: str) -> None:
        refuse_over(await self._plane.row(execution_id), what)

    async def signal(self, execution_id: str, given: r.SendSignal) -> ExecutionRow:
        """WAIT-4: refused with the reason where nothing can take it."""
        refuse_deep(given.data, "the data of the signal")
        await self._not_over(execution_id, "signal")
        execution = await self._latest(execution_id)
        seen = execution.seq
        if not was_sent(execution, given):
            refuse_signal(execution, given)
            if not (
                await self._give(execution_id, given)
                or await self._received(execution_id, given, seen)
            ):  # it may have ended, or have all that it keeps, before whoever decides looked
                await self._not_over(execution_id, "signal")
                latest = await self._latest(execution_id)
                if not was_sent(latest, given):
                    refuse_signal(latest, given)
        return await self._plane.row(execution_id)

    async def _received(self, execution_id: str, given: r.SendSignal, after: int) -> bool:
        """Whether the log has a signal that was left for another to decide."""

        def is_it(event: Event) -> bool:
            return (
                isinstance(event, SignalReceived)
                and event.signal == given.signal
                and event.sender == given.sender
                and event.signal_id == given.signal_id
            )

        return await self._recorded(execution_id, after, is_it) is not None

    async def answer(
        self,
        execution_id: str,
        step: str | None,
        *,
        approved: bool,
        sender: str,
        reason: str = "",
        fields: dict[str, Any] | None = None,
        known_as: tuple[str, ...] | None = None,
    ) -> ExecutionRow:
        """WAIT-5: `known_as` are the role and the name of whoever answers, where they bind him."""
        from noetl.control.approvals import AnswerRefused, approval_for, filled_in, refuse_stranger

        row = await self._plane.row(execution_id)
        await self._not_answered(row, step)
        refuse_over(row, "answer")
        try:
            wait, arm = approval_for(await self._latest(execution_id), step)
            refuse_stranger(arm, known_as)
            filled = filled_in(arm, fields or {}, approved=approved)
        except AnswerRefused as refused:
            said = f"execution {execution_id}: {refused}"
            raise ServerRefused(said, code="refused", status=409) from None
        given = r.AnswerApproval(
            task_run_id=wait.task_run_id,
            label=arm.get("label", ""),
            approved=approved,
            sender=sender,
            reason=reason,
            fields=filled,
            asked=wait.seq,
        )
        await self._give(execution_id, given)
        first = await self._answered(execution_id, wait)
        if first is not None and not is_of(first, given):  # somebody else was quicker
            how = said_by(first) if first.by == "approval" else f"over before ({first.by})"
            said = f"execution {execution_id}: the approval of step '{wait.step}' was {how}"
            raise ServerRefused(said, code="refused", status=409)
        return await self._plane.row(execution_id)

    async def _not_answered(self, row: ExecutionRow, step: str | None) -> None:
        """WAIT-5: the first answer is named also where the execution has ended since."""
        from noetl.control.approvals import nothing_waits

        if row.finished_at is None:
            return
        execution = await self._latest(row.execution_id)
        if execution.answers:
            said = f"execution {row.execution_id} {row.status}: {nothing_waits(execution, step)}"
            raise ServerRefused(said, code="finished", status=409)

    async def _answered(self, execution_id: str, wait: TaskWait) -> WaitDone | None:
        """What ended it; None where its owner has not come to it within a few seconds."""

        def is_it(event: Event) -> bool:
            return isinstance(event, WaitDone) and event.task_run_id == wait.task_run_id

        found = await self._recorded(execution_id, wait.seq, is_it)
        return found if isinstance(found, WaitDone) else None

    async def _recorded(
        self, execution_id: str, after: int, is_it: Callable[[Event], bool]
    ) -> Event | None:
        """
        The event of an order, once whoever decides has come to it; None where nobody does for the
        execution, where it has ended without it, and after a few seconds.
        """
        storage = self._plane.storage
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            over = (await self._plane.row(execution_id)).finished_at is not None
            decided = over or await storage.owners.holder(execution_id) is not None
            rows = await storage.log.read(execution_id, after=after, limit=PAGE)
            for row in rows:
                for event in recorded_events(execution_id, row.first, row.events):
                    if is_it(event):
                        return event
                after = row.last
            if not rows:
                if over or not decided:
                    return None
                await asyncio.sleep(AGAIN)
        return None

    async def _latest(self, execution_id: str) -> Execution:
        """The state as of now: in memory where it is decided here, else from the log."""
        active = self._plane.server.find(execution_id)
        if active is not None and not active.inputs:
            return active.execution
        return (await self._plane.state(execution_id))[0]


def refuse_over(row: ExecutionRow, what: str) -> None:
    if row.finished_at is not None:
        said = ended_words(row.execution_id, row.status, timestamp(row.finished_at), what)
        raise ServerRefused(said, code="finished", status=409)
    if row.status == "queued" and what not in ("cancel", "signal"):
        raise ServerRefused(
            f"execution {row.execution_id} is queued, and nothing of it runs: there is nothing to "
            f"{what}; `noetl cancel {row.execution_id}` takes it out of the queue",
            code="queued",
            status=409,
        )


def refuse_signal(execution: Execution, given: r.SendSignal) -> None:
    refusal = refusal_of_signal(execution, given)
    if refusal is not None:
        said = f"execution {execution.execution_id}: {refusal}"
        raise ServerRefused(said, code="refused", status=409)


def is_of(done: WaitDone, given: r.AnswerApproval) -> bool:
    """Whether an answer is the one that was taken; what is large, or a secret, is not compared."""
    told = done.result if isinstance(done.result, dict) else {}
    ours = {"approved": given.approved, "by": given.sender, "reason": given.reason, **given.fields}
    return done.by == "approval" and all(
        name not in told or isinstance(told[name], dict) or told[name] == value
        for name, value in ours.items()
    )
