"""A server process: a control plane, the dispatcher to workers elsewhere, and what the API asks."""

import asyncio
import os
import time
from collections import Counter
from contextlib import suppress
from typing import Any, get_args

from noetl import __version__
from noetl.control.execution import Status
from noetl.errors import NoetlError
from noetl.node.answers import Answers
from noetl.node.control_plane import ControlPlane, Says
from noetl.node.housekeeping import Housekeeping
from noetl.node.link_keys import LinkKeys
from noetl.node.opening import (
    lock_home,
    open_local_storage,
    open_results,
    open_settings_storage,
)
from noetl.node.trigger_ends import EndWatch
from noetl.node.trigger_subjects import SubjectWatch
from noetl.node.triggers import TriggerStarts
from noetl.node.watchdog import Watchdog
from noetl.ports.link import Switchboard
from noetl.ports.object_store import HeldStore
from noetl.ports.result_store import ResultStore
from noetl.ports.roster import ServerRow, WorkerRow
from noetl.ports.storage import Storage
from noetl.server.dispatcher import Dispatcher
from noetl.server.pools import PoolKeeper
from noetl.settings import Settings
from noetl.worker.through import run_through

ROSTER = 3.0
"""Seconds between two entries into the list of who is there."""

SILENT = 5.0
"""Seconds without an answer of the log after which a server is not ready."""


class ServerNode(ControlPlane):
    """A server process: control plane, dispatcher to workers elsewhere, and what the API asks."""

    def __init__(
        self, settings: Settings, storage: Storage, *, results: ResultStore, says: Says = print
    ) -> None:
        super().__init__(settings, storage, results=results, adopts=True, says=says)
        self.dispatcher = Dispatcher(
            self.server,
            name=storage.owners.me,
            version=__version__,
            printed=storage.printed,
            through=run_through,
            bring=self.ownership.bring,
            ask=Answers(self).answer,
            sure=self.ownership.sure,
            ttl=settings.lease_ttl,
        )
        self.server.runner = self.dispatcher
        self.pools = PoolKeeper(self.server, self.limits, storage, says)
        self.dispatcher.watch_pools(self.pools)
        self.ownership.released = self._released
        self.ownership.taken_up = self.pools.take_up
        self.watchdog = Watchdog()
        self.housekeeping = Housekeeping(self)
        self.starts = TriggerStarts(self)
        self.ends = EndWatch(self, self.starts)
        self.starts.ends = self.ends.look
        self.refused: Counter[str] = Counter()
        """Messages of workers, by the reason for which they were not heard."""
        self.dispatcher.refuses = self.refuses
        self.address = ""
        """Where others reach it; known once it listens."""
        self._began = int(time.time() * 1000)
        self._lock: int | None = None
        self._switchboard: Switchboard | None = None

    @classmethod
    async def open(cls, settings: Settings, *, says: Says = print) -> "ServerNode":
        """Wait for database and queue, where they are away, and begin to serve."""
        lock = lock_home(settings)
        storage = await open_settings_storage(settings, says)
        node = cls(settings, storage, results=open_results(settings), says=says)
        node._lock = lock
        await node.serve()
        return node

    def _released(self, execution_id: str) -> None:
        self.dispatcher.keeper.release(execution_id)
        self.pools.forget(execution_id)

    async def serve(self) -> None:
        await self.pools.refresh()
        await self.ownership.begin()
        if self.settings.queue is not None:
            from noetl.adapters.nats.switchboard import NatsSwitchboard

            switchboard: Switchboard = NatsSwitchboard(
                self.settings.queue,
                self.dispatcher,
                says=self.says,
                keys=LinkKeys(self.keychain, self.storage.tokens).find,
                demands=self.settings.auth,
                refuses=self.refuses,
            )
            await switchboard.open()
            self._switchboard = switchboard
            self.dispatcher.notifiers.append(switchboard.notifier)
            self.dispatcher.reachable = lambda: switchboard.there
        watch = self.ownership.watch
        self.go(
            self.dispatcher.watch, watch, self._enter, self.housekeeping.watch, self.watchdog.watch
        )
        self.go(SubjectWatch(self, self.starts).watch, self.starts.watch, self.pools.watch)
        self.go(self.limits.watch)
        if isinstance(self.results.objects, HeldStore):
            self.go(self._hold_results)

    async def _hold_results(self) -> None:
        if isinstance(self.results.objects, HeldStore):
            await self.results.objects.hold(self.says)

    async def close(self) -> None:
        """Stop taking, write what waits, hand over."""
        await self.halt()
        await self.pools.close()
        if self._switchboard is not None:
            await self._switchboard.close()
        await self.dispatcher.keeper.record_claims()
        with suppress(NoetlError):
            await self.storage.roster.server_gone(self.name)
            await self.ownership.hand_over()
        await super().close()
        if self._lock is not None:  # the last of all: the next server finds everything done
            os.close(self._lock)
            self._lock = None

    def health(self) -> dict[str, Any]:
        """Ready while it does not stop, and the log and the queue are there."""
        waits = []
        if self.closing.is_set():
            waits.append("this server stops")
        if time.monotonic() - self.ownership.looked > SILENT:
            waits.append("the log does not answer")
        if self._switchboard is not None and not self._switchboard.there:
            waits.append("the queue does not answer")
        return {"live": True, "ready": not waits, "waits_for": waits}

    async def counts(self) -> dict[str, Any]:
        executions = self.storage.executions
        return {
            "executions": {status: await executions.count(status) for status in get_args(Status)},
            "owned": len(self.server.owned),
            "parts_waiting": self.dispatcher.parts.pools(),
            "leases": len(self.dispatcher.leases),
            "workers": len(self.dispatcher.granting.seen),
            "uncommitted": self.server.appender.uncommitted,
            "messages_refused": dict(self.refused),
            "calls_unproved": dict(self.unproved),
            "errors_passed": self.server.errors_passed,
            "failures_handled": self.server.failures_handled,
            "longest_stall_ms": self.watchdog.longest_ms,
            "removed": dict(self.housekeeping.counts),
            "set_aside": dict(self.ownership.aside),
        }

    def refuses(self, reason: str) -> None:
        """What came from no worker of ours, or was not a worker's to say: counted, said once."""
        self.refused[reason] += 1
        if self.refused[reason] == 1:
            self.says(f"a message to workers' ports was refused ({reason}); more are counted only")

    def refuse_call(self, path: str, reason: str) -> None:
        """A call of a hook that proved nothing: counted by trigger, the reason is said once."""
        self.unproved[path] += 1
        self.unproved_why[path] = reason
        if self.unproved[path] == 1 and path:
            self.says(f"a call of the hook '{path}' was refused ({reason}); more are counted only")

    async def _enter(self) -> None:
        """Keep the list of who is there."""
        roster = self.storage.roster
        while True:
            now = int(time.time() * 1000)
            await roster.server_seen(
                ServerRow(
                    name=self.name,
                    address=self.address,
                    version=__version__,
                    started_at=self._began,
                    seen_at=now,
                )
            )
            for seen in list(self.dispatcher.granting.seen.values()):
                await roster.seen(
                    WorkerRow(
                        name=seen.name,
                        pool=seen.pool,
                        slots=seen.slots,
                        version=seen.version,
                        host=seen.host,
                        pid=seen.pid,
                        started_at=int(seen.since * 1000),
                        seen_at=int(seen.at * 1000),
                        busy=self.dispatcher.leases.load_of(seen.name),
                        server=self.name,
                    )
                )
            await asyncio.sleep(ROSTER)


class LookingNode(ServerNode):
    """A home that is looked at: it answers what a server does, and owns, adopts, starts nothing."""

    @classmethod
    async def open(cls, settings: Settings, *, says: Says = print) -> "LookingNode":
        storage = await open_local_storage(settings, looking=True)
        return cls(settings, storage, results=open_results(settings, local=True), says=says)

    async def close(self) -> None:
        await ControlPlane.close(self)  # nobody was told that it is there

    def health(self) -> dict[str, Any]:
        return {"live": True, "ready": True, "waits_for": []}
