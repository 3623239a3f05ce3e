"""START-5: a message of a stream starts a playbook, acknowledged after the commit."""

import asyncio
import json
from pathlib import Path
from typing import Any

import nats
import pytest
from msgspec.structs import replace
from tests.conformance.test_start import requested
from tests.support.canned import CannedTools
from tests.support.cluster import PATIENCE, Cluster, clustered
from tests.support.nats import NatsServer, running
from tests.support.triggers import QUICK, trigger

from noetl.adapters.nats import subjects
from noetl.api.questions import PlaneQuestions
from noetl.node.server import ServerNode
from noetl.node.trigger_subjects import SubjectWatch
from noetl.playbook import triggers
from noetl.server import triggering


def orders(name: str) -> str:
    on = {"subject": {"subject": f"{name}.new", "stream": name}}
    return trigger(on, path=f"tests/{name}", payload={"id": "{{ trigger.data.id }}"})


async def publish(url: str, stream: str, *bodies: bytes) -> Any:
    """The client, with a stream that has these messages."""
    client = await nats.connect(url)
    line = client.jetstream()
    await line.add_stream(name=stream, subjects=[f"{stream}.>"])
    for body in bodies:
        await line.publish(f"{stream}.new", body)
    return client


async def watched(cluster: Cluster, url: str) -> tuple[ServerNode, SubjectWatch]:
    server = await cluster.server()
    server.settings = replace(server.settings, queue=url)
    return server, SubjectWatch(server, server.starts)


async def until_true(fact: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await fact():
            await asyncio.sleep(0)


@pytest.mark.rule("START-5", "START-2")
def test_each_message_starts_once_with_two_servers(nats_server: NatsServer, tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        bodies = [json.dumps({"id": n}).encode() for n in range(10)]
        client = await publish(nats_server.url, "ONCE", *bodies)
        pairs = [await watched(cluster, nats_server.url) for _ in range(2)]
        cluster.worker(CannedTools())
        await pairs[0][0].register(QUICK)
        await pairs[0][0].register(orders("ONCE"))
        tasks = [asyncio.create_task(watch.watch()) for _, watch in pairs]

        async def acknowledged() -> bool:
            try:
                about = await client.jetstream().consumer_info("ONCE", "noetl-tests_2FONCE")
            except nats.js.errors.NotFoundError:
                return False
            return bool(about.ack_floor.stream_seq == 10)

        await until_true(acknowledged)
        rows = await cluster.root.executions.page()
        begun = [await requested(cluster, row.execution_id) for row in rows]
        assert sorted(one.payload["id"] for one in begun) == list(range(10))
        assert sorted(str(one.trigger) for one in begun)[0] == "trigger/tests/ONCE/ONCE:1"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for row in rows:
            await cluster.end_of(row.execution_id)
        await client.close()

    clustered(test, tmp_path)


@pytest.mark.rule("START-5")
def test_a_message_that_starts_nothing_is_set_aside(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subjects, "LATER", 0.05)

    async def test(cluster: Cluster) -> None:
        client = await publish(nats_server.url, "BAD", b"[]", b'{"id": 1}')
        server, watch = await watched(cluster, nats_server.url)
        cluster.worker(CannedTools())
        await server.register(QUICK)
        await server.register(orders("BAD"))
        task = asyncio.create_task(watch.watch())

        async def aside() -> bool:
            await server.starts.look()
            row = await cluster.root.triggers.find("tests/BAD")
            return row is not None and "message BAD:1 was set aside" in (row.skipped_why or "")

        await until_true(aside)
        (row,) = await cluster.root.executions.page()
        assert (await requested(cluster, row.execution_id)).payload["id"] == 1
        await cluster.end_of(row.execution_id)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()

    clustered(test, tmp_path)


@pytest.mark.rule("START-5")
def test_the_consumer_goes_with_its_trigger(nats_server: NatsServer, tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        client = await publish(nats_server.url, "GONE")
        server, watch = await watched(cluster, nats_server.url)
        await server.register(QUICK)
        await server.register(orders("GONE"))

        async def consumers() -> int:
            await watch.look()
            return len(await client.jetstream().consumers_info("GONE"))

        async def made() -> bool:
            return await consumers() == 1

        await until_true(made)
        await triggering.pause(server.storage, "tests/GONE")
        assert await consumers() == 1, "it may be resumed"
        await triggering.remove(server.storage, "tests/GONE")
        assert await consumers() == 0
        await watch.close()
        await client.close()

    clustered(test, tmp_path)


@pytest.mark.rule("START-5")
def test_a_follower_that_stops_leaves_the_line_to_the_others() -> None:
    """It stopped while NATS was away; nobody else would have opened the line again."""

    async def test(server: NatsServer) -> None:
        server.stop()
        said: list[str] = []
        heard: list[bytes] = []
        feed = subjects.SubjectFeed(server.url, says=said.append)

        async def take(message: subjects.KeptMessage) -> subjects.Verdict:
            heard.append(message.body)
            return "done"

        def follow() -> asyncio.Task[None]:
            return asyncio.create_task(feed.follow("LINE.new", take, stream=None, durable="d"))

        first = follow()
        await until_true(lambda: holds(bool(said)))
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert server.start()
        client = await publish(server.url, "LINE", b"1")
        second = follow()
        await until_true(lambda: holds(heard == [b"1"]))
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        await feed.close()
        await client.close()

    with running() as server:
        asyncio.run(test(server))


async def holds(fact: bool) -> bool:
    return fact


@pytest.mark.rule("START-5")
def test_no_trigger_reads_what_noetl_says_to_itself(nats_server: NatsServer) -> None:
    async def test() -> None:
        client = await nats.connect(nats_server.url)
        await client.jetstream().add_stream(name="OBJ_noetl-x", subjects=["$O.noetl-x.>"])
        said: list[str] = []
        feed = subjects.SubjectFeed(nats_server.url, says=said.append)

        async def take(_: subjects.KeptMessage) -> subjects.Verdict:
            raise AssertionError

        following = asyncio.create_task(feed.follow("$O.noetl-x.>", take, stream=None, durable="d"))

        async def told() -> bool:
            return any("OBJ_noetl-x is NoETL's own" in line for line in said)

        await until_true(told)
        assert await client.jetstream().consumers_info("OBJ_noetl-x") == []
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        await feed.close()
        await client.jetstream().delete_stream("OBJ_noetl-x")
        await client.close()

    asyncio.run(test())


@pytest.mark.rule("START-5", "START-6")
def test_a_text_that_is_refused_by_now_holds_up_no_other(
    nats_server: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older release took it: it is shown with its reason, starts nothing, and can go."""

    async def test(cluster: Cluster) -> None:
        client = await publish(nats_server.url, "GOOD", b'{"id": 1}')
        server, watch = await watched(cluster, nats_server.url)
        cluster.worker(CannedTools())
        await server.register(QUICK)
        with monkeypatch.context() as older:
            older.setattr(triggers, "is_own_subject", lambda _: False)
            own = {"subject": {"subject": "noetl.>"}}
            await server.register(trigger(own, path="tests/a-refused"))
        triggering.DOCUMENTS.clear()
        await server.register(orders("GOOD"))
        task = asyncio.create_task(watch.watch())

        async def started() -> bool:
            await server.starts.look()
            row = await cluster.root.triggers.find("tests/a-refused")
            said = (row is not None and row.skipped_why) or ""
            return bool(await cluster.root.executions.page()) and "noetl.>" in said

        await until_true(started)
        (row,) = await cluster.root.executions.page()
        await cluster.end_of(row.execution_id)
        shown = await PlaneQuestions(server).trigger("tests/a-refused")
        assert "noetl.>" in (shown.problem or "")
        await triggering.pause(server.storage, "tests/a-refused")
        await triggering.remove(server.storage, "tests/a-refused")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await client.close()

    clustered(test, tmp_path)
