"""
How many parts of a pool run at once, over all servers and workers (LIMIT-1)?

A part of a pool with a limit needs a place before it is offered to workers. Places are claims like
those of other limits (decision 0052): they outlive the server, and whoever takes an execution over
asks for the same ones. A part keeps its place to its end; one that waits (WAIT) has ended.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

import msgspec

from noetl.control.dispatch import Command
from noetl.errors import NoetlError
from noetl.messages import events as e
from noetl.ports.limits import LimitClaim, LimitPlace
from noetl.ports.pools import OF_POOLS, PLACE, group_of
from noetl.ports.storage import Storage
from noetl.server.active import ActiveExecution
from noetl.server.leases import PartKey
from noetl.server.limits import LOOK, LimitKeeper
from noetl.server.server import Server
from noetl.server.waiting_parts import Offer

REFRESH = 2.0
"""Seconds until every server knows what was set."""


class PoolWait(msgspec.Struct):
    """A part that waits for a place."""

    pool: str
    offer: Offer
    asking: asyncio.Task[None] | None = None


class PoolKeeper:
    """Asks for places for the parts of one server, and gives them back."""

    def __init__(
        self, server: Server, limits: LimitKeeper, storage: Storage, says: Callable[[str], None]
    ) -> None:
        self._server = server
        self._limits = limits
        self._storage = storage
        self._says = says
        self.offers: Callable[[str, Offer], None] = lambda _, __: None
        """Lets workers have a part that has its place."""
        self.begun: Callable[[str], tuple[list[Offer], list[PartKey]]] = lambda _: ([], [])
        """What of a pool waits for a worker, and is taken back; what runs."""
        self._at_once: dict[str, int] = {}
        self._waits: dict[PartKey, PoolWait] = {}
        self._held: dict[str, set[PartKey]] = {}
        """Execution → its parts that have a place, or ask for one."""
        self._unheard: dict[PartKey, LimitClaim] = {}
        """What was asked for and has no answer yet: it may be claimed at any moment."""

    def admits(self, pool: str, offer: Offer) -> bool:
        """Whether a part may be offered now; else it is as soon as it has a place."""
        if pool not in self._at_once:
            return True
        known = self._waits.get(offer.key)
        if known is not None:
            known.offer = offer  # the same part, by a later lease
            return False
        wait = self._waits[offer.key] = PoolWait(pool, offer)
        wait.asking = asyncio.get_running_loop().create_task(self._ask(wait))
        return False

    def keep(self, pool: str, key: PartKey) -> None:
        """A worker has this part already: its place is known here from now on."""
        if pool in self._at_once and key not in self._held.get(key[0], ()):
            self._server.chore(self._claim_running(pool, key))

    async def _claim_running(self, pool: str, key: PartKey) -> None:
        claim = self._claim(pool, key)
        if claim is not None:
            self._held.setdefault(key[0], set()).add(key)
            with suppress(NoetlError):
                await self._storage.limits.take([claim])
            active = self._server.find(key[0])
            if active is not None and not is_open(active, key):
                self._let_go([key])  # it ended while this was asked

    def take_up(self, active: ActiveExecution) -> None:
        """It is decided here from now on: see to places that nobody knows of any more."""
        if active.plan.executor.pool in self._at_once:
            self._server.chore(self._tidy(active))

    async def _tidy(self, active: ActiveExecution) -> None:
        """
        Whoever decided before may have gone between the end of a part and its release; if it was
        this server, a question of then may still be on its way.
        """
        while self._server.is_active(active):
            try:
                await self._limits.ask(None)
                places = await self._storage.limits.places(active.execution_id)
            except NoetlError:
                await asyncio.sleep(LOOK)
                continue
            keys = [key_of(active.execution_id, one.holder) for one in places if is_place(one)]
            if self._server.is_active(active):
                self._let_go([one for one in keys if not is_open(active, one)])
            return

    async def _ask(self, wait: PoolWait) -> None:
        key = wait.offer.key
        await self._recorded(key[0])
        claim = self._claim(wait.pool, key)
        if claim is not None:
            self._held.setdefault(key[0], set()).add(key)
            self._unheard[key] = claim
            await self._limits.place_for(claim)
            self._unheard.pop(key, None)
        self._waits.pop(key, None)
        active = self._server.find(key[0])
        if active is None:
            return  # whoever decides for it asks for the same place
        if is_open(active, key):
            self.offers(wait.pool, wait.offer)
        else:
            self._let_go([key])

    async def _recorded(self, execution_id: str) -> None:
        """A start that is refused leaves no claim: it would hold its place for a minute."""
        active = self._server.find(execution_id)
        if active is not None and active.begun is not None:
            with suppress(Exception):  # it is told to whoever asked for the start
                await active.begun

    def _claim(self, pool: str, key: PartKey) -> LimitClaim | None:
        active, most = self._server.find(key[0]), self._at_once.get(pool)
        if active is None or most is None:
            return None
        # The playbooks take turns (LIMIT-4).
        return LimitClaim(
            execution_id=key[0],
            holder=holder_of(key),
            group=group_of(pool),
            key=active.plan.path,
            total=most,
        )

    # ── ends ─────────────────────────────────────────────────────────────────────────────────

    def follow(self, active: ActiveExecution, events: list[e.Event]) -> None:
        """After each decision: the places of parts that have ended are free."""
        del events
        name = active.execution.execution_id
        held = self._held.get(name)
        if held is not None:
            over = [key for key in held if not is_open(active, key)]
            if over:
                self._let_go(over)

    def _let_go(self, keys: Iterable[PartKey]) -> None:
        for key in keys:
            self._drop(key)
            self._server.chore(self._release(key, self._unheard.pop(key, None)))

    async def _release(self, key: PartKey, unheard: LimitClaim | None) -> None:
        """An end that was not recorded is none: loaded again, the part needs its place."""
        over = False
        while not over:
            try:
                wanted = self._wanted(key)
                if wanted is None and unheard is not None:
                    # A question on its way would make the claim anew: this one comes after it.
                    await self._limits.ask(unheard)
                if wanted is None:
                    await self._storage.limits.release(key[0], holder_of(key))
                    wanted = self._wanted(key)
                if wanted is not None:
                    await self._limits.ask(wanted)
                over = True
            except NoetlError:
                await asyncio.sleep(LOOK)
        self._limits.look_again()

    def _wanted(self, key: PartKey) -> LimitClaim | None:
        active = self._server.find(key[0])
        if active is None or not is_open(active, key):
            return None
        return self._claim(active.plan.executor.pool, key)

    def _drop(self, key: PartKey) -> None:
        wait = self._waits.pop(key, None)
        if wait is not None and wait.asking is not None:
            wait.asking.cancel()
        held = self._held.get(key[0])
        if held is not None:
            held.discard(key)
            if not held:
                del self._held[key[0]]

    def take_out(self, execution_id: str, step_run_id: str | None = None) -> list[Command]:
        """Parts of an execution, or of one of its runs, that wait for a place: they do no more."""
        keys = [
            key for key in self._waits if key[0] == execution_id and step_run_id in (None, key[1])
        ]
        waits = [self._waits.pop(key) for key in sorted(keys)]
        for wait in waits:
            if wait.asking is not None:
                wait.asking.cancel()
        return [wait.offer.command for wait in waits]

    def forget(self, execution_id: str) -> None:
        """Another server decides for it, and knows its places; or it has ended."""
        self.take_out(execution_id)
        for key in self._held.pop(execution_id, ()):
            self._unheard.pop(key, None)

    # ── what is set ──────────────────────────────────────────────────────────────────────────

    async def watch(self) -> None:
        while True:
            with suppress(NoetlError):
                await self.refresh()
            await asyncio.sleep(REFRESH)

    async def refresh(self) -> None:
        """Learn what is set for pools by now."""
        rows = await self._storage.pools.all()
        before, self._at_once = self._at_once, {row.name: row.at_once for row in rows}
        if self._at_once and self.follow not in self._server.watchers:
            self._server.watchers.append(self.follow)
        for pool in self._at_once.keys() - before.keys():
            waiting, running = self.begun(pool)
            for key in running:
                self.keep(pool, key)
            for offer in waiting:
                self.admits(pool, offer)
        for pool in before.keys() - self._at_once.keys():
            self._set_free(pool)

    def _set_free(self, pool: str) -> None:
        for key, wait in list(self._waits.items()):
            if wait.pool == pool:
                self._let_go([key])
                self.offers(pool, wait.offer)

    async def close(self) -> None:
        asking = [wait.asking for wait in self._waits.values() if wait.asking is not None]
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


def is_open(active: ActiveExecution, key: PartKey) -> bool:
    run = active.execution.runs.get(key[1])
    return run is not None and key[2] in run.parts


def holder_of(key: PartKey) -> str:
    return f"{PLACE}{key[1]}/{key[2]}"


def key_of(execution_id: str, holder: str) -> PartKey:
    run, _, part = holder.removeprefix(PLACE).rpartition("/")
    return execution_id, run, int(part)


def is_place(place: LimitPlace) -> bool:
    return place.group.startswith(OF_POOLS)
