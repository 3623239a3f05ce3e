"""
Who looks for outcomes that are kept, and keeps new ones (CACHE-1).

An outcome is kept when the row that records it is committed, never before: an entry tells of
something that happened. A server that dies between the two keeps nothing, and the task runs again.
"""

import asyncio
import hashlib
from collections.abc import Callable, Iterable

import msgspec

from noetl.errors import NoetlError
from noetl.messages import events as e
from noetl.messages.codec import decode, encode
from noetl.messages.outcome import CacheHit
from noetl.messages.references import references_in
from noetl.pipeline.drive import KEPT
from noetl.playbook.caching import LONGEST
from noetl.playbook.plan import Plan
from noetl.ports.cache import CacheEntries, CacheEntry, CacheIdentity
from noetl.ports.commit import Commit
from noetl.server.active import ActiveExecution
from noetl.server.timers import now

POOL = "default"


class TaskCache:
    """The kept outcomes, as the executions of one server see them."""

    def __init__(self, entries: CacheEntries, says: Callable[[str], None]) -> None:
        self._entries = entries
        self._says = says
        self._keeping: dict[asyncio.Task[None], ActiveExecution] = {}

    async def find(self, active: ActiveExecution, task: str, key: str) -> CacheHit | None:
        """What is kept for this task of the execution's playbook under this key."""
        identity = identity_of(active.plan, task, key)
        if identity is None:
            return None
        mine = [task for task, of in self._keeping.items() if of is active]
        await asyncio.gather(*mine, return_exceptions=True)  # what it recorded before is found
        entry = await self._entries.find(identity, now())
        if entry is None:
            return None
        outcome = decode(entry.outcome)
        sources = sources_of(outcome)
        if sources:
            # Its bodies must stay as long as this execution does. If the entry is there after
            # that was said, they were there all the time.
            await self._entries.use(active.execution.execution_id, sources)
            if await self._entries.find(identity, now()) is None:
                return None
        return CacheHit(key, entry.execution_id, entry.kept_at, outcome)

    def follow(self, active: ActiveExecution, events: list[e.Event], commit: Commit) -> None:
        """Keep what these events recorded, once they are committed."""
        done = [one for one in events if type(one) is e.TaskDone and is_kept(one)]
        if done:
            commit.add_done_callback(lambda made: self._committed(active, done, made))

    def _committed(self, active: ActiveExecution, done: list[e.TaskDone], commit: Commit) -> None:
        if commit.exception() is None:
            keeping = asyncio.get_running_loop().create_task(self._keep_all(active, done))
            self._keeping[keeping] = active
            keeping.add_done_callback(self._keeping.pop)

    async def _keep_all(self, active: ActiveExecution, done: Iterable[e.TaskDone]) -> None:
        for event in done:
            try:
                await self._keep(active, event)
            except NoetlError as away:  # it is recorded; the next run finds nothing
                self._says(f"an outcome of '{event.task}' is not kept: {away}")
                return

    async def close(self) -> None:
        """Returns when everything that was recorded is kept."""
        await asyncio.gather(*self._keeping, return_exceptions=True)

    async def _keep(self, active: ActiveExecution, done: e.TaskDone) -> None:
        """The server knows the playbook itself: of the worker's words only the key is taken."""
        task = done.cache.get("task", "")
        identity = identity_of(active.plan, task, done.cache.get("key", ""))
        outcome = {key: value for key, value in done.outcome.items() if key != "meta"}
        sealed = any(one.sealed is not None for one in references_in(outcome))
        if identity is None or sealed or not task.startswith(f"{done.step}."):
            return
        text, at = encode(outcome), now()
        entry = CacheEntry(
            **msgspec.structs.asdict(identity),
            execution_id=active.execution.execution_id,
            kept_at=at,
            expires_at=at + int(active.plan.cached[task].ttl * 1000),
            size=len(text),
            outcome=text,
        )
        await self._entries.keep(entry, sources_of(outcome))


def identity_of(plan: Plan, task: str, key: str) -> CacheIdentity | None:
    cache = plan.cached.get(task)
    if cache is None or not 0 < len(key) <= LONGEST:
        return None
    return CacheIdentity(plan.path, task, key, fingerprint_in(plan, cache.fingerprint))


def fingerprint_in(plan: Plan, fingerprint: str) -> str:
    """
    With whose workers and whose credentials: no worker of one pool keeps what those of another are
    given, and another account behind the same name is another outcome.
    """
    entries = [[one.name, one.kind, one.provider, one.key, one.fields] for one in plan.keychain]
    if plan.executor.pool == POOL and not entries:
        return fingerprint
    around = [fingerprint, plan.executor.pool, entries]
    text = msgspec.json.encode(around, order="deterministic", enc_hook=str)
    return hashlib.sha256(text).hexdigest()[: len(fingerprint)]


def is_kept(done: e.TaskDone) -> bool:
    return bool(done.cache) and done.do in KEPT and done.outcome["status"] == "ok"


def sources_of(outcome: object) -> frozenset[str]:
    """The executions in whose folders the bodies of an outcome are."""
    return frozenset(one.key.partition("/")[0] for one in references_in(outcome))
