"""T19: logs and snapshots that an older release wrote are read, and prove themselves still."""

import asyncio
import base64
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.proofs import verify_all

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.adapters.sqlite.storage import open_storage
from noetl.playbook.plan import digest_of
from noetl.ports.event_log import LogRow, Snapshot
from noetl.ports.result_store import ResultStore
from noetl.server.replay import replay
from noetl.server.verify import plan_of, verify

HISTORIES = Path(__file__).parents[1] / "histories"
LOGS = [
    msgspec.json.decode(line)
    for file in sorted(HISTORIES.glob("*.jsonl"))
    for line in file.read_bytes().splitlines()
]
"""
Executions that older releases wrote: text, rows, bodies, snapshots. Those of rules 1 were written
before the log knew its rules, those of rules 2 before ends said who told them (EVT-1), those of
rules 3 while each template had turns of its own, and filters cost less (TPL-5), and before a pause
moved the clocks (WAIT-6), those of rules 4 before loops left alone what nobody wrote (LOOP-5).
`python -m tests.histories --write NAME` keeps logs of the present code.
"""


def storage_of(kept: dict[str, Any], snapshot: str | None) -> tuple[MemoryStorage, Any]:
    storage, objects = MemoryStorage(), MemoryObjectStore()
    tables = storage.tables
    tables.playbooks[digest_of(kept["playbook"])] = (kept["playbook"], None)
    tables.decisions[kept.get("id", "x1")] = [
        LogRow(first, last, at, events.encode()) for first, last, at, events in kept["rows"]
    ]
    if snapshot is not None:
        seq, body = kept[snapshot]
        tables.snapshots[kept.get("id", "x1")] = Snapshot(seq, body.encode())
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
    found = await verify(storage.log, storage.playbooks, results, kept.get("id", "x1"))
    assert found.ok, found.message
    assert found.rows == len(kept["rows"])
    plan = await plan_of(storage.log, storage.playbooks, kept.get("id", "x1"))
    execution, _ = await replay(storage.log, kept.get("id", "x1"), plan)
    assert execution.finished


HOMES = sorted(HISTORIES.glob("home_of_format_*.sql"))


@pytest.mark.rule("EVT-5")
@pytest.mark.parametrize("dump", HOMES, ids=lambda dump: dump.stem)
def test_a_home_of_an_older_release_is_brought_up_to_date(dump: Path, tmp_path: Path) -> None:
    """Its format is mended, and every log in it is read and decided again."""
    old = sqlite3.connect(tmp_path / "noetl.db")
    old.executescript(dump.read_text())
    (format_then,) = old.execute("pragma user_version").fetchone()
    old.close()
    (tmp_path / "noetl.db").chmod(0o600)
    assert asyncio.run(proofs_of(tmp_path)) == [""]
    now = sqlite3.connect(tmp_path / "noetl.db")
    assert now.execute("pragma user_version").fetchone() > (format_then,)
    now.close()


async def proofs_of(folder: Path) -> list[str]:
    storage = await open_storage(folder)
    try:
        results = ResultStore(MemoryObjectStore())
        found = await verify_all(storage.log, storage.playbooks, results, storage.executions)
        return ["" if one.ok else one.message for one in found.values()]
    finally:
        await storage.close()
