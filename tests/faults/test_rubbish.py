"""Rubbish on every way in: each piece is refused, and the server lives (T14)."""

import asyncio
import http.client
import json
import os
import random
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from fuzz.mutate import spoilt
from tests.support.fleet import Member
from tests.support.nats import NatsServer
from tests.support.oracle import losses
from tests.support.postgres import Database
from tests.support.trial import PATIENCE, one_task, sized, trial

from noetl.adapters.nats.library import Client
from noetl.adapters.nats.names import Names
from noetl.api.routes import ROUTES
from noetl.ports.link import SPEAKS, Call, Hold, OwnerWanted, PlaybookWanted, Sent

PIECES = sized(400, 20_000)
GOOD = 10
HELD = Hold("no-such-execution", "s1", 0, 1)
CALLS = [
    msgspec.json.encode(one)
    for one in (
        Call(worker="w", pool="default", version="1", speaks=SPEAKS, free=0, holds=[HELD]),
        Call(
            worker="w",
            pool="default",
            version="1",
            speaks=SPEAKS,
            free=0,
            reports=[Sent(hold=HELD, after=0, events=msgspec.Raw(b'[{"name":"task.done"}]'))],
        ),
        OwnerWanted("no-such-execution"),
        PlaybookWanted("digest"),
    )
]
BODIES = [
    one_task("rubbish").encode(),
    json.dumps({"path": "tests/none", "payload": {"url": "{{ 7 * 7 }}"}}).encode(),
    json.dumps({"text": one_task("rubbish"), "position": {"line": 1, "column": 1}}).encode(),
    json.dumps({"reason": "none", "executions": ["a", "b"], "at_once": -1}).encode(),
]


async def say_rubbish(queue: NatsServer, servers: list[str], chance: random.Random) -> None:
    """On every subject that a server listens to, with an inbox that it may answer to."""
    names = Names()
    subjects = [names.any_ask, names.any_roll, names.rings("default", "nobody")]
    for server in servers:
        subjects += [names.calls(server), names.questions(server)]
    client = Client()
    await client.connect(queue.url)
    for number in range(PIECES):
        inbox = f"{names.inbox('worker', 'default')}.rubbish.{number}"
        headers = {"Noetl-Part": f"{chance.randrange(9)}/{chance.randrange(9)}"}
        given = headers if chance.random() < 0.2 else None
        await client.publish(chance.choice(subjects), spoilt(chance, CALLS), inbox, given)
    await client.flush()
    await client.close()


def post_rubbish(server: Member, chance: random.Random) -> Counter[int]:
    """To every route, with bodies that hardly anybody would send; the answers by their status."""
    assert server.url is not None, "a server has an address"
    host, _, port = server.url.removeprefix("http://").partition(":")
    routes = [one for one in ROUTES if one.method in ("POST", "PUT") and "hooks" not in one.path]
    found: Counter[int] = Counter()
    for _ in range(PIECES):
        route = chance.choice(routes)
        connection = http.client.HTTPConnection(host, int(port), timeout=PATIENCE)
        kind = chance.choice(["application/json", "application/yaml", "text/plain", "x"])
        path = "/".join("x" if "{" in part else part for part in route.path.split("/"))
        sent = spoilt(chance, BODIES)
        connection.request(route.method, path, sent, {"Content-Type": kind, "Accept": "*/*"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        found[answer.status] += 1
        told = f"{route.method} {path} ({kind}) {sent!r}: {body!r}\n{server.running.err[-3000:]}"
        assert answer.status < 500, told
        if answer.status >= 400:
            error = json.loads(body)["error"]
            assert error["code"], body
            assert error["message"], body
    return found


@pytest.mark.fault("T14")
def test_rubbish_is_refused_and_the_server_lives(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    seed = int(os.environ.get("NOETL_TEST_SEED", 2026))
    print(f"NOETL_TEST_SEED={seed}")
    chance = random.Random(seed)
    with trial(tmp_path, database, nats_server.url) as fleet:
        fleet.crew(1, 1)
        fleet.register(one_task())
        (server,) = fleet.fleet.servers
        names = [one.name for one in fleet.ask(lambda client: client.runtime().servers)]
        pid = server.running.pid
        asyncio.run(say_rubbish(nats_server, names, chance))
        found = post_rubbish(server, chance)
        print(f"answers: {dict(found)}")
        begun = fleet.start("one", *[{}] * GOOD)
        assert fleet.all_ended(begun) == {"completed": GOOD}
        logs = {one: log for one, log in fleet.judged().items() if one in begun}
        assert (server.running.pid, server.running.process.is_alive()) == (pid, True)
        assert losses(logs) == 0
        assert fleet.times() == {1: GOOD}
        assert found.total() == PIECES
        assert "Traceback" not in server.running.err
