"""The values behind references: loaded when first touched, kept while there is room (RES-2)."""

import asyncio
from collections import OrderedDict
from typing import Any

from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, in_chunks, joined
from noetl.ports.result_store import ResultStore

ROOM = 64 * 1024 * 1024
"""Bytes of JSON whose values are kept."""


class Bodies:
    """
    The last values of one store, for everybody in a process: nobody may change them. Many who ask
    for one body at once cause one load. A list in chunks comes back whole.
    """

    def __init__(self, store: ResultStore, room: int = ROOM) -> None:
        self._store = store
        self._room = room
        self._kept: OrderedDict[str, tuple[int, Any]] = OrderedDict()
        self.at_hand: dict[str, Any] = {}
        self._size = 0
        self._loading: dict[str, asyncio.Task[Any]] = {}

    async def load(self, reference: Reference, *, patience: float | None = None) -> Any:
        """The value; raises BodyLost, ResultsUnavailable."""
        key = reference.key
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        if key not in self._loading:
            loading = asyncio.create_task(self._load(reference, patience))
            self._loading[key] = loading
            loading.add_done_callback(lambda done: self._loaded(key, done))
        # Who gives up waiting does not stop it for the others.
        return await asyncio.shield(self._loading[key])

    def keep(self, reference: Reference, value: Any, size: int | None = None) -> None:
        """Whoever made a body need not load it again."""
        self._size -= self._kept.pop(reference.key, (0, None))[0]
        self._kept[reference.key] = (reference.size if size is None else size, value)
        self.at_hand[reference.key] = value
        self._size += self._kept[reference.key][0]
        while self._size > self._room:
            key, (gone, _) = self._kept.popitem(last=False)
            del self.at_hand[key]
            self._size -= gone

    def _loaded(self, key: str, done: "asyncio.Task[Any]") -> None:
        del self._loading[key]
        if not done.cancelled():
            done.exception()  # those who wait hear it, if anybody still does

    async def _load(self, reference: Reference, patience: float | None) -> Any:
        value, size = await self._whole(reference, patience)
        self.keep(reference, value, size)
        return value

    async def _whole(self, reference: Reference, patience: float | None) -> tuple[Any, int]:
        """A chunk may be a list in chunks itself: what a loop appended to (LOOP-5)."""
        value = await self._store.fetch(reference, patience=patience)
        if not in_chunks(reference):
            return value, reference.size
        parts = [await self._whole(chunk, patience) for chunk in chunks_of(value)]
        return joined([part for part, _ in parts]), sum(size for _, size in parts)
