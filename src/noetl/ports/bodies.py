"""The values behind references: fetched when first touched, kept while there is room (RES-2)."""

from collections import OrderedDict
from typing import Any

from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, in_chunks, joined
from noetl.ports.result_store import ResultStore

ROOM = 64 * 1024 * 1024
"""Bytes of JSON whose values are kept."""


class Bodies:
    """Loads bodies from a store and remembers the last ones. A list in chunks comes back whole."""

    def __init__(self, store: ResultStore, room: int = ROOM) -> None:
        self._store = store
        self._room = room
        self._kept: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self._size = 0

    async def load(self, reference: Reference) -> Any:
        """The value; raises BodyLost."""
        if reference.key not in self._kept:
            self._keep(reference, await self._whole(reference))
        return self._found(reference)

    def load_now(self, reference: Reference) -> Any:
        """The same without awaiting."""
        if reference.key not in self._kept:
            self._keep(reference, self._whole_now(reference))
        return self._found(reference)

    async def _whole(self, reference: Reference) -> Any:
        """A chunk may be a list in chunks itself: what a loop appended to (LOOP-5)."""
        value = await self._store.fetch(reference)
        if not in_chunks(reference):
            return value
        return joined([await self._whole(chunk) for chunk in chunks_of(value)])

    def _whole_now(self, reference: Reference) -> Any:
        value = self._store.fetch_now(reference)
        if not in_chunks(reference):
            return value
        return joined([self._whole_now(chunk) for chunk in chunks_of(value)])

    def _found(self, reference: Reference) -> Any:
        self._kept.move_to_end(reference.key)
        return self._kept[reference.key][1]

    def _keep(self, reference: Reference, value: Any) -> None:
        self._kept[reference.key] = (reference.size, value)
        self._size += reference.size
        while self._size > self._room and len(self._kept) > 1:
            _, (size, _) = self._kept.popitem(last=False)
            self._size -= size
