"""Bodies in the object store of NATS (Shelf)."""

import asyncio
import base64
import threading
from collections.abc import Awaitable, Callable, Iterator
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

from noetl.adapters.nats.library import FAULTS, api, reason_of, stream_errors
from noetl.adapters.nats.line import NatsLine, Says, silent
from noetl.adapters.nats.names import token_of
from noetl.adapters.nats.thread import LoopThread
from noetl.adapters.objects.shelf import PATIENCE, Away, tried

ANSWER = 10.0
"""Seconds for the line, and for each answer; a body has a second more for each megabyte."""
IN_MEMORY = 4_194_304
PIECE = 262_144

T = TypeVar("T")


class NatsShelf:
    """See `Shelf`. The connection lives on a thread, and is made when it is first needed."""

    name = "nats"

    def __init__(
        self, url: str, *, root: str = "noetl", says: Says = silent, patience: float = PATIENCE
    ) -> None:
        self._bucket = f"{token_of(root).replace('=', '_')}-results"
        self._patience = patience
        self._thread: LoopThread | None = None
        self._starting = threading.Lock()
        self._line = NatsLine(url, name=f"{root} results", says=says)
        self._opening: asyncio.Task[None] | None = None
        self.place = f"NATS at {self._line.place}, bucket {self._bucket}"

    def size(self, key: str) -> int:
        return int(self._tried(lambda store: store.get_info(key)).size)

    def write(self, key: str, body: IO[bytes]) -> None:
        async def put(store: Any) -> None:
            body.seek(0)
            await store.put(key, body)

        self._tried(put, makes=True)

    def read(self, key: str) -> Iterator[bytes]:
        size = self.size(key)
        with SpooledTemporaryFile(max_size=IN_MEMORY) as aside:

            async def take(store: Any) -> None:
                aside.seek(0)
                aside.truncate()
                await store.get(key, writeinto=aside)

            self._tried(take, seconds=ANSWER + size / 1_000_000)
            aside.seek(0)
            yield from iter(lambda: aside.read(PIECE), b"")

    def keys(self, prefix: str) -> list[str]:
        async def listed(store: Any) -> list[str]:
            try:
                found = await store.list(ignore_deletes=True)
            except stream_errors.NotFoundError:
                return []
            return [each.name for each in found if each.name.startswith(prefix)]

        return self._tried(listed)

    def remove(self, key: str) -> None:
        async def forget(store: Any) -> None:
            await store.delete(key)
            # The library leaves a mark for each that was deleted; here nobody asks for it.
            name = base64.urlsafe_b64encode(key.encode()).decode()
            subject = f"$O.{self._bucket}.M.{name}"
            await self._line.client.jetstream().purge_stream(f"OBJ_{self._bucket}", subject=subject)

        self._tried(forget)

    def close(self) -> None:
        if self._thread is not None:
            self._thread.run(self._close())
            self._thread.close()
            self._thread = None

    async def _close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._line.close()

    def _tried(
        self,
        act: Callable[[Any], Awaitable[T]],
        *,
        makes: bool = False,
        seconds: float = ANSWER,
    ) -> T:
        with self._starting:
            if self._thread is None:
                self._thread = LoopThread("noetl results")
            thread = self._thread
        return tried(
            self.place,
            lambda: thread.run(self._once(act, makes, seconds)),
            patience=self._patience,
        )

    async def _once(self, act: Callable[[Any], Awaitable[T]], makes: bool, seconds: float) -> T:
        try:
            async with asyncio.timeout(ANSWER):
                await self._connect()
                store = await self._store(makes)
            async with asyncio.timeout(seconds):
                return await act(store)
        except stream_errors.NotFoundError as missing:
            raise FileNotFoundError(str(missing)) from None
        except FAULTS as fault:
            raise Away(reason_of(fault)) from None

    async def _connect(self) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._line.open())
        await self._line.up.wait()

    async def _store(self, makes: bool) -> Any:
        stream = self._line.client.jetstream(timeout=ANSWER)
        try:
            return await stream.object_store(self._bucket)
        except stream_errors.NotFoundError:
            if not makes:
                raise
        return await stream.create_object_store(
            self._bucket, config=api.ObjectStoreConfig(storage=api.StorageType.FILE)
        )
