"""Plans of playbooks, each made once and kept while there is room (TPL-4)."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial

from noetl.playbook.plan import Plan
from noetl.ports.large import read_off_loop

ROOM = 4_000_000
"""Characters of playbooks whose plans are kept; what runs keeps its own."""


class Plans:
    """The plans that were asked for last, by the digests of their texts."""

    def __init__(self, make: Callable[[str], Plan], room: int = ROOM) -> None:
        self._make = make
        self._room = room
        self._kept: OrderedDict[str, tuple[int, Plan]] = OrderedDict()
        self._size = 0
        self._making: dict[str, asyncio.Task[Plan]] = {}

    def find(self, digest: str) -> Plan | None:
        kept = self._kept.get(digest)
        if kept is None:
            return None
        self._kept.move_to_end(digest)
        return kept[1]

    def keep(self, digest: str, text: str, plan: Plan) -> None:
        self._size += len(text) - self._kept.pop(digest, (0, plan))[0]
        self._kept[digest] = (len(text), plan)
        while self._size > self._room and len(self._kept) > 1:
            _, (size, _) = self._kept.popitem(last=False)
            self._size -= size

    async def by(self, digest: str, text_of: Callable[[], Awaitable[str]]) -> Plan:
        """The plan of a text that is fetched where it is not known; of many one makes it."""
        plan = self.find(digest)
        if plan is not None:
            return plan
        making = self._making.get(digest)
        # One that has failed is nobody's answer but theirs who waited: whoever comes after it asks
        # anew, in the same turn of the loop too, in which it is not forgotten yet.
        if making is None or making.done():
            making = self._making[digest] = asyncio.create_task(self._fetched(digest, text_of))
            making.add_done_callback(partial(self._forget, digest))
        return await asyncio.shield(making)

    def _forget(self, digest: str, made: asyncio.Task[Plan]) -> None:
        if self._making.get(digest) is made:
            del self._making[digest]

    async def _fetched(self, digest: str, text_of: Callable[[], Awaitable[str]]) -> Plan:
        text = await text_of()
        plan = await self.made(text)
        self.keep(digest, text, plan)
        return plan

    async def made(self, text: str, make: Callable[[str], Plan] | None = None) -> Plan:
        return await read_off_loop(len(text), make or self._make, text)
