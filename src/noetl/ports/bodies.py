"""The values behind references: fetched when first touched, kept while there is room (RES-2)."""

import asyncio
from collections import OrderedDict
from typing import Any
from weakref import WeakValueDictionary

from noetl.messages.reference import Reference
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
        self._loading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def load(self, reference: Reference) -> Any:
        """The value; raises BodyLost."""
        # Parts of one loop ask for its collection at the same moment: it is fetched once.
        async with self._loading.setdefault(reference.key, asyncio.Lock()):
            if reference.key not in self._kept:
                value = await self._store.fetch(reference)
                if in_chunks(reference):
                    parts = [await self._store.fetch(chunk) for chunk in chunks_of(value)]
                    value = joined(parts)
                self._keep(reference, value)
            return self._found(reference)

    def load_now(self, reference: Reference) -> Any:
        """The same without awaiting."""
        if reference.key not in self._kept:
            value = self._store.fetch_now(reference)
            if in_chunks(reference):
                value = joined([self._store.fetch_now(chunk) for chunk in chunks_of(value)])
            self._keep(reference, value)
        return self._found(reference)

    def _found(self, reference: Reference) -> Any:
        self._kept.move_to_end(reference.key)
        return self._kept[reference.key][1]

    def _keep(self, reference: Reference, value: Any) -> None:
        self._size += reference.size - self._kept.pop(reference.key, (0, None))[0]
        self._kept[reference.key] = (reference.size, value)
        while self._size > self._room and len(self._kept) > 1:
            _, (size, _) = self._kept.popitem(last=False)
            self._size -= size


def in_chunks(reference: Reference) -> bool:
    return (reference.schema_hint or "").startswith("chunks[")


def chunks_of(manifest: Any) -> list[Reference]:
    return [Reference(**fields) for fields in manifest["chunks"]]


def joined(parts: list[list[Any]]) -> list[Any]:
    return [value for part in parts for value in part]
