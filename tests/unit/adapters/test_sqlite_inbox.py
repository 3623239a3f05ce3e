"""What an idle process does while it waits for notes of others: next to nothing."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.contracts.homes import decision, row

from noetl.adapters.sqlite import inbox
from noetl.adapters.sqlite.reader import SqliteReader
from noetl.adapters.sqlite.storage import open_storage


async def test_whoever_waits_asks_the_reading_thread_only_after_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty looks a second, each by two changes of thread, were most of an idle server's work."""
    home, other = await open_storage(tmp_path), await open_storage(tmp_path)
    await home.log.append(decision("x1", 0, 1, row=row("x1", owner=home.owners.me)))
    look = SqliteReader.look
    looks = 0

    async def counted(self: SqliteReader, at: Callable[[apsw.Connection], Any]) -> Any:
        nonlocal looks
        looks += 1
        return await look(self, at)

    monkeypatch.setattr(inbox, "LOOK", 0.001)
    monkeypatch.setattr(SqliteReader, "look", counted)
    assert not await home.inbox.waits(0.1)
    assert looks == 1, "nobody has written anything"
    waiting = asyncio.ensure_future(home.inbox.waits(600))
    await other.inbox.leave("x1", "cancel", {})
    assert await waiting
    assert await home.inbox.waits(600), "what nobody has read is still new"
    assert len(await home.inbox.waiting()) == 1
    assert not await home.inbox.waits(0)
    await other.close()
    await home.close()
