"""What a worker keeps out of the log, and what it gets from there (EVT-4, RES)."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from noetl.control.dispatch import Command
from noetl.messages.codec import decode_body
from noetl.messages.events import Event
from noetl.messages.fitting import Fitting
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.bodies import Bodies
from noetl.ports.result_store import ResultStore

ROOM = 32 * 1024 * 1024
"""Bytes of JSON whose values a part keeps at hand beside the events that refer to them."""

E = TypeVar("E", bound=Event)


class PartFitting:
    """The large values of one part: moved out before a report, loaded when a template asks."""

    def __init__(
        self,
        command: Command,
        plan: Plan,
        results: ResultStore,
        bodies: dict[str, Any],
        unseal: Callable[[Reference], Awaitable[Any]],
    ) -> None:
        self._results = results
        self._unseal = unseal
        self._loader: Bodies | None = None
        self._waiting: dict[str, bytes] = {}
        self._under_way: set[str] = set()
        self._stored: set[str] = set()
        self._sizes: dict[str, int] = {}
        """Of the bodies at hand that can be had again, oldest first."""
        self.bodies = bodies
        self._moves = Fitting(
            command.store,
            command.execution_id,
            plan.limits.max_payload_bytes,
            self._waiting,
            bodies,
        )

    def event(self, event: E, keep: frozenset[str]) -> E:
        """The event as the log can take it."""
        fitted = self._moves.event(event, keep)
        self._make_room()
        return fitted

    def refer(self, value: Any) -> Any:
        """RES-1 `reference_first`: the value by reference, however small."""
        return self._moves.refer(value)

    def _make_room(self) -> None:
        """What was made is at hand for the pipeline that goes on, but not without bound."""
        self._sizes.update((key, len(body)) for key, body in self._waiting.items())
        size = sum(self._sizes.values())
        for key in list(self._sizes):
            if size <= ROOM:
                return
            if key not in self._waiting:
                size -= self._sizes.pop(key)
                self.bodies.pop(key, None)

    def take_bodies(self) -> list[tuple[str, bytes]]:
        """What must be durable before the next report; an equal body is stored once."""
        taken = []
        for key in list(self._waiting):
            if key in self._stored:
                del self._waiting[key]
            elif key not in self._under_way:
                self._under_way.add(key)
                taken.append((key, self._waiting[key]))
        return taken

    def stored(self, key: str) -> None:
        """It can be had from the store from now on."""
        self._stored.add(key)
        self._under_way.discard(key)
        self._waiting.pop(key, None)

    async def load(self, reference: Reference) -> Any:
        """The value behind a reference, for templates and tools."""
        if reference.key in self.bodies:
            return self.bodies[reference.key]
        if reference.sealed is not None:
            self.bodies[reference.key] = await self._unseal(reference)
        elif reference.key in self._waiting:
            self.bodies[reference.key] = decode_body(self._waiting[reference.key], reference)
        else:
            self._loader = self._loader or Bodies(self._results)
            self.bodies[reference.key] = await self._loader.load(reference)
        return self.bodies[reference.key]

    async def resolved(self, value: Any) -> Any:
        """The value with every reference in it replaced by what it refers to (RES-2)."""
        if isinstance(value, Reference):
            return await self.resolved(await self.load(value))
        if isinstance(value, dict):
            return {key: await self.resolved(below) for key, below in value.items()}
        if isinstance(value, list):
            return [await self.resolved(below) for below in value]
        return value
