"""The values behind references: loaded when first touched, kept while there is room (RES-2)."""

import asyncio
from collections import OrderedDict
from math import inf
from typing import Any

from noetl.errors import BodyLost
from noetl.expression.limits import LARGEST_LOADED
from noetl.messages.reference import Reference
from noetl.messages.references import chunks_of, in_chunks
from noetl.ports.result_store import ResultStore

ROOM = 64 * 1024 * 1024
"""Bytes of JSON whose values are kept."""
TOO_LONG = (
    f"the list {{}} has more than {LARGEST_LOADED // 1024**2} MiB, which no server loads for a "
    "template: let a task of the step look at it"
)
NAMED = 4096
"""Bytes that a chunk counts for beside what is in it: many empty ones take their time, too."""


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
        self._loading: dict[tuple[str, float], asyncio.Task[Any]] = {}

    async def load(
        self, reference: Reference, *, patience: float | None = None, largest: float = inf
    ) -> Any:
        """
        The value; raises BodyLost, ResultsUnavailable. `largest` bounds a list in chunks, whose
        reference says how large their names are, and no more.
        """
        key = reference.key
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][1]
        name = (key, largest)
        if name not in self._loading:
            loading = asyncio.create_task(self._load(reference, patience, largest))
            self._loading[name] = loading
            loading.add_done_callback(lambda done: self._loaded(name, done))
        # Who gives up waiting does not stop it for the others.
        return await asyncio.shield(self._loading[name])

    async def look_into(self, reference: Reference) -> Any:
        """The same for a template of a server, which loads nothing huge for one (TPL-5)."""
        return await self.load(reference, largest=LARGEST_LOADED)

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

    def _loaded(self, name: tuple[str, float], done: "asyncio.Task[Any]") -> None:
        del self._loading[name]
        if not done.cancelled():
            done.exception()  # those who wait hear it, if anybody still does

    async def _load(self, reference: Reference, patience: float | None, largest: float) -> Any:
        if not in_chunks(reference):
            value, size = await self._store.fetch(reference, patience=patience), reference.size
        else:
            value, size = await self._joined(reference, patience, largest)
        self.keep(reference, value, size)
        return value

    async def _joined(
        self, reference: Reference, patience: float | None, largest: float
    ) -> tuple[list[Any], int]:
        """
        A chunk may be a list in chunks itself: what a loop appended to (LOOP-5). So a few that
        name each other many times may be a list of any length.
        """
        elements: list[Any] = []
        size = looked = 0
        ahead = [reference]
        while ahead:
            chunk = ahead.pop()
            looked += NAMED + chunk.size
            if looked > largest:
                raise BodyLost(TOO_LONG.format(f"{reference.store}:{reference.key}"))
            value = await self._store.fetch(chunk, patience=patience)
            if in_chunks(chunk):
                ahead += reversed(chunks_of(value))
            elif isinstance(value, list):
                elements += value
                size += chunk.size
            else:
                raise BodyLost(f"the chunk {chunk.store}:{chunk.key} of a list is none itself")
        return elements, size
