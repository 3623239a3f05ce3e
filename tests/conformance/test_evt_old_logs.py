"""T19: logs and snapshots that an older release wrote are read, and prove themselves still."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.playbook.plan import digest_of
from noetl.ports.event_log import LogRow, Snapshot
from noetl.ports.result_store import ResultStore
from noetl.server.replay import replay
from noetl.server.verify import plan_of, verify

LOGS = [
    msgspec.json.decode(line)
    for file in sorted(Path(__file__).parent.glob("logs_of_rules_*.jsonl"))
    for line in file.read_bytes().splitlines()
]
"""
Executions that older releases wrote: text, rows, bodies, snapshots. Those of rules 1 were written
before the log knew its rules, those of rules 2 before ends said who told them (EVT-1), those of
rules 3 while each template had turns of its own, and filters cost less (TPL-5), and before a pause
moved the clocks (WAIT-6).
"""


def storage_of(kept: dict[str, Any], snapshot: str | None) -> tuple[MemoryStorage, Any]:
    storage, objects = MemoryStorage(), MemoryObjectStore()
    tables = storage.tables
    tables.playbooks[digest_of(kept["playbook"])] = (kept["playbook"], None)
    tables.decisions["x1"] = [
        LogRow(first, last, at, events.encode()) for first, last, at, events in kept["rows"]
    ]
    if snapshot is not None:
        seq, body = kept[snapshot]
        tables.snapshots["x1"] = Snapshot(seq, body.encode())
    objects.kept.update((key, base64.b64decode(body)) for key, body in kept["bodies"].items())
    return storage, ResultStore(objects)


@pytest.mark.fault("T19")
@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("snapshot", [None, "snapshot", "end"])
@pytest.mark.parametrize("kept", LOGS, ids=lambda kept: kept["name"])
def test_a_log_of_an_older_release_proves_itself(
    kept: dict[str, Any], snapshot: str | None
) -> None:
    asyncio.run(proves_itself(kept, snapshot))


async def proves_itself(kept: dict[str, Any], snapshot: str | None) -> None:
    storage, results = storage_of(kept, snapshot)
    found = await verify(storage.log, storage.playbooks, results, "x1")
    assert found.ok, found.message
    assert found.rows == len(kept["rows"])
    plan = await plan_of(storage.log, storage.playbooks, "x1")
    execution, _ = await replay(storage.log, "x1", plan)
    assert execution.finished
