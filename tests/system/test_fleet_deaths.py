"""
Two servers and four workers on PostgreSQL and NATS, one of which is killed every second (T1, T3).

Every execution ends once, and right; its log proves itself. `NOETL_CHAOS=2000` runs as many
executions; without it a few hundred, and a death every other second, which take half a minute.
"""

import asyncio
import json
import os
import random
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.disturbed import PLAYBOOKS, child
from tests.support.fleet import PATIENCE, Fleet, sailing
from tests.support.ledger import Ledger, keeping
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.processes import Running
from tests.support.proofs import verify_all

from noetl.adapters.postgres.object_store import PostgresObjectStore
from noetl.adapters.postgres.storage import open_storage
from noetl.client.client import Client
from noetl.messages import events as e
from noetl.messages.codec import decode_events
from noetl.ports.result_store import ResultStore
from noetl.server.replay import rows_of
from noetl.server.views.standing import Listed

EXECUTIONS = int(os.environ.get("NOETL_CHAOS", "240"))
NAMES = [name for name in PLAYBOOKS if name != "patient"]
KILL_EVERY = 1.0 if "NOETL_CHAOS" in os.environ else 2.0


def text_of(name: str) -> str:
    """With the child from the catalog instead of from a file."""
    return PLAYBOOKS[name]().replace("child.yaml", "tests/child")


def reference(name: str, folder: Path, ledger: Ledger) -> dict[str, Any]:
    """What the playbook comes to in one process, undisturbed."""
    folder.mkdir()
    (folder / "playbook.yaml").write_text(PLAYBOOKS[name]())
    (folder / "child.yaml").write_text(child())
    words = ("run", folder / "playbook.yaml", "--set", f"url={ledger.url}", "--json")
    answer = Running(folder / "home", *words).answer()
    return compared(answer)


def compared(answer: dict[str, Any]) -> dict[str, Any]:
    steps = sorted(json.dumps(step, sort_keys=True) for step in answer["steps"])
    return {**{key: answer[key] for key in ("status", "ctx", "result")}, "steps": steps}


class Reaper(threading.Thread):
    """Kills a member every second, and starts it again."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        super().__init__(daemon=True)
        self._fleet = fleet
        self._chance = random.Random(seed)
        self.over = threading.Event()
        self.kills: Counter[str] = Counter()

    def run(self) -> None:
        while not self.over.wait(KILL_EVERY):
            member = self._chance.choice(self._fleet.members)
            self.kills["server" if member.url else "worker"] += 1
            member.again()


def registered(text: str, client: Client) -> None:
    client.register(text)


def begun(name: str, number: int, url: str, client: Client) -> Listed:
    return client.execute(f"tests/{name}", payload={"url": url}, key=f"chaos-{number}")


def start_all(fleet: Fleet, ledger: Ledger, chance: random.Random) -> dict[str, str]:
    """Execution → the name of its playbook."""
    for text in (child(), *(text_of(name) for name in NAMES)):
        fleet.ask(partial(registered, text), chance)
    started: dict[str, str] = {}
    for number in range(EXECUTIONS):
        name = NAMES[number % len(NAMES)]
        made = fleet.ask(partial(begun, name, number, ledger.url), chance)
        started[made.execution_id] = name
    return started


def ended(fleet: Fleet, execution_id: str, chance: random.Random | None = None) -> dict[str, Any]:
    until = time.monotonic() + PATIENCE
    while True:
        summary = fleet.ask(lambda client: client.summary(execution_id, wait=10.0), chance)
        if summary.status in ("completed", "failed", "cancelled"):
            fields = ("status", "ctx", "result", "error", "steps")
            return {field: getattr(summary, field) for field in fields}
        assert time.monotonic() < until, f"{execution_id} does not end: {fleet.told()}"


@pytest.mark.fault("T1", "T3")
@pytest.mark.rule("SRV-3", "WRK-1", "EVT-5")
def test_every_execution_ends_once_and_right_while_processes_die(
    tmp_path: Path, database: Database, nats_server: NatsServer
) -> None:
    seed = int(os.environ.get("NOETL_TEST_SEED", random.randrange(1_000_000)))
    print(f"NOETL_TEST_SEED={seed}")
    chance = random.Random(seed)
    with keeping() as ledger, sailing(tmp_path, database, nats_server.url) as fleet:
        expected = {name: reference(name, tmp_path / name, ledger) for name in NAMES}
        ledger.effects.clear()
        for _ in range(2):
            fleet.server()
        for _ in range(4):
            fleet.worker()
        fleet.ready()
        reaper = Reaper(fleet, seed)
        reaper.start()
        started = start_all(fleet, ledger, chance)
        assert len(started) == EXECUTIONS
        for execution_id, name in started.items():
            found = ended(fleet, execution_id, chance)
            assert plain(found) == expected[name], f"{name} {execution_id}: {found['error']}"
        reaper.over.set()
        reaper.join()
        print(f"killed: {dict(reaper.kills)}; effects: {len(ledger.effects)}")
        asyncio.run(prove(database, set(started), set(ledger.effects)))


def plain(found: dict[str, Any]) -> dict[str, Any]:
    return compared(msgspec.to_builtins(found))


async def prove(database: Database, started: set[str], effects: set[tuple[str, int]]) -> None:
    """The common oracle: one end, one accepted outcome, an effect for each, replay equal."""
    home = await open_storage(database.url)
    results = ResultStore(PostgresObjectStore(database.url))
    try:
        proofs = await verify_all(home.log, home.playbooks, results, home.executions)
        assert [proof.message for proof in proofs.values() if not proof.ok] == []
        assert started <= set(proofs)
        for execution_id in proofs:
            await look_at(home.log, execution_id, effects)
    finally:
        await results.close()
        await home.close()


async def look_at(log: Any, execution_id: str, effects: set[tuple[str, int]]) -> None:
    names: Counter[str] = Counter()
    kinds: dict[str, str] = {}
    outcomes: Counter[tuple[str, int]] = Counter()
    owners: Counter[tuple[str, int, int]] = Counter()
    seq = 0
    async for row in rows_of(log, execution_id):
        assert row.first == seq + 1
        seq = row.last
        for event in decode_events(row.events):
            names[type(event).__name__] += 1
            if isinstance(event, e.TaskStarted):
                kinds[event.task_run_id] = event.kind
            if isinstance(event, e.TaskDone):
                outcomes[event.task_run_id, event.attempt] += 1
                if kinds[event.task_run_id] == "http":
                    key = f"{execution_id}-{event.task_run_id}"
                    assert (key, event.attempt) in effects, f"{key}: recorded, never done"
            if isinstance(event, e.TokenClaimed):
                owners[event.step_run_id, event.part, event.epoch] += 1
    assert names["WorkflowFinished"] == 1, execution_id
    assert set(outcomes.values()) <= {1}, execution_id
    assert set(owners.values()) <= {1}, execution_id
