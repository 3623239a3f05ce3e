"""Starts what messages of NATS ask for; a message is acknowledged after the commit (START-5)."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from noetl.errors import LimitReached, NoetlError
from noetl.messages.details import refuse_detailed
from noetl.node.triggers import PASSING, TriggerStarts
from noetl.playbook.triggers import Subject, Trigger
from noetl.ports.large import off_loop
from noetl.ports.triggers import Noted, TriggerRow
from noetl.server.triggering import now_ms

if TYPE_CHECKING:
    from noetl.adapters.nats.subjects import KeptMessage, SubjectFeed, Verdict
    from noetl.node.control_plane import ControlPlane

LOOK: Final = 1.0
"""Seconds between two looks for triggers that came, went or were paused."""
DELIVERIES: Final = 5
"""How often a message may come that starts nothing; then it is set aside."""
PAGE: Final = 200


class SubjectWatch:
    """Follows the subject of every trigger that has one, on every server alike."""

    def __init__(self, plane: "ControlPlane", starts: TriggerStarts) -> None:
        self._plane = plane
        self._starts = starts
        self._feed: SubjectFeed | None = None
        self._following: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._made: dict[str, Trigger] = {}
        """Triggers whose consumers were made here; they go when their triggers do."""

    async def watch(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK)
        finally:
            await self.close()

    async def close(self) -> None:
        await self._stop(list(self._following))
        if self._feed is not None:
            await self._feed.close()

    async def look(self) -> None:
        """Follow what is there, and nothing else."""
        wanted: dict[tuple[str, int], TriggerRow] = {}
        there: set[str] = set()
        after: str | None = None
        table = self._plane.storage.triggers
        while rows := await table.page(kind="subject", after=after, limit=PAGE):
            wanted |= {(row.path, row.version): row for row in rows if not row.paused}
            there.update(row.path for row in rows)
            after = rows[-1].path
        await self._stop([one for one in self._following if one not in wanted])
        for path in self._made.keys() - there:
            await self._forget(self._made.pop(path))
        for name, row in wanted.items():
            if name not in self._following or self._following[name].done():
                trigger = await self._starts.readable(row)
                if trigger is None:
                    continue
                self._made[row.path] = trigger
                follow = asyncio.get_running_loop().create_task(self._follow(trigger))
                self._following[name] = follow

    async def _follow(self, trigger: Trigger) -> None:
        on = trigger.on
        assert isinstance(on, Subject), "its kind says so"
        if self._plane.settings.queue is None:
            why = "this server has no queue: a subject needs NOETL_QUEUE=nats://…"
            self._starts.note(trigger.path, Noted(at=now_ms(), why=why))
            await self._plane.closing.wait()
            return

        async def take(message: "KeptMessage") -> "Verdict":
            return await self._take(trigger, message)

        await self._opened(self._plane.settings.queue).follow(
            on.subject, take, stream=on.stream, durable=on.durable or own_consumer(trigger)
        )

    async def _forget(self, trigger: Trigger) -> None:
        """A consumer that the author named may be somebody else's, too: it stays."""
        if self._feed is not None and isinstance(trigger.on, Subject) and not trigger.on.durable:
            await self._feed.forget(
                trigger.on.subject, stream=trigger.on.stream, durable=own_consumer(trigger)
            )

    def _opened(self, url: str) -> "SubjectFeed":
        if self._feed is None:
            from noetl.adapters.nats.subjects import SubjectFeed

            self._feed = SubjectFeed(url, says=self._plane.says)
        return self._feed

    async def _take(self, trigger: Trigger, message: "KeptMessage") -> "Verdict":
        now = now_ms()
        where = f"{message.stream}:{message.seq}"
        try:
            data = await off_loop(len(message.body), data_in, message.body)
            row = await self._starts.start(
                trigger, where, at=now, data=data, headers=message.headers
            )
        except PASSING:
            return "later"
        except LimitReached as full:  # nothing is wrong with it: it comes until there is a place
            noted = Noted(at=now, why=f"message {where} comes again: {full}")
            self._starts.note(trigger.path, noted)
            return "later"
        except NoetlError as why:
            last = message.delivered >= DELIVERIES
            said = "was set aside" if last else f"came {message.delivered} times"
            noted = Noted(at=now, why=f"message {where} {said}: {why}")
            self._starts.note(trigger.path, noted)
            return "aside" if last else "later"
        self._starts.note(trigger.path, Noted(at=now, execution_id=row.execution_id))
        return "done"

    async def _stop(self, names: list[tuple[str, int]]) -> None:
        tasks = [self._following.pop(name) for name in names]
        for task in tasks:
            task.cancel()
        # Whoever waits here may be told to stop, too: that is not lost among theirs.
        await asyncio.gather(*tasks, return_exceptions=True)


def own_consumer(trigger: Trigger) -> str:
    return f"noetl-{trigger.path}"


def data_in(body: bytes) -> Any:
    """
    What templates see as `trigger.data`: JSON where it is some, else text. Raises TooDetailed for
    JSON that would keep others waiting.
    """
    if body.lstrip()[:1] in (b"[", b"{"):
        refuse_detailed(body)
    try:
        return msgspec.json.decode(body) if body else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return body.decode("utf-8", errors="replace")
