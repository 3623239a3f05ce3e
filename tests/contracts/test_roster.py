"""What the roster of servers and workers promises."""

from typing import Any

import pytest
from tests.contracts.homes import Homes

from noetl.ports.roster import ServerRow, WorkerRow


def worker(name: str, **fields: Any) -> WorkerRow:
    usual: dict[str, Any] = {"pool": "default", "slots": 4, "version": "1", "host": "h", "pid": 7}
    times = {"started_at": 1_760_000_000_000, "seen_at": 1_760_000_000_000}
    return WorkerRow(name=name, **(usual | times | fields))


def server(name: str, **fields: Any) -> ServerRow:
    usual: dict[str, Any] = {
        "address": "http://127.0.0.1:1",
        "version": "1",
        "started_at": 1,
        "seen_at": 1,
    }
    return ServerRow(name=name, **(usual | fields))


async def test_a_worker_is_seen_as_it_was_last(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert list(await home.roster.workers()) == []
    for row in (worker("b"), worker("a"), worker("b", busy=3, server="s1", seen_at=9, pool="gpu")):
        await home.roster.seen(row)
    now = worker("b", busy=3, server="s1", seen_at=9, pool="gpu")
    assert list(await other.roster.workers()) == [worker("a"), now]
    await other.roster.gone("a")
    await other.roster.gone("a")
    assert list(await home.roster.workers()) == [now]


async def test_a_server_is_seen_as_it_was_last(homes: Homes) -> None:
    home, other = await homes.open(), await homes.open()
    assert list(await home.roster.servers()) == []
    for row in (server("b"), server("a"), server("b", address="http://127.0.0.1:2", seen_at=5)):
        await home.roster.server_seen(row)
    now = server("b", address="http://127.0.0.1:2", seen_at=5)
    assert list(await other.roster.servers()) == [server("a"), now]
    await other.roster.server_gone("a")
    await other.roster.server_gone("a")
    assert list(await home.roster.servers()) == [now]


@pytest.mark.parametrize(
    ("since", "names"),
    [(None, ["a", "b", "c"]), (10, ["a", "b", "c"]), (11, ["b", "c"]), (31, [])],
)
async def test_those_seen_since(homes: Homes, since: int | None, names: list[str]) -> None:
    home = await homes.open()
    for name, seen_at in (("a", 10), ("b", 20), ("c", 30)):
        await home.roster.seen(worker(name, seen_at=seen_at))
        await home.roster.server_seen(server(name, seen_at=seen_at))
    assert [row.name for row in await home.roster.workers(since_ms=since)] == names
    assert [row.name for row in await home.roster.servers(since_ms=since)] == names
