"""Says everything on a queue again, nine times, late and in any order (T10)."""

import asyncio
import random
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from noetl.adapters.nats.library import FAULTS, Client, Msg

COPIES = 9
LATEST = 0.3
MARK = "Echo"
"""Header of what was said again: an echo has none."""
QUEUED = "$JS."
"""What JetStream hands out it hands out again by itself; nobody else may."""


class Echo:
    """On a loop and a connection of its own."""

    def __init__(self, url: str, subject: str, seed: int) -> None:
        self._url, self._subject = url, subject
        self._chance = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._client = Client()
        self.heard = 0
        self._is_over = False
        self._saying: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._on_loop(self._open())

    def _on_loop(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _open(self) -> None:
        await self._client.connect(self._url)
        for subject in (self._subject, "_INBOX.noetl.>"):
            await self._client.subscribe(subject, cb=self._hear)
        await self._client.flush()

    async def _hear(self, message: Msg) -> None:
        marked = message.headers is not None and MARK in message.headers
        if marked or message.reply.startswith(QUEUED):
            return
        self.heard += 1
        for _ in range(COPIES):
            self._loop.call_later(self._chance.random() * LATEST, self._say, message)

    def _say(self, message: Msg) -> None:
        if self._is_over:  # its time came after the end: nobody would wait for it
            return
        task = self._loop.create_task(self._publish(message))
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)

    async def _publish(self, message: Msg) -> None:
        headers = {**(message.headers or {}), MARK: "1"}
        try:
            await self._client.publish(message.subject, message.data, message.reply, headers)
        except FAULTS:
            return

    async def _stop(self) -> None:
        self._is_over = True
        await self._client.close()
        await asyncio.gather(*self._saying)

    def close(self) -> None:
        self._on_loop(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def echoing(url: str, subject: str = "noetl.>", seed: int = 1) -> Iterator[Echo]:
    """Everything below a subject, and every answer, until the end of the `with`."""
    echo = Echo(url, subject, seed)
    try:
        yield echo
    finally:
        echo.close()
