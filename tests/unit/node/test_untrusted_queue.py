"""Somebody who has the password of NATS, and nothing else, plays servers and workers (0050)."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.nats import NatsServer, running
from tests.support.steps import arc, otherwise, playbook, step, task

from noetl.adapters.nats.library import Client, Msg
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.signing import GREETING, SALT, SIGNED
from noetl.api.metrics import Metrics
from noetl.api.tokens import make_token, revoke_token
from noetl.control.dispatch import Command
from noetl.messages import events as e
from noetl.messages.codec import decode_events, encode
from noetl.node.server import ServerNode
from noetl.node.work_plane import WorkPlane, open_line
from noetl.pipeline.frame import Frame
from noetl.playbook.plan import digest_of
from noetl.ports.link import SPEAKS, Answer, Call, Grant, Reply
from noetl.server.replay import rows_of
from noetl.settings import Settings
from noetl.tools.table import Toolbox

SOON = 60.0
NAMES = Names()
PASSWORD = "of-nats-71a9"
USERS = f'authorization {{ user: u, password: "{PASSWORD}" }}'
HONEST = playbook(step("start", task("say", "shell", command="echo honest")))


@pytest.fixture
def url() -> Any:
    with running(USERS) as server:
        yield address(server)


def address(server: NatsServer) -> str:
    return f"nats://u:{PASSWORD}@127.0.0.1:{server.port}"


class Attacker:
    """Plays the server `evil`, which has one part to give: a shell command."""

    def __init__(self, client: Client, mark: Path) -> None:
        self.client = client
        self.text = playbook(step("start", task("evil", "shell", command=f"touch {mark}")))
        self.calls: list[bytes] = []
        self.heard: list[bytes] = []
        self.called = asyncio.Event()

    async def open(self) -> None:
        for subject, hear in (
            (NAMES.calls("evil"), self._play),
            (NAMES.questions("evil"), self._play_question),
            (NAMES.any_roll, self._present),
            (f"{NAMES.root}.>", self._overhear),
        ):
            await self.client.subscribe(subject, cb=hear)
        for _ in range(2):  # the first ping may overtake what waits to be written
            await self.client.flush()

    async def lure(self, worker: str) -> None:
        """A nudge is not signed: it says only whom to call."""
        while not self.calls:
            await self.client.publish(NAMES.nudges(worker), b"evil")
            await self.client.flush()
            await asyncio.wait([asyncio.ensure_future(self.called.wait())], timeout=0.1)

    def grant(self) -> bytes:
        command = Command(
            execution_id="evil1",
            step="start",
            step_run_id="3",
            part=0,
            epoch=1,
            args={},
            ctx={},
            workload={},
            trace_id="t",
            store="files",
            due={},
            resumed=False,
            frame=Frame(),
            iterations=None,
            rules=3,
        )
        grant = Grant(command=msgspec.Raw(encode(command)), digest=digest_of(self.text), ttl=60.0)
        return msgspec.json.encode(Answer(server="evil", speaks=SPEAKS, grants=[grant]))

    async def _play(self, message: Msg) -> None:
        if message.data == GREETING:
            await self.client.publish(message.reply, GREETING + b"s" * SALT)
            return
        self.calls.append(message.data)
        for lie in (self.grant(), SIGNED + b"s" * 32 + self.grant()):
            await self.client.publish(message.reply, lie)
        self.called.set()

    async def _play_question(self, message: Msg) -> None:
        text = msgspec.Raw(encode({"text": self.text, "folder": None}))
        await self.client.publish(message.reply, msgspec.json.encode(Reply(value=text)))

    async def _present(self, message: Msg) -> None:
        await self.client.publish(message.reply, b"evil")

    async def _overhear(self, message: Msg) -> None:
        self.heard.append(message.data)


class Stage:
    """A real server and a real worker on one NATS, and what they said."""

    def __init__(self, server: ServerNode, worker: WorkPlane, said: list[str]) -> None:
        self.server, self.worker, self.said = server, worker, said

    async def run(self, text: str = HONEST) -> str:
        return (await self.server.row(await self.ended(text))).status

    async def ended(self, text: str) -> str:
        """The id of an execution that has run to its end."""
        entry, _ = await self.server.register(text)
        row = await self.server.execute(playbook_id=entry.playbook_id, payload={})
        async with asyncio.timeout(SOON):
            while not await self.server.ended(row.execution_id, 1.0):
                pass
        return row.execution_id


@asynccontextmanager
async def staged(
    folder: Path, url: str, *, auth: bool, token: bool = False, workers: int = 1, **more: Any
) -> AsyncIterator[Stage]:
    said: list[str] = []
    settings = Settings(home=folder / "server", queue=url, auth=auth, results="nats")
    server = await ServerNode.open(settings, says=said.append)
    text = None
    if token:
        keychain = server.keychain
        made = await make_token(server.storage.tokens, "w", "worker", keychain=keychain)
        text = made.token
    planes, working = [], []
    for number in range(workers):
        home = folder / f"worker-{number}"
        mine = Settings(home=home, queue=url, results="nats", token=text, **more)
        link, results = await open_line(mine, said.append)
        tools = Toolbox(mine.home, bounds=mine.bounds)
        planes.append(WorkPlane(mine, link, results=results, tools=tools, says=said.append))
        working.append(asyncio.ensure_future(planes[-1].run()))
    try:
        yield Stage(server, planes[0], said)
    finally:
        for worker, task in zip(planes, working, strict=True):
            await worker.drain(0.0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await worker.close()
        await server.close()


@asynccontextmanager
async def attacking(url: str, mark: Path) -> AsyncIterator[Attacker]:
    client = Client()
    await client.connect(url, inbox_prefix=f"{NAMES.inbox('worker', 'default')}.beside")
    attacker = Attacker(client, mark)
    await attacker.open()
    try:
        yield attacker
    finally:
        await client.close()


def share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOETL_KEY", base64.b64encode(b"k" * 32).decode())


async def test_the_attack_is_one(tmp_path: Path, url: str) -> None:
    """Where nobody has a key whoever has the queue is obeyed: what follows is not trivial."""
    mark = tmp_path / "mark"
    async with staged(tmp_path, url, auth=False) as stage, attacking(url, mark) as attacker:
        await attacker.lure(stage.worker.name)
        async with asyncio.timeout(SOON):
            while not mark.exists():
                await asyncio.sleep(0)


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("by", ["token", "shared key"])
async def test_nobody_plays_a_server(
    tmp_path: Path, url: str, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "shared key":
        share(monkeypatch)
    mark = tmp_path / "mark"
    async with (
        staged(tmp_path, url, auth=True, token=by == "token") as stage,
        attacking(url, mark) as attacker,
    ):
        await attacker.lure(stage.worker.name)
        assert await stage.run() == "completed", stage.said
        assert attacker.calls, "the worker called, and did nothing of what it was told"
        assert "evil1" not in {hold.execution_id for hold in stage.worker.session.holds}
    assert not mark.exists()
    assert len([line for line in stage.said if "without a valid signature" in line]) == 1


@pytest.mark.rule("WRK-1")
async def test_nobody_plays_a_worker_and_nothing_is_said_twice(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(monkeypatch)
    async with (
        staged(tmp_path, url, auth=True) as stage,
        attacking(url, tmp_path / "mark") as attacker,
    ):
        assert await stage.run() == "completed"
        server, client = stage.server, attacker.client
        mine = Call(worker=stage.worker.name, pool="default", version="1", speaks=SPEAKS, free=9)
        call = msgspec.json.encode(mine)
        for _ in range(3):
            told = (await client.request(NAMES.calls(server.name), call, timeout=SOON)).data
            answer = msgspec.json.decode(told, type=Answer)
            assert "is not signed" in answer.refusal
        captured = [one for one in attacker.heard if one[:1] == SIGNED]
        assert captured
        for message in captured:
            await client.publish(NAMES.calls(server.name), message, client.new_inbox())
        await client.flush()
        assert await stage.run() == "completed"
        assert server.refused["unsigned"] == 3
        assert server.refused["replayed"] + server.refused["forged"] >= len(captured)
        text = Metrics().text(await server.counts()).decode()
        assert 'noetl_messages_refused{reason="unsigned"} 3.0' in text
        assert len([line for line in stage.said if "(unsigned)" in line]) == 1


async def test_a_token_that_is_revoked_ends_its_worker_over_nats(tmp_path: Path, url: str) -> None:
    async with staged(tmp_path, url, auth=True, token=True) as stage:
        assert await stage.run() == "completed"
        storage = stage.server.storage
        (row,) = await storage.tokens.all()
        assert await revoke_token(storage.tokens, stage.server.keychain, row.token_id)
        assert [one for one in await storage.credentials.all() if one.kind == "$own"] == []
        async with asyncio.timeout(SOON):
            while not any("does not know the key of this worker" in one for one in stage.said):
                await asyncio.sleep(0)
        assert stage.server.refused["unknown key"] > 0


SECRET = "opensesame-71a9"
RECORDED = playbook(
    step(
        "start",
        task(
            "read",
            "secrets",
            otherwise(set_ctx={"header": "Bearer {{ outcome.result }}"}),
            provider="environment",
            name="TESTS_SECRET",
        ),
        arcs=[arc("use")],
    ),
    step(
        "use",
        task(
            "tell",
            "shell",
            command=f'test "$HEADER" = "Bearer {SECRET}"',
            env={"HEADER": "{{ ctx.header }}"},
        ),
    ),
)


@pytest.mark.rule("KEY-3")
async def test_a_recorded_secret_is_read_by_who_has_a_token_alone(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers that share no key with the servers get those of recorded secrets from them."""
    monkeypatch.setenv("TESTS_SECRET", SECRET)
    async with staged(tmp_path, url, auth=True, token=True, workers=2, concurrency=1) as stage:
        server = stage.server
        async with asyncio.timeout(SOON):
            crossed = False
            while not crossed:  # who gets a step is by chance
                ids = await asyncio.gather(*(stage.ended(RECORDED) for _ in range(6)))
                assert {(await server.row(one)).status for one in ids} == {"completed"}
                for one in ids:
                    rows = [row.events async for row in rows_of(server.storage.log, one)]
                    assert SECRET.encode() not in b"".join(rows)
                    events = [event for row in rows for event in decode_events(row)]
                    claims = {each.worker for each in events if isinstance(each, e.TokenClaimed)}
                    crossed = crossed or len(claims) == 2
