"""
Which executions does this server decide for, and how does it come by them? (SRV-3)

An owner is written beside the execution; whoever has died is taken over from, a few at a time, by
whoever notices. Correctness never rests on this, only on the expected `seq`.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from noetl.errors import HomeInUse, LogUnavailable, NoetlError
from noetl.messages import requests as r
from noetl.ports.event_log import Note
from noetl.server.active import ActiveExecution
from noetl.server.dispatcher import Dispatcher
from noetl.server.library import Library
from noetl.server.server import Server

ORDERS: dict[str, type[Any]] = {
    "cancel": r.CancelExecution,
    "pause": r.PauseExecution,
    "resume": r.ResumeExecution,
}
"""Notes that other processes leave in the inbox."""

AT_ONCE = 50
"""Executions that are taken over with one statement: others take the next ones."""

LOOK = 1.0
"""Seconds between two looks for executions without an owner."""


class Ownership:
    """Takes executions over, brings them back after a fault, lets them go when they have ended."""

    def __init__(
        self,
        storage: Any,
        server: Server,
        desk: Dispatcher,
        library: Library,
        says: Callable[[str], None],
    ) -> None:
        self._storage = storage
        self._server = server
        self._desk = desk
        self._library = library
        self._says = says
        self._loading: dict[str, asyncio.Task[ActiveExecution | str]] = {}
        self._fallen: set[str] = set()
        """Executions of ours that are not in memory: a fault, or the log was away."""
        self.aside: dict[str, str] = {}
        """Executions that cannot be taken up, and why (promise 7)."""
        self.term = 0
        self.looked = 0.0
        """When the log answered last, by the monotonic clock."""

    async def begin(self) -> None:
        """Draw the term in which executions begin here."""
        self.term = await self._storage.owners.term()
        self.looked = time.monotonic()

    def mind(self, active: ActiveExecution) -> ActiveExecution:
        """Let go of it when it has ended; bring it back when it has fallen."""
        active.finished.add_done_callback(lambda ended: self._over(active, ended))
        return active

    def _over(self, active: ActiveExecution, ended: "asyncio.Future[None]") -> None:
        execution_id = active.execution.execution_id
        if not ended.cancelled() and ended.exception() is not None:
            self._desk.release(execution_id)
            self._fallen.add(execution_id)
            self._says(f"execution {execution_id} is loaded again: {ended.exception()}")
            return
        if self._server.find(execution_id) is active:
            self._server.release(execution_id)
        self._server.chore(self._tidied(execution_id))

    async def _tidied(self, execution_id: str) -> None:
        """After whoever waited for the end has had a turn."""
        await asyncio.sleep(0)
        self._desk.release(execution_id)

    # ── taking over ──────────────────────────────────────────────────────────────────────────

    async def watch(self) -> None:
        """Until cancelled: adopt what nobody owns, bring back what fell, obey what is asked."""
        looked = 0.0
        while True:
            try:
                await self._storage.inbox.waits(LOOK)
                for note in await self._storage.inbox.waiting():
                    await self.obey(note)
                    await self._storage.inbox.discard([note.note_id])
                if time.monotonic() - looked >= LOOK:
                    looked = time.monotonic()
                    await self.look()
                self.looked = time.monotonic()
            except (LogUnavailable, NoetlError) as away:
                self._says(f"waits for the log: {away}")
                await asyncio.sleep(LOOK)

    async def look(self) -> None:
        for execution_id in list(self._fallen):
            await self.bring(execution_id)
        while True:
            adopted = await self._storage.owners.adopt(AT_ONCE)
            for execution_id in adopted.execution_ids:
                await self._take_up(execution_id, adopted.term)
            if len(adopted.execution_ids) < AT_ONCE:
                return

    async def bring(self, execution_id: str) -> ActiveExecution | str:
        """
        An execution in memory, if it is ours; else why it is not: `ended`, `moved`, `later`.
        """
        active = self._server.find(execution_id)
        if active is not None:
            return active
        task = self._loading.get(execution_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._brought(execution_id))
            self._loading[execution_id] = task
            task.add_done_callback(lambda _: self._loading.pop(execution_id, None))
        return await asyncio.shield(task)

    async def _brought(self, execution_id: str) -> ActiveExecution | str:
        try:
            row = await self._storage.executions.find(execution_id)
            if row is None or row.finished_at is not None:
                self._fallen.discard(execution_id)
                return "ended"
            try:
                await self._storage.owners.claim(execution_id)
            except HomeInUse:
                self._fallen.discard(execution_id)
                return "moved"
            active = await self._take_up(execution_id, await self._storage.owners.term())
        except NoetlError as away:
            self._says(f"execution {execution_id} cannot be loaded now: {away}")
            return "later"
        return active or "later"

    async def _take_up(self, execution_id: str, term: int) -> ActiveExecution | None:
        """Go on where the log stands; one that cannot be read is set aside with the reason."""
        if self._server.find(execution_id) is not None:
            return self._server.find(execution_id)
        try:
            row = await self._storage.executions.find(execution_id)
            if row is None:
                return None
            self._storage.log.forget(execution_id)
            execution, plan, folder = await self._library.load(execution_id)
        except LogUnavailable:
            self._fallen.add(execution_id)
            return None
        except Exception as wrong:  # promise 7
            self.aside[execution_id] = str(wrong)
            self._says(f"execution {execution_id} is set aside: {wrong}")
            return None
        if (there := self._server.find(execution_id)) is not None:
            return there
        self.looked = time.monotonic()
        active = self.mind(self._server.go_on(execution, plan, row, folder, term))
        active.resumed = True
        self._fallen.discard(execution_id)
        self.aside.pop(execution_id, None)
        return active

    # ── orders ───────────────────────────────────────────────────────────────────────────────

    async def obey(self, note: Note) -> None:
        active = await self.bring(note.execution_id)
        if active == "later":
            await self._storage.inbox.leave(note.execution_id, note.kind, note.fields)
            self._fallen.add(note.execution_id)
        elif isinstance(active, ActiveExecution):
            await self.order(active, note.kind, str(note.fields.get("reason", "")))
        elif active == "moved":
            await self._storage.inbox.leave(note.execution_id, note.kind, note.fields)

    async def order(self, active: ActiveExecution, kind: str, reason: str) -> None:
        """Returns when the order is in the log."""
        order = ORDERS.get(kind)
        if order is None:
            return
        await self._server.receive(active, order(reason=reason)).committed
        if kind == "cancel":
            await self._cancel_below(active.execution.execution_id)

    async def _cancel_below(self, execution_id: str) -> None:
        """TOOL-1: cancelling the parent cancels its children, those nobody waits for included."""
        for row in await self._storage.executions.children(execution_id):
            if row.finished_at is None:
                fields = {"reason": "the parent was cancelled"}
                await self._storage.inbox.leave(row.execution_id, "cancel", fields)

    async def hand_over(self) -> None:
        """Give up everything, so that others need not wait for this server to be taken for dead."""
        await self._storage.owners.leave()
