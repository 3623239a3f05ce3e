"""
Which executions does this server decide for, and how does it come by them? (SRV-3)

An owner is written beside the execution; whoever has died is taken over from, a few at a time, by
whoever notices. That two never decide rests on the expected `seq` and on the owner, which the log
looks at with each append; that a stale owner starts nothing rests on `sure`: without a lease of its
own that is known to be alive, nothing is granted.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from noetl.errors import ExecutionNotFound, HomeInUse, LogUnavailable, NoetlError, PlaceLost
from noetl.messages import requests as r
from noetl.ports.event_log import Note, clock
from noetl.ports.session import PartLost
from noetl.server.active import ActiveExecution
from noetl.server.library import Library
from noetl.server.server import Server

if TYPE_CHECKING:
    from noetl.ports.storage import Storage

AT_ONCE = 50
"""Executions that are taken over with one statement: others take the next ones."""

LOOK = 1.0
"""Seconds between two looks for executions without an owner."""

WATCH = 0.25
"""Seconds between two looks into the inbox where nobody announces what is left there."""

COMPARE = 5.0
"""Seconds between two comparisons of what is owned with what is in memory."""

BELOW = "the parent was cancelled"


REST = 300.0
"""Seconds at most between two attempts at one that falls to the same fault again and again."""


class Fall(NamedTuple):
    """What became of an execution that fell to a fault of ours."""

    seq: int
    """Where it was taken up before: if it comes further, the next fall is another one."""
    times: int
    until: float
    """Not before is it loaded again, by the monotonic clock."""


class Falls:
    """
    To load an execution takes the time of the others. One that falls at the same place again is
    left alone for twice as long each time.
    """

    def __init__(self) -> None:
        self._falls: dict[str, Fall] = {}
        self._taken_at: dict[str, int] = {}
        """The `seq` at which those were taken up that began elsewhere, or earlier."""

    def taken_up(self, execution_id: str, seq: int) -> None:
        self._taken_at[execution_id] = seq

    def note(self, execution_id: str, fault: BaseException) -> float:
        """The seconds for which it rests."""
        seq = self._taken_at.get(execution_id, 0)
        before = self._falls.get(execution_id)
        ours = type(fault) is NoetlError and fault.__cause__ is not None  # see `Server.drop`
        same = ours and before is not None and before.seq == seq
        times = before.times + 1 if same and before is not None else 1
        pause = min(REST, 2.0 ** (times - 2)) if times > 1 else 0.0
        self._falls[execution_id] = Fall(seq, times, time.monotonic() + pause)
        return pause

    def rests(self, execution_id: str) -> bool:
        fall = self._falls.get(execution_id)
        return fall is not None and time.monotonic() < fall.until

    def forget(self, execution_id: str) -> None:
        self._falls.pop(execution_id, None)
        self._taken_at.pop(execution_id, None)


class Ownership:
    """Takes executions over, brings them back after a fault, lets them go when they have ended."""

    def __init__(
        self,
        storage: "Storage",
        server: Server,
        library: Library,
        says: Callable[[str], None],
        *,
        adopts: bool = True,
    ) -> None:
        self._storage = storage
        self._server = server
        self._library = library
        self.says = says
        self.adopts = adopts
        self._loading: dict[str, asyncio.Task[ActiveExecution | str]] = {}
        self._fallen: set[str] = set()
        """Executions of ours that are not in memory: a fault, or the log was away."""
        self._falls = Falls()
        self._obeying: set[int] = set()
        """Notes whose decisions are on their way into the log."""
        self._lapses = 0
        """As of the last comparison: more of them mean that others may have taken over."""
        self.released: Callable[[str], None] = lambda _: None
        """Called when an execution is not decided here any more."""
        self.taken_up: Callable[[ActiveExecution], None] = lambda _: None
        """Called when an execution that began elsewhere, or earlier, is decided here."""
        self.aside: dict[str, str] = {}
        """Executions that cannot be taken up, and why (promise 7)."""
        self.parking: set[str] = set()
        """Those that are let go of just now (see `server.parking`)."""
        self.term = 0
        self.looked = 0.0
        """When the log answered last, by the monotonic clock."""

    async def begin(self) -> None:
        """Draw the term in which executions begin here."""
        self.term = await self._storage.owners.term()
        self._lapses = self._storage.owners.lapses
        self.looked = time.monotonic()

    def sure(self) -> bool:
        """Whether nobody else can have taken over what this server believes to own (promise 4)."""
        owners = self._storage.owners
        return clock() < owners.sure_until and owners.lapses == self._lapses

    def mind(self, active: ActiveExecution) -> ActiveExecution:
        """Let go of it when it has ended; bring it back when it has fallen."""
        active.finished.add_done_callback(lambda ended: self._over(active, ended))
        return active

    def _over(self, active: ActiveExecution, ended: "asyncio.Future[None]") -> None:
        execution_id = active.execution_id
        fault = None if ended.cancelled() else ended.exception()
        if fault is not None:
            self.released(execution_id)
            if self.adopts and not isinstance(fault, PlaceLost):  # that one never was
                self._fallen.add(execution_id)
                pause = self._falls.note(execution_id, fault)
                after = f" after {pause:g} s" if pause else ""
                if pause:
                    self.aside[execution_id] = str(fault)
                self.says(f"execution {execution_id} is loaded again{after}: {fault}")
        elif self.adopts:
            self._falls.forget(execution_id)
            if self._server.find(execution_id) is active:
                self._server.release(execution_id)
            # After whoever waited for the end has had a turn.
            asyncio.get_running_loop().call_soon(self.released, execution_id)

    # ── taking over ──────────────────────────────────────────────────────────────────────────

    async def watch(self) -> None:
        """Until cancelled: adopt what nobody owns, bring back what fell, obey what is asked."""
        looked = compared = 0.0
        while True:
            try:
                if self.adopts:
                    await self._storage.inbox.waits(LOOK)
                else:
                    await asyncio.sleep(WATCH)
                await self.obey(await self._storage.inbox.waiting())
                now = time.monotonic()
                if self.adopts and (now - compared >= COMPARE or not self.sure()):
                    compared = now
                    await self.compare()
                if self.adopts and now - looked >= LOOK:
                    looked = now
                    await self.look()
                self.looked = time.monotonic()
            except NoetlError as away:
                self.says(f"waits for the log: {away}")
                await asyncio.sleep(LOOK)

    async def compare(self) -> None:
        """What is owned and what is in memory are the same, whatever happened (promises 1, 6)."""
        owners = self._storage.owners
        lapses = owners.lapses
        before = {one.execution_id for one in self._server.owned if one.in_log}
        owned = set(await owners.owned())
        for active in self._server.owned:
            name = active.execution_id
            gone = name in before and name not in owned
            if gone and active.in_log and not active.finished.done():
                self._server.drop(active, HomeInUse(f"another server owns execution {name} now"))
        for name in owned - self.parking:
            if self._server.find(name) is None and name not in self.aside:
                await self.bring(name)
        if clock() < owners.sure_until:
            self._lapses = lapses

    async def look(self) -> None:
        for execution_id in list(self._fallen):
            await self.bring(execution_id)
        while True:
            lapses = self._storage.owners.lapses
            adopted = await self._storage.owners.adopt(AT_ONCE)
            for execution_id in adopted.execution_ids:
                await self._take_up(execution_id, adopted.term, lapses)
            if len(adopted.execution_ids) < AT_ONCE:
                return

    async def bring(self, execution_id: str) -> ActiveExecution | str:
        """
        An execution in memory, if it is ours; else why it is not: `ended`, `moved`, `later`.
        """
        active = self._server.find(execution_id)
        if active is not None:
            return active
        if self._falls.rests(execution_id):
            return "later"
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
                self._falls.forget(execution_id)
                return "ended"
            lapses = self._storage.owners.lapses
            try:
                await self._storage.owners.claim(execution_id)
            except HomeInUse:
                self._fallen.discard(execution_id)
                self._falls.forget(execution_id)
                return "moved"
            term = await self._storage.owners.term()
            active = await self._take_up(execution_id, term, lapses)
        except NoetlError as away:
            self.says(f"execution {execution_id} cannot be loaded now: {away}")
            return "later"
        return active or "later"

    async def _take_up(self, execution_id: str, term: int, lapses: int) -> ActiveExecution | None:
        """
        Go on where the log stands; one that cannot be read is set aside with the reason. `lapses`:
        as of the moment before it became ours. With one more it may be another server's by now,
        and what is compared meanwhile does not know of it: it is claimed again first (T22).
        """
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
            self._fallen.discard(execution_id)
            self.says(f"execution {execution_id} is set aside: {wrong}")
            return None
        if (there := self._server.find(execution_id)) is not None:
            return there
        if self._storage.owners.lapses != lapses:
            self._fallen.add(execution_id)
            return None
        self.looked = time.monotonic()
        self._falls.taken_up(execution_id, execution.seq)
        active = self.mind(self._server.go_on(execution, plan, row, folder, term))
        active.resumed = True
        self.taken_up(active)
        self._fallen.discard(execution_id)
        self.aside.pop(execution_id, None)
        if execution.stop == "cancel":  # the owner before may have died before it told them
            self._server.chore(self.cancel_below(execution_id))
        return active

    # ── orders ───────────────────────────────────────────────────────────────────────────────

    async def obey(self, notes: Iterable[Note]) -> None:
        """A note leaves the inbox with the commit that obeys it: no death in between loses it."""
        for note in notes:
            if note.note_id in self._obeying:
                continue
            order = r.ORDERS.get(note.kind)
            active = await self._find(note.execution_id)
            if order is None or active == "ended":
                await self._storage.inbox.discard([note.note_id])
            elif isinstance(active, ActiveExecution):
                try:
                    given: r.AnyOrder = msgspec.convert(note.fields, order)
                except msgspec.ValidationError as strange:
                    self.says(f"{note.kind} of {note.execution_id} cannot be read: {strange}")
                    await self._storage.inbox.discard([note.note_id])
                    continue
                self._obeying.add(note.note_id)
                self._server.chore(self._obeyed(active, given, note))

    async def _find(self, execution_id: str) -> ActiveExecution | str:
        if self.adopts:
            return await self.bring(execution_id)
        return self._server.find(execution_id) or "later"

    async def _obeyed(self, active: ActiveExecution, given: r.Input, note: Note) -> None:
        try:
            taken = self._server.receive(active, given, notes=(note.note_id,))
            if taken.events == [] and self._server.is_active(active):
                await self._storage.inbox.discard([note.note_id])  # there was nothing to do
            else:
                await taken.committed
            if note.kind == "cancel":
                await self.cancel_below(note.execution_id)
        except PartLost:
            await self._storage.inbox.discard([note.note_id])
        except NoetlError as away:  # it is still in the inbox
            self.says(f"{note.kind} of {note.execution_id} is obeyed later: {away}")
        finally:
            self._obeying.discard(note.note_id)

    async def order(self, active: ActiveExecution, given: r.AnyOrder) -> bool:
        """Returns when the order is in the log; False where nothing came of it here."""
        taken = self._server.receive(active, given)
        await taken.committed
        if taken.events == [] and not self._server.is_active(active):  # it fell before it obeyed
            await self.leave(active.execution_id, given)
        elif isinstance(given, r.CancelExecution):
            await self.cancel_below(active.execution_id)
        return taken.events != []

    async def leave(self, execution_id: str, given: r.AnyOrder) -> None:
        """Durable when this returns: whoever owns the execution, now or later, obeys it."""
        kind = next(kind for kind, order in r.ORDERS.items() if type(given) is order)
        await self._storage.inbox.leave(execution_id, kind, msgspec.to_builtins(given))

    async def cancel_below(self, execution_id: str) -> None:
        """TOOL-1: cancelling the parent cancels its children, those nobody waits for included."""
        for row in await self._storage.executions.children(execution_id):
            if row.finished_at is None:
                await self.cancel_child(row.execution_id)

    async def cancel_child(self, execution_id: str) -> None:
        active = self._server.find(execution_id)
        try:
            if active is not None:
                await self.order(active, r.CancelExecution(reason=BELOW))
            else:
                await self.leave(execution_id, r.CancelExecution(reason=BELOW))
        except (ExecutionNotFound, PartLost):
            return  # it has ended, or never began

    async def hand_over(self) -> None:
        """Give up everything, so that others need not wait for this server to be taken for dead."""
        await self._storage.owners.leave()
