"""What a worker's user of the shipped settings of NATS can do to the results of others."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.errors import Error
from tests.support.fleet import free_port
from tests.support.nats import NatsServer
from tests.unit.adapters.nats.network import until

from noetl.adapters.nats import object_store as nats_objects
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.object_store import NatsObjectStore, ObjectMeta
from noetl.adapters.nats.stream import pull
from noetl.ports.object_store import Spool
from noetl.ports.result_store import ResultStore

DEPLOY = Path(__file__).parents[4] / "deploy"
STREAM = "OBJ_noetl-results"
BODY = b'["what a worker of another pool has stored"]'
KEY = f"e1/{hashlib.sha256(BODY).hexdigest()}"


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[NatsServer]:
    (tmp_path / "users.conf").write_text('SERVER_PASSWORD: "s"\nWORKER_PASSWORD: "w"\n')
    text = (DEPLOY / "nats.conf").read_text().replace("/data", str(tmp_path / "store"))
    (tmp_path / "server.conf").write_text(text)
    server = NatsServer(free_port(), tmp_path)
    assert server.start(), (tmp_path / "log").read_text()
    yield server
    server.stop()


def of(queue: NatsServer, user: str) -> str:
    return f"nats://{user}:{user[0]}@127.0.0.1:{queue.port}"


class Walled:
    """Who is connected to it; all of them leave with the test."""

    def __init__(self, queue: NatsServer) -> None:
        self.queue = queue
        self._stores: list[NatsObjectStore] = []
        self._clients: list[Client] = []
        self._holding: list[asyncio.Task[None]] = []

    def server(self) -> NatsObjectStore:
        """The store of results, as a server sees it."""
        self._stores.append(NatsObjectStore(of(self.queue, "server")))
        return self._stores[-1]

    def hold(self, objects: NatsObjectStore, told: list[str]) -> None:
        self._holding.append(asyncio.create_task(objects.hold(told.append)))

    async def held(self) -> NatsObjectStore:
        """The bucket is there, as a server makes and holds it."""
        objects = self.server()
        self.hold(objects, [])

        async def made() -> bool:
            try:
                return bool(await objects._asked(lambda stream: stream.stream_info(STREAM)))
            except FileNotFoundError:
                return False

        await until(made)
        return objects

    async def worker(self) -> Client:
        async def silent(_: Exception) -> None:
            """What it may not is told to it, too."""

        client = Client()
        inbox = "_INBOX.noetl.worker.default.x"
        url = of(self.queue, "worker")
        await client.connect(url, inbox_prefix=inbox, error_cb=silent)
        self._clients.append(client)
        return client

    async def close_all(self) -> None:
        for task in self._holding:
            task.cancel()
        await asyncio.gather(*self._holding, return_exceptions=True)
        for store in self._stores:
            await store.close()
        for client in self._clients:
            await client.close()


@pytest.fixture
def walled(queue: NatsServer) -> Walled:
    return Walled(queue)


async def asked(client: Client, subject: str, body: bytes, **headers: str) -> dict[str, Any]:
    """What JetStream says; nothing, if it never hears of it."""
    try:
        told = await client.request(
            subject, body, timeout=0.5, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )
    except (Error, TimeoutError):
        return {}
    found: dict[str, Any] = json.loads(told.data)
    return found


@pytest.mark.rule("RES-1")
@pytest.mark.parametrize("how", ["all", "sub"])
async def test_no_worker_empties_the_store(walled: Walled, how: str) -> None:
    """A message that rolls up removes all others of the stream, or of its subject."""
    held, worker = await walled.held(), await walled.worker()
    await held.put(KEY, Spool(BODY))
    about = await held._asked(lambda stream: held._about(stream, KEY))
    for subject in (held._meta(KEY), f"$O.noetl-results.C.{about.nuid}"):
        await asked(worker, subject, b"{}", Nats_Rollup=how)
    assert b"".join([piece async for piece in held.get(KEY)]) == BODY


@pytest.mark.rule("RES-2")
async def test_no_worker_replaces_what_is_stored(walled: Walled) -> None:
    """What it writes about a body, before or behind what is true, leads nobody astray."""
    held, worker = await walled.held(), await walled.worker()
    false = ObjectMeta(KEY, "noetl-results", f"{KEY.replace('/', '.')}.0ff", len(BODY), 1, "x")
    chunk = b"[" + b" " * (len(BODY) - 2) + b"]"
    await asked(worker, f"$O.noetl-results.C.{false.nuid}", chunk)
    gone = ObjectMeta(KEY, "noetl-results", "x", 0, 0, "", deleted=True)
    wide = ObjectMeta(KEY, "noetl-results", ">", 2**62, 1, "x")
    lies = [json.dumps(_fields(lie)).encode() for lie in (gone, wide)]
    for lie in (b"rubbish", *lies):
        assert "error" not in await asked(worker, held._meta(KEY), lie)
    await held.put(KEY, Spool(BODY))
    assert "error" not in await asked(worker, held._meta(KEY), json.dumps(_fields(false)).encode())
    store = ResultStore(held)
    reference = await store.put("e1", BODY)
    assert await store.fetch(reference) == json.loads(BODY)


def _fields(meta: ObjectMeta) -> dict[str, Any]:
    return {name: getattr(meta, name) for name in meta.__struct_fields__}


@pytest.mark.rule("WRK-1")
async def test_no_worker_makes_the_bucket(walled: Walled) -> None:
    """Its stream could take in what workers of other pools say, and any other stream."""
    worker, objects = await walled.worker(), walled.server()
    config = {"name": STREAM, "subjects": ["_INBOX.noetl.worker.>", "noetl.server.>"]}
    create = f"$JS.API.STREAM.CREATE.{STREAM}"
    assert await asked(worker, create, json.dumps({**config, "no_ack": True}).encode()) == {}
    with pytest.raises(FileNotFoundError):
        await objects._asked(lambda stream: stream.stream_info(STREAM))


async def test_a_bucket_that_somebody_else_made_becomes_that_of_servers(
    walled: Walled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of an earlier release, whose writers could roll up."""
    monkeypatch.setattr(nats_objects, "HELD", 0.01)
    objects = walled.server()
    await objects._connected()
    stream = objects._line.client.jetstream()
    await stream.create_object_store("noetl-results")
    kept = (await stream.stream_info(STREAM)).config
    await stream.update_stream(kept.evolve(subjects=[*(kept.subjects or []), "noetl.server.>"]))
    told: list[str] = []
    walled.hold(objects, told)

    async def said() -> bool:
        return bool(await stream.stream_info(STREAM) and told)

    await until(said)
    now = (await stream.stream_info(STREAM)).config
    assert (sorted(now.subjects or []), now.allow_rollup_hdrs) == (
        ["$O.noetl-results.C.>", "$O.noetl-results.M.>"],
        False,
    )
    assert "set up otherwise" in told[0]


@pytest.mark.rule("WRK-1")
async def test_a_worker_makes_its_pool_s_consumer_and_no_other(walled: Walled) -> None:
    worker, objects = await walled.worker(), walled.server()
    await objects._connected()
    server = objects._line.client.jetstream()
    await server.add_stream(name="NOETL", subjects=["noetl.work.*.*"], max_msgs_per_subject=1)
    for subject in ("", ".default", ".default.noetl.work.gpu.*", ".default.noetl.work.*.*"):
        config = {"durable_name": "default", "name": "default", "ack_policy": "explicit"}
        config["filter_subject"] = "noetl.work.gpu.*"
        body = json.dumps({"stream_name": "NOETL", "config": config}).encode()
        for verb in ("CREATE", "DURABLE.CREATE"):
            await asked(worker, f"$JS.API.CONSUMER.{verb}.NOETL{subject}", body)
    assert await server.consumers_info("NOETL") == []

    class Line:
        client = worker

    await pull(Line(), Names(), "default")  # type: ignore[arg-type]
    (made,) = await server.consumers_info("NOETL")
    assert made.config.filter_subject == "noetl.work.default.*"
