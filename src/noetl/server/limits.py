"""
Who asks for places under limits, and goes on with what has got one (LIMIT).

What waits is kept in the home (`ports.limits`), so a place is never given twice and a server that
dies takes none with it. A server keeps no queued execution in memory either: it parks them, looks
for places as long as anything waits, and adopts what got one (decision 0073). A process that parks
nothing looks only while it has something waiting itself.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from noetl.control.limits import start_asked, waiting
from noetl.errors import NoetlError, TakesLong
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.playbook.model import Limit
from noetl.playbook.plan import Plan
from noetl.ports.commit import Commit
from noetl.ports.limits import LimitClaim, LimitClaims
from noetl.ports.session import PartLost
from noetl.server.active import ActiveExecution
from noetl.server.loading import slow_thread
from noetl.server.parking import Parking
from noetl.server.server import Server
from noetl.server.timers import arm_execution

WAITING = frozenset((e.ExecutionQueued, e.TokenParked, e.StepParked))

LOOK = 0.25
"""Seconds between two looks for places that became free elsewhere."""

SWEEP = 5.0
"""Seconds between two looks for claims of servers that died before their start was recorded."""
SHARE = 50
"""Such a look takes at most this part of the time: it reads every claim, and many may wait."""

IDLE = 1.0
"""Seconds between two looks of a server while nothing waits anywhere."""
REST = 0.05
"""
Seconds between a place that is given back and the look for whoever wants it, where nothing waited
lately: under a limit that is not reached every end gives one back, and each look is a question.
"""
ASK_FIRST = 1.0
"""Seconds for which a start asks before it is decided, after the limit was found to be reached."""
MOST_REACHED = 10_000
"""Limits of which it is remembered that they were reached."""


class ReachedLimits:
    """The limits under which starts ask for their place before they are decided (decision 0091)."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}
        """By the monotonic clock."""

    def note(self, group: str) -> None:
        """There was no place, or somebody else counted just then."""
        if len(self._until) >= MOST_REACHED:
            self._until.clear()
        self._until[group] = time.monotonic() + ASK_FIRST

    def lately(self, group: str) -> bool:
        return self._until.get(group, 0.0) > time.monotonic()


class LimitKeeper:
    """Asks, waits and goes on for the executions of one server."""

    def __init__(
        self,
        server: Server,
        limits: LimitClaims,
        says: Callable[[str], None],
        parking: Parking | None = None,
    ) -> None:
        self._server = server
        self._limits = limits
        self._says = says
        self._parking = parking
        """Where queued executions go; None where whoever started one stays with it."""
        self._asked: list[tuple[LimitClaim | None, asyncio.Future[int]]] = []
        self._asking = False
        self._waiting: dict[tuple[str, str], ActiveExecution] = {}
        self._unsure: dict[str, ActiveExecution] = {}
        """Those whose claims may not be there, or whose grant may have been missed."""
        self._awaited: dict[tuple[str, str], asyncio.Future[bool]] = {}
        """Claims of others that wait; False where it is not known how they stand."""
        self._free = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._sweep_at = 0.0
        self.reached = ReachedLimits()
        self._none_waits = False
        """Nothing waited at the last look, here or elsewhere, and nobody was told to since."""

    # ── starts ───────────────────────────────────────────────────────────────────────────────

    def is_likely_free(self, claim: LimitClaim) -> bool:
        """
        Whether a start may bring its claim with its commit: nobody was told lately that the limit
        is reached. Only at a server: elsewhere somebody looks at what is decided, and would see it
        twice. Starts in a time are counted when they are asked for.
        """
        if self._parking is None or claim.count is not None:
            return False
        return not self.reached.lately(claim.group)

    async def withdraw(self, execution_id: str) -> bool:
        """
        Wait no longer; False where the place was given meanwhile. Another server may begin the
        same execution under it (one key at two servers): it is not taken away (LIMIT-3).
        """
        await self._limits.withdraw(execution_id)
        places = await self._limits.places(execution_id)
        return not any(one.place == 0 and not one.holder for one in places)

    async def give_back(self, execution_id: str, holder: str = "") -> None:
        """What was asked for an execution that had ended, or for a token that is gone (LIMIT-3)."""
        try:
            await self._limits.release(execution_id, holder)
        except NoetlError as away:  # it ends with the execution, or with the next sweep
            self._says(f"a place that nobody needs is not given back: {away}")
        self._free.set()

    async def before(self, answer: r.LimitAnswer, execution_id: str) -> list[str]:
        """Older executions under the same key that have not ended, oldest first."""
        names = await self._limits.holders(answer.limit, answer.key)
        # Whoever came later stops this one, not the other way round.
        return names[: names.index(execution_id)] if execution_id in names else []

    def ask(self, claim: LimitClaim | None) -> "asyncio.Future[int]":
        """
        One question at a time: whatever comes meanwhile goes into the next. Whoever asks for None
        hears when all that was asked before has its answer.
        """
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked.append((claim, future))
        if not self._asking:
            self._asking = True
            self._server.chore(self._ask_all())
        return future

    async def _ask_all(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                await self._take(asked)
        finally:
            self._asking = False

    async def _take(self, asked: list[tuple[LimitClaim | None, asyncio.Future[int]]]) -> None:
        claims = [claim for claim, _ in asked if claim is not None]
        try:
            given = await self._limits.take(claims) if claims else []
            places: dict[LimitClaim | None, int] = {None: 0}
            places.update(zip(claims, given, strict=True))
        except Exception as away:  # whoever asked is told, and the next are asked for
            for _, future in asked:
                if not future.done():
                    future.set_exception(away)
            return
        if any(given):
            self._none_waits = False
        for claim, future in asked:
            place = places[claim]
            if place and claim is not None and not claim.holder:
                self.reached.note(claim.group)
            if not future.done():
                future.set_result(place)

    async def place_for(self, claim: LimitClaim) -> None:
        """Returns when a claim has its place; whoever wants it no more cancels this."""
        name, loop = (claim.execution_id, claim.holder), asyncio.get_running_loop()
        while True:
            try:
                if await self.ask(claim) == 0:
                    return
            except NoetlError:
                await asyncio.sleep(LOOK)
                continue
            came = self._awaited[name] = loop.create_future()
            self._watch()
            try:
                if await came:
                    return
            finally:
                self._awaited.pop(name, None)

    def look_again(self, commit: Commit | None = None) -> None:
        """Somebody gave a place back."""
        del commit
        self._free.set()

    # ── what is decided ──────────────────────────────────────────────────────────────────────

    def follow(self, active: ActiveExecution, events: list[e.Event], commit: Commit) -> None:
        kinds = set(map(type, events))
        if active.execution.admitted and e.ExecutionAdmitted in kinds:
            arm_execution(self._server, active)
        if not WAITING.isdisjoint(kinds):
            commit.add_done_callback(partial(_ask_when_committed, self, active))

    def take_up(self, active: ActiveExecution) -> None:
        self._server.chore(self._ask_for(active))

    async def _ask_for(self, active: ActiveExecution) -> None:
        """Ask for all that waits in an execution: who has asked before keeps what it has."""
        if not self._server.is_active(active):
            return  # it was loaded again since: what is in memory now has asked for itself
        claims = list(claims_of(active))
        for claim in claims:
            self._waiting[claim.execution_id, claim.holder] = active
        try:
            places = await asyncio.gather(*(self.ask(claim) for claim in claims))
        except NoetlError:
            self._unsure[active.execution.execution_id] = active
            self._watch()
            return
        if active.execution.finished and not active.uncommitted:
            await self.give_back(active.execution.execution_id)  # it ended while this was asked
            return
        for claim, place in zip(claims, places, strict=True):
            if claim.holder and not is_used(active, claim.holder, []):
                # Its run was over when this was asked: the claim is a new one, for nobody.
                self._server.chore(_give_up(self, self._server, claim.execution_id, claim.holder))
            elif place == 0:
                self._go_on(claim.execution_id, claim.holder)
        if self._parking is not None and active.execution.status == "queued" and all(places):
            for claim in claims:
                self._waiting.pop((claim.execution_id, claim.holder), None)
            self._parking.park(active)
        self._watch()

    # ── waiting ──────────────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        """Look often from now on; a server looks anyway, and is told that there is a reason."""
        if not self._waiting and not self._awaited:
            return
        if self._parking is not None:
            self._free.set()
        elif self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self.watch())

    async def watch(self) -> None:
        """Until cancelled: what is parked, whoever parked it, gets its place and an owner."""
        while self._parking is not None or self._waiting or self._awaited:
            elsewhere = await self._watch_once()
            if elsewhere and self._parking is not None:
                await self._parking.adopt()

    async def _watch_once(self) -> bool:
        """Wait a little and look; whether somebody who is not waiting here got a place."""
        often = self._waiting or self._awaited or self._unsure
        with suppress(TimeoutError):
            await asyncio.wait_for(self._free.wait(), LOOK if often else IDLE)
        if self._none_waits and not often:
            await asyncio.sleep(REST)
        self._free.clear()
        try:
            return await self._look()
        except NoetlError as away:
            self._says(f"waits for the limits: {away}")
            self._unsure |= {name: active for (name, _), active in self._waiting.items()}
            for name in list(self._awaited):
                self._tell(name, False)
            await asyncio.sleep(LOOK)
        except Exception as fault:  # promise 7
            self._says(f"a fault of NoETL itself: {type(fault).__name__}: {fault}")
            await asyncio.sleep(LOOK)
        return False

    async def _look(self) -> bool:
        for (name, holder), active in list(self._waiting.items()):
            if not self._server.is_active(active) or active.execution.finished:
                self._waiting.pop((name, holder), None)
        began = time.monotonic()
        if began >= self._sweep_at:
            await self._limits.abandoned()
            took = time.monotonic() - began
            self._sweep_at = time.monotonic() + max(SWEEP, SHARE * took)
        self._none_waits = True
        found = await self._limits.grant()
        self._none_waits = self._none_waits and found is None  # one may have been told meanwhile
        named = found or ()
        elsewhere = any(one not in self._waiting and one not in self._awaited for one in named)
        unsure, self._unsure = self._unsure, {}
        for active in unsure.values():
            self.take_up(active)
        if self._waiting or self._awaited:
            for name, holder in await self._limits.granted():
                self._go_on(name, holder)
        return elsewhere

    def _tell(self, name: tuple[str, str], granted: bool) -> None:
        came = self._awaited.get(name)
        if came is not None and not came.done():
            came.set_result(granted)

    def _go_on(self, execution_id: str, holder: str) -> None:
        self._tell((execution_id, holder), True)
        active = self._waiting.pop((execution_id, holder), None)
        if active is None or not self._server.is_active(active):
            return
        taken = self._server.receive(active, r.LimitGranted(holder=holder))

        def loaded(commit: Commit) -> None:
            """It had to wait for what lies outside, and then nothing was recorded of it."""
            unused = isinstance(commit.exception(), PartLost) and not is_used(active, holder, [])
            if unused and holder:
                self._server.chore(_give_up(self, self._server, execution_id, holder))

        if taken.events is None:
            taken.committed.add_done_callback(loaded)
        elif holder and not is_used(active, holder, taken.events):
            self._server.chore(_give_up(self, self._server, execution_id, holder))

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)


async def asked_by_start(
    plan: Plan, payload: dict[str, Any], execution_id: str
) -> r.LimitAnswer | dict[str, Any] | None:
    """What a start asks of the playbook's limit; an error where its key cannot be told."""
    try:
        return start_asked(plan, payload, execution_id, hurried=True)
    except TakesLong:
        ask = partial(start_asked, plan, payload, execution_id)
        return await asyncio.get_running_loop().run_in_executor(slow_thread(), ask)


def start_claim(plan: Plan, asked: r.LimitAnswer, execution_id: str) -> LimitClaim:
    assert plan.limit is not None, "it asked"
    return claim_of(plan.limit.spec, plan.path, asked.key, asked.priority, execution_id)


def is_used(active: ActiveExecution, holder: str, events: list[e.Event]) -> bool:
    """Whether a place leads to a run, or is kept for a token until the end of a pause."""
    execution = active.execution
    if holder in execution.runs or any(isinstance(one, e.StepScheduled) for one in events):
        return True
    return any(f"{token.seq}.0" == holder for token in execution.tokens.values())


def claims_of(active: ActiveExecution) -> Iterator[LimitClaim]:
    """What an execution waits for now."""
    execution, plan = active.execution, active.plan
    name = execution.execution_id
    if execution.status == "queued" and plan.limit is not None:
        # It asked before it was queued: the claim is there, with its place.
        yield claim_of(plan.limit.spec, plan.path, execution.limit_key, 0, name)
    for holder, found in waiting(execution):
        limit = plan.steps[found.step].limit
        if limit is not None:
            group = f"{plan.path} {found.step}"
            yield claim_of(limit.spec, group, found.key, found.priority, name, holder)


def claim_of(
    limit: Limit, group: str, key: str, priority: int, execution_id: str, holder: str = ""
) -> LimitClaim:
    return LimitClaim(
        execution_id=execution_id,
        holder=holder,
        group=group,
        key=key,
        at_once=limit.at_once,
        total=limit.total,
        count=limit.count,
        seconds=limit.seconds,
        priority=priority,
    )


def _ask_when_committed(keeper: LimitKeeper, active: ActiveExecution, commit: Commit) -> None:
    if commit.exception() is None:
        keeper.take_up(active)


async def _give_up(keeper: LimitKeeper, server: Server, execution_id: str, holder: str) -> None:
    """A decision that was not recorded is none: loaded again, a token may ask again."""
    await keeper.give_back(execution_id, holder)
    active = server.find(execution_id)
    if active is not None and any(one.holder == holder for one in claims_of(active)):
        keeper.take_up(active)
