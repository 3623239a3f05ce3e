"""A server that goes away and comes back: nothing is lost, nothing is written twice."""

import asyncio

import pytest
from tests.contracts.homes import PostgresHomes, answer_of, decision, taken
from tests.support.postgres import PostgresServer
from tests.unit.adapters.postgres.asking import spans

from noetl.adapters.postgres.storage import PostgresStorage


async def grow(home: PostgresStorage, name: str, length: int, grown: list[str]) -> None:
    for n in range(length):
        await home.log.append(decision(name, n))
        grown.append(name)


async def reached(grown: list[str], count: int) -> None:
    while len(grown) < count:
        await asyncio.sleep(0)


@pytest.mark.fault("T6")
@pytest.mark.parametrize("how", ["immediate", "fast"])
async def test_a_restart_under_load(own_server: PostgresServer, how: str) -> None:
    names, length, grown = [f"e{n}" for n in range(30)], 30, list[str]()
    with own_server.fresh_database() as database:
        homes = PostgresHomes(database, patience=600)
        home = await homes.open()
        growing = asyncio.gather(*(grow(home, name, length, grown) for name in names))
        for goal in (100, 400):
            await reached(grown, goal)
            await asyncio.to_thread(own_server.stop, how)
            await asyncio.to_thread(own_server.start)
        await growing
        for name in names:
            assert await spans(home, name) == [(n, n) for n in range(1, length + 1)]
        await homes.close_all()


async def test_appends_and_reads_wait_and_go_on(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        homes = PostgresHomes(database, patience=600)
        home = await homes.open()
        await home.log.append(decision("a", 0))
        await asyncio.to_thread(own_server.stop)
        waiting = [home.log.append(decision("a", n)) for n in range(1, 4)]
        asked = [
            asyncio.ensure_future(each)
            for each in (home.owners.claim("a"), home.inbox.leave("a", "pause", {}))
        ]
        reading = asyncio.ensure_future(home.executions.find("a"))
        keeping = asyncio.ensure_future(home.playbooks.keep("d", "p", "text", None))
        await asyncio.sleep(0)
        assert [commit.done() for commit in waiting] == [False] * 3
        assert [task.done() for task in (*asked, keeping)] == [False] * 3
        assert not reading.done()
        await asyncio.to_thread(own_server.start)
        await asyncio.gather(*waiting, *asked, reading, keeping)
        assert await spans(home, "a") == [(n, n) for n in range(1, 5)]
        assert [note.kind for note in await taken(home)] == ["pause"]
        await homes.close_all()


async def test_patience_ends_and_the_home_lives_on(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        homes = PostgresHomes(database, patience=0)
        home = await homes.open()
        await home.log.append(decision("a", 0))
        await asyncio.to_thread(own_server.stop)
        first, follower = home.log.append(decision("a", 1)), home.log.append(decision("a", 2))
        assert await answer_of(first) == "LogUnavailable"
        says = str(first.exception())
        assert "PostgreSQL at" in says or "the connection to" in says
        assert says.endswith(" and run `noetl resume a`")
        assert await answer_of(follower) == "LogUnavailable"
        assert await answer_of(home.log.append(decision("b", 0))) == "LogUnavailable"
        with pytest.raises(Exception, match=r"; (start it|check the server)") as refused:
            await home.executions.find("a")
        assert type(refused.value).__name__ == "LogUnavailable"
        await asyncio.to_thread(own_server.start)
        late = home.log.append(decision("a", 1))
        assert await answer_of(late) == "LogUnavailable", (
            "refused until the caller has loaded again"
        )
        for name in ("a", "b"):
            home.log.forget(name)
        assert await answer_of(home.log.append(decision("a", 1))) == "ok"
        assert await answer_of(home.log.append(decision("b", 0))) == "ok"
        assert await spans(home, "a") == [(1, 1), (2, 2)]
        await homes.close_all()


async def test_closing_while_the_server_is_away(own_server: PostgresServer) -> None:
    with own_server.fresh_database() as database:
        homes = PostgresHomes(database, patience=0)
        home = await homes.open()
        await home.log.append(decision("a", 0))
        await asyncio.to_thread(own_server.stop)
        lost = home.log.append(decision("a", 1))
        await home.close()
        assert await answer_of(lost) == "LogUnavailable"
        await asyncio.to_thread(own_server.start)
