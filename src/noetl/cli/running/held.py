"""Who holds the places that a run waits for, told beside the line that it waits (LIMIT-2)."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from noetl.cli.running.show import Show
from noetl.errors import NoetlError
from noetl.messages import events as e

if TYPE_CHECKING:
    from noetl.node.local import LocalNode
    from noetl.server.active import ActiveExecution
    from noetl.server.waiting import WaitReason

FOR_WORKERS = 3.0
"""Seconds without which nobody says that a worker is missing."""
MOST_TOLD = 5
"""Looks in one run; of a thousand children the first few say it for all."""
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 5.0, 5.0, 5.0)
"""Seconds between looks: a token waits in the log before its claim is there to be read."""

Ask = Callable[[str], Awaitable[Sequence["WaitReason"]]]
"""What an execution waits for."""
Wanted = Callable[["WaitReason"], bool]


class HeldBack:
    """Looks who has the places, each time something of the run has none."""

    def __init__(self, show: Show, ask: Ask, *, patience: float | None = None) -> None:
        """`patience`: seconds after which a part without a worker is told of, at a server."""
        self._show = show
        self._ask = ask
        self._looks: set[asyncio.Future[None]] = set()
        self._left = MOST_TOLD
        self._patience = patience
        self._looks_for_workers = 0

    def take(self, execution_id: str, events: Sequence[e.Event]) -> None:
        if any(is_held(event) for event in events):
            self.look(execution_id)
        if self._patience is not None and any(isinstance(one, e.TokenEnqueued) for one in events):
            self._look_for_workers(execution_id, self._patience)

    def _look_for_workers(self, execution_id: str, patience: float) -> None:
        if self._looks_for_workers < MOST_TOLD:
            self._looks_for_workers += 1
            self._keep(self._tell(execution_id, waits_for_worker, (patience,)))

    def look(self, execution_id: str) -> None:
        if self._left:
            self._left -= 1
            self._keep(self._tell(execution_id, waits_for_place, (0.0, *PAUSES)))

    def _keep(self, telling: Coroutine[None, None, None]) -> None:
        look = asyncio.ensure_future(telling)
        self._looks.add(look)
        look.add_done_callback(self._looks.discard)

    def end(self) -> None:
        for look in self._looks:
            look.cancel()

    async def _tell(self, execution_id: str, wanted: Wanted, pauses: Sequence[float]) -> None:
        for pause in pauses:
            await asyncio.sleep(pause)
            with suppress(NoetlError, OSError):  # it may be known with the next look
                waits = [one for one in await self._ask(execution_id) if wanted(one)]
                for wait in waits:
                    self._show.tell(execution_id, wait.step, wait.words)
                if waits:
                    return


def waits_for_place(wait: "WaitReason") -> bool:
    return wait.kind == "limit"


def waits_for_worker(wait: "WaitReason") -> bool:
    return wait.pool is not None


def is_held(event: e.Event) -> bool:
    """Whether something waits for a place under a limit from now on."""
    match event:
        case e.ExecutionQueued():
            return True
        case e.TokenParked(reason=reason) | e.StepParked(reason=reason):
            return reason == "limit"
    return False


def held_here(local: "LocalNode", show: Show) -> HeldBack:
    """The same of this process."""

    async def ask(execution_id: str) -> "Sequence[WaitReason]":
        from noetl.server.waiting import waits_in  # most runs wait for no place

        execution, plan = await local.state(execution_id)
        return await waits_in(local.storage, execution, plan, None)

    held = HeldBack(show, ask)

    def watch(active: "ActiveExecution", events: Sequence[e.Event]) -> None:
        if active.plan.limited:
            held.take(active.execution_id, events)

    local.server.watchers.append(watch)
    return held
