"""KEEP: executions go by age, status, path and label, never while they are needed."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from tests.support.api import api_of
from tests.support.cluster import Cluster, clustered
from tests.support.steps import Tree, arc, noop, otherwise, playbook, sets, step, task

from noetl.adapters.postgres.object_store import PostgresObjectStore
from noetl.adapters.postgres.storage import open_storage as open_postgres
from noetl.adapters.registers import now_ms
from noetl.errors import BodyLost, ResultsUnavailable
from noetl.node.housekeeping import Housekeeping, retention_of
from noetl.node.local import LocalNode
from noetl.ports.result_store import ResultStore
from noetl.ports.roster import ServerRow
from noetl.ports.triggers import WATCH, TriggerRow
from noetl.server.policies import policies_of
from noetl.settings import Settings
from noetl.tools.table import Toolbox

MAKES = sets("make", text="{{ 'x' * 400 }}")
FAILS = noop("break", otherwise("fail", message="no"))

Opened = Callable[[], AbstractAsyncContextManager[LocalNode]]


def text(*tasks: Tree, path: str = "tests/kept", then: Sequence[Tree] = (), **labels: str) -> str:
    """A playbook whose results do not fit into the log."""
    second = [step("second", *then)] if then else []
    return playbook(
        step("start", *tasks, arcs=[arc("second")] if then else None),
        *second,
        metadata={"name": "kept", "path": path, "labels": labels},
        executor={"spec": {"policy": {"limits": {"max_payload_bytes": 200}}}},
    )


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Everything in one process, on the home or on a database."""
    settings = Settings(home=tmp_path / "home")
    url = "" if request.param == "sqlite" else request.getfixturevalue("log_database").url

    @asynccontextmanager
    async def node() -> AsyncIterator[LocalNode]:
        if not url:
            local = await LocalNode.open(settings)
        else:
            local = LocalNode(
                msgspec.structs.replace(settings, db=url),
                await open_postgres(url),
                results=ResultStore(PostgresObjectStore(url)),
                tools=Toolbox(settings.home),
            )
        try:
            yield local
        finally:
            await local.close()

    return node


async def ran(local: LocalNode, document: str, folder: Path | None = None) -> str:
    """Its id, once its end is in the past."""
    below = None if folder is None else str(folder)
    active = await local.run_text(document, folder=below, payload={})
    await active.finished
    await past(local, active.execution_id)
    return active.execution_id


async def past(local: LocalNode, execution_id: str) -> None:
    row = await local.row(execution_id)
    while row.finished_at is None or now_ms() <= row.finished_at:
        await asyncio.sleep(0)
        row = await local.row(execution_id)


async def removed(local: LocalNode, policies: str) -> list[str]:
    async with retention_of(local) as retention:
        gone = await retention.remove(policies_of(policies))
        await retention.clear()
        return gone


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ("0s", "abcd"),
        ("1h", ""),
        ("0s status=failed", "b"),
        ("0s status=completed,failed path=etl/*", "bc"),
        ("0s label=team=x", "d"),
        ("0s label=team=x label=tier=2", ""),
        ("never path=etl/*; 0s", "ad"),
        ("never label=team=x; never status=failed; 0s", "ac"),
    ],
)
@pytest.mark.rule("KEEP-1")
async def test_age_status_path_and_label_choose(
    opened: Opened, policies: str, expected: str
) -> None:
    async with opened() as local:
        documents = {
            "a": text(MAKES),
            "b": text(FAILS, path="etl/daily"),
            "c": text(MAKES, path="etl/hourly"),
            "d": text(MAKES, path="web", team="x", tier="1"),
        }
        names = {await ran(local, document): name for name, document in documents.items()}
        gone = await removed(local, policies)
        assert "".join(names[one] for one in gone) == expected
        left = [names[row.execution_id] for row in await local.storage.executions.page()]
        assert sorted(left) == sorted(set(documents) - set(expected))
        for execution_id, name in names.items():
            kept = await local.results.keys(execution_id)
            assert bool(kept) == (name not in expected and name != "b")
            assert bool(await local.storage.log.read(execution_id)) == (name not in expected)


@pytest.mark.rule("KEEP-1")
async def test_children_go_with_their_parent_and_it_waits_for_them(
    opened: Opened, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    (tmp_path / "child.yaml").write_text(
        text(task("hold", "shell", command=f"while [ ! -e {gate} ]; do sleep 0.05; done"))
    )
    parent = playbook(step("start", task("call", "playbook", path="child.yaml", wait=False)))
    async with opened() as local:
        execution_id = await ran(local, parent, tmp_path)
        [child] = await local.storage.executions.children(execution_id)
        assert await removed(local, "0s") == []
        gate.touch()
        await past(local, child.execution_id)
        assert await removed(local, "0s") == [execution_id, child.execution_id]
        assert list(await local.storage.executions.page()) == []


@pytest.mark.rule("KEEP-1", "RST-3")
async def test_what_a_restart_refers_to_stays(opened: Opened) -> None:
    async with opened() as local:
        origin = await ran(local, text(MAKES, then=[FAILS]))
        again = await local.restart(origin)
        await again.finished
        await past(local, again.execution_id)
        [reference] = [again.execution.ctx["text"]]
        assert reference.key.startswith(origin)
        assert await removed(local, "0s path=none*") == []
        async with retention_of(local) as retention:
            [row, _] = await local.storage.removals.ended(1 << 52)
            assert row.execution_id == origin
            assert await retention.remove_one(row, policies_of("0s")[0]) == []
        assert await local.results.fetch(reference) == "x" * 400
        assert await removed(local, "0s") == [again.execution_id]
        assert await removed(local, "0s") == [origin]
        with pytest.raises(BodyLost):
            await local.results.fetch(reference)


@pytest.mark.rule("KEEP-1", "START-6")
async def test_an_end_that_no_trigger_has_looked_at_stays(opened: Opened) -> None:
    async with opened() as local:
        execution_id = await ran(local, text(MAKES))
        ended = (await local.row(execution_id)).finished_at
        watch = TriggerRow(path=WATCH, kind="ends", version=0, planned_at=ended, due_at=0)
        await local.storage.triggers.put(watch)
        assert await removed(local, "0s") == []
        await local.storage.triggers.put(msgspec.structs.replace(watch, due_at=None))
        assert await removed(local, "0s") == [execution_id]


# ── archives ─────────────────────────────────────────────────────────────────────────────────


def files_in(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((place / "archive").iterdir())}


@pytest.mark.rule("KEEP-1")
async def test_an_archive_has_events_and_bodies_once(opened: Opened, tmp_path: Path) -> None:
    place = tmp_path / "place"
    async with opened() as local:
        execution_id = await ran(local, text(MAKES))
        row = await local.row(execution_id)
        [key] = await local.results.keys(execution_id)
        policy = policies_of(f"0s archive={place}")[0]
        async with retention_of(local) as retention:  # and the process died before it removed
            await retention._archive(policy, [execution_id])
        first = files_in(place)
        assert sorted(first) == sorted([f"{key.replace('/', '.')}.json", f"{execution_id}.jsonl"])
        assert await removed(local, f"0s archive={place}") == [execution_id]
        assert files_in(place) == first
        events = [json.loads(line) for line in first[f"{execution_id}.jsonl"].splitlines()]
        assert [event["seq"] for event in events] == list(range(1, row.seq + 1))
        assert events[-1]["name"] == "playbook.processed"
        assert first[f"{key.replace('/', '.')}.json"] == msgspec.json.encode("x" * 400)


@pytest.mark.rule("KEEP-1")
async def test_an_archive_in_the_result_store_as_parquet(opened: Opened, tmp_path: Path) -> None:
    async with opened() as local:
        execution_id = await ran(local, text(MAKES))
        seq = (await local.row(execution_id)).seq
        assert await removed(local, "0s archive=results format=parquet") == [execution_id]
        name = f"archive/{execution_id}.parquet"
        if local.settings.db is None:
            file = local.settings.home / "results" / name
        else:
            file = tmp_path / "found.parquet"
            file.write_bytes(b"".join([piece async for piece in local.results.read(name)]))
        with duckdb.connect(":memory:") as reader:
            found = reader.execute(f"select count(*), max(seq) from '{file}'").fetchall()
        assert found == [(seq, seq)]


@pytest.mark.rule("KEEP-1")
async def test_nothing_goes_while_the_archive_is_away(opened: Opened, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.write_text("not a folder")
    async with opened() as local:
        execution_id = await ran(local, text(MAKES))
        with pytest.raises(ResultsUnavailable):
            await removed(local, f"0s archive={place}")
        assert await local.storage.executions.find(execution_id) is not None
        place.unlink()
        assert await removed(local, f"0s archive={place}") == [execution_id]


# ── servers ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("KEEP-1")
def test_the_server_that_is_there_longest_removes_and_counts(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        cluster.settings = msgspec.structs.replace(cluster.settings, retention="0s")
        first, second = await cluster.server(), await cluster.server()
        cluster.worker(Toolbox(tmp_path))
        execution_id = await cluster.start(text(MAKES))
        await cluster.end_of(execution_id)
        for plane, began in ((first, 1), (second, 2)):
            row = ServerRow(
                name=plane.name, address="", version="1", started_at=began, seen_at=now_ms()
            )
            await plane.storage.roster.server_seen(row)
        ended = await first.row(execution_id)
        while now_ms() <= (ended.finished_at or 0):
            await asyncio.sleep(0)
        other = Housekeeping(second)
        await other.turn()
        assert other.counts["executions"] == 0
        keeper = Housekeeping(first)
        await keeper.turn()
        assert keeper.counts["executions"] == 1
        assert await first.storage.executions.find(execution_id) is None
        assert any("retention removed: executions 1" in said for said in cluster.said)

    clustered(test, tmp_path)


@pytest.mark.rule("KEEP-1", "SRV-1")
def test_the_key_of_a_removed_execution_starts_nothing(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        plane = await cluster.server()
        cluster.worker(Toolbox(tmp_path))
        async with api_of(plane) as api:
            await api.ask("POST", "/api/catalog", json={"text": text(MAKES)})
            asked = {"json": {"path": "tests/kept"}, "headers": {"Idempotency-Key": "k1"}}
            _, begun = await api.ask("POST", "/api/executions", **asked)
            await cluster.end_of(begun["execution_id"])
            pruned: dict[str, Any] = {"executions": []}
            while not pruned["executions"]:
                pruned = await api.post(
                    "/api/executions/prune", {"older_than": 0, "dry_run": False}
                )
            assert pruned == {"executions": [begun["execution_id"]], "bodies": 1}
            status, told = await api.ask("POST", "/api/executions", **asked)
            assert (status, told["error"]["code"]) == (410, "gone")
            assert await api.get("/api/executions") == {"executions": [], "next": None}

    clustered(test, tmp_path)


@pytest.mark.rule("KEEP-1")
@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"older_than": -1},
        {"older_than": 1, "archive": "/etc"},
        {"older_than": 1, "archive": "results\n"},
        {"older_than": 1, "status": ["running"]},
        {"older_than": 1, "everything": True},
    ],
)
def test_a_request_to_prune_that_cannot_be_is_refused(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    async def test(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            status, told = await api.ask("POST", "/api/executions/prune", json=wrong)
            assert status in (400, 422)
            said = told["error"]["message"]
            assert "regex" not in said
            if "archive" in wrong:
                assert "Expected `results` (the result store), s3://BUCKET/PREFIX or gs://" in said

    clustered(test, tmp_path)


@pytest.mark.rule("KEEP-1", "RES-4")
async def test_a_run_removes_what_is_too_old_and_is_done_if_it_cannot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "place"
    place.write_text("not a folder")
    policies = f"never path=other; 0s archive={place}"
    local = await LocalNode.open(Settings(home=tmp_path / "home", retention=policies))
    old = await ran(local, text(MAKES))
    active = await local.run_text(text(MAKES, path="other"), folder=None, payload={})
    await active.finished
    await local.clean_up(active)
    assert "retention stopped: " in capsys.readouterr().err
    assert len(await local.storage.executions.page()) == 2
    place.unlink()
    await local.clean_up(active)
    assert [row.execution_id for row in await local.storage.executions.page()] == [
        active.execution_id
    ]
    assert await local.results.keys(old) == []
    assert (place / "archive" / f"{old}.jsonl").exists()
    await local.close()
