"""EVT-6: a continuous export hands over every event once, whoever dies or is away."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.support.clickhouse import ClickHouse
from tests.support.collector import Collector
from tests.support.steps import arc, noop, playbook, step
from yarl import URL

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.postgres.storage import open_storage as open_postgres
from noetl.api.questions import PlaneQuestions
from noetl.cli.export import ExportRequest
from noetl.cli.export_follow import sender, write_segment
from noetl.errors import NoetlError, ReceiverUnavailable
from noetl.exports.export import ExportBody
from noetl.exports.following import SETTLES, Follower
from noetl.exports.otlp import traces_url
from noetl.exports.position import PositionFile
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode
from noetl.ports.result_store import ResultStore
from noetl.settings import Settings
from noetl.tools.table import Toolbox

pytestmark = pytest.mark.rule("EVT-6")

NAMES = "abcd"
TEXT = playbook(
    *(step(name, noop("n"), arcs=[arc(to)]) for name, to in pairwise(NAMES)), step("d", noop("n"))
)
Opened = Callable[[], AbstractAsyncContextManager[LocalNode]]


@pytest.fixture(params=["sqlite", "postgres"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    settings = Settings(home=tmp_path / "home")
    url = "" if request.param == "sqlite" else request.getfixturevalue("log_database").url

    @asynccontextmanager
    async def node() -> AsyncIterator[LocalNode]:
        if not url:
            local = await LocalNode.open(settings)
        else:
            results = ResultStore(MemoryObjectStore())
            storage = await open_postgres(url)
            tools = Toolbox(settings.home)
            local = LocalNode(settings, storage, results=results, tools=tools)
        try:
            yield local
        finally:
            await local.close()

    return node


class Died(Exception):
    """What a `kill -9` is to a test in one process."""


class Exporter:
    """Follows a log into a folder, and dies as it is told."""

    def __init__(self, local: LocalNode, folder: Path) -> None:
        self.questions = PlaneQuestions(local)
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.dies: Callable[[], Exception | None] = lambda: None

    async def look(self, *, most: int = 7, settles: int = SETTLES) -> int:
        """One look of a new process: it knows what the file says, and nothing else."""
        with PositionFile(self.folder / "position.json", "jsonl") as kept:
            follower = self.follower(kept, most, settles)
            return await follower.look()

    def follower(self, kept: PositionFile, most: int, settles: int = SETTLES) -> Follower:
        asked = self.questions
        return Follower(
            asked.executions,
            asked.events,
            kept,
            kept.read(),
            self.take,
            most=most,
            most_bytes=1 << 20,
            settles=settles,
        )

    async def take(self, body: ExportBody, number: int) -> None:
        before = self.dies()
        if before is not None:
            raise before
        await write_segment(self.folder, "jsonl", body, number)
        after = self.dies()
        if after is not None:
            raise after

    def lines(self) -> list[dict[str, Any]]:
        files = sorted(self.folder.glob("events-*.jsonl"))
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


async def expected(local: LocalNode) -> list[tuple[str, int]]:
    rows = await local.storage.executions.page(limit=1000)
    return sorted((row.execution_id, seq) for row in rows for seq in range(1, row.seq + 1))


def handed_over(exporter: Exporter) -> list[tuple[str, int]]:
    return sorted((line["execution_id"], line["seq"]) for line in exporter.lines())


async def run(local: LocalNode, count: int) -> None:
    begun = [await local.run_text(TEXT, folder=None, payload={}) for _ in range(count)]
    await asyncio.gather(*(active.finished for active in begun))


async def test_every_event_once_whenever_the_exporter_dies(opened: Opened, tmp_path: Path) -> None:
    chance = random.Random(7)
    async with opened() as local:
        exporter = Exporter(local, tmp_path / "out")
        exporter.dies = lambda: Died() if chance.random() < 0.2 else None
        deaths = 0
        for _ in range(12):
            working = asyncio.ensure_future(run(local, 3))
            for _ in range(4):
                try:
                    await exporter.look()
                except Died:
                    deaths += 1
            await working
        exporter.dies = lambda: None
        await exporter.look()
        assert deaths > 5
        assert handed_over(exporter) == await expected(local)
        position = json.loads((exporter.folder / "position.json").read_bytes())
        assert position["open"] == {}
        assert await exporter.look() == 0


async def test_a_long_history_leaves_a_short_position(opened: Opened, tmp_path: Path) -> None:
    async with opened() as local:
        await run(local, 30)
        exporter = Exporter(local, tmp_path / "out")
        left = [9]

        def dies() -> Exception | None:
            left[0] -= 1
            return Died() if left[0] % 10 == 0 else None

        exporter.dies = dies
        longest = 0
        for _ in range(60):
            with suppress(Died):
                await exporter.look(settles=0)
            kept = json.loads((exporter.folder / "position.json").read_bytes())
            longest = max(longest, len(kept["done"]))
        assert handed_over(exporter) == await expected(local)
        assert longest < 15, "those before the horizon are not remembered by name"


async def test_events_of_one_execution_keep_their_order(opened: Opened, tmp_path: Path) -> None:
    async with opened() as local:
        exporter = Exporter(local, tmp_path / "out")
        working = asyncio.ensure_future(run(local, 5))
        while not working.done():
            await exporter.look(most=3)
        await exporter.look()
        seen: dict[str, int] = {}
        for line in exporter.lines():
            assert line["seq"] == seen.get(line["execution_id"], 0) + 1
            seen[line["execution_id"]] = line["seq"]
        assert len(seen) == 5


async def test_a_target_that_is_away_loses_nothing(opened: Opened, tmp_path: Path) -> None:
    async with opened() as local:
        exporter = Exporter(local, tmp_path / "out")
        with PositionFile(exporter.folder / "position.json", "jsonl") as kept:
            follower = exporter.follower(kept, 7)
            exporter.dies = lambda: ReceiverUnavailable("away")
            await run(local, 4)
            for _ in range(3):
                with pytest.raises(ReceiverUnavailable):
                    await follower.look()
            exporter.dies = lambda: None
            await run(local, 4)
            assert await follower.look() == len(await expected(local))
        assert handed_over(exporter) == await expected(local)


async def test_what_a_paused_execution_does_later_comes_later(
    opened: Opened, tmp_path: Path
) -> None:
    waits = playbook(step("start", {"w": {"kind": "wait", "signal": "go"}}))
    async with opened() as local:
        exporter = Exporter(local, tmp_path / "out")
        active = await local.run_text(waits, folder=None, payload={})
        while not await exporter.look():
            await asyncio.sleep(0)
        await run(local, 2)
        await exporter.look()
        while not any(line["name"] == "wait.started" for line in exporter.lines()):
            await exporter.look()
        await local.signal(active.execution_id, SendSignal(signal="go", data=None))
        await active.finished
        await exporter.look()
        assert handed_over(exporter) == await expected(local)


async def test_one_position_has_one_exporter(opened: Opened, tmp_path: Path) -> None:
    async with opened() as local:
        exporter = Exporter(local, tmp_path / "out")
        with (
            PositionFile(exporter.folder / "position.json", "jsonl"),
            pytest.raises(NoetlError, match="another export uses"),
        ):
            await exporter.look()
        await exporter.look()
        with (
            PositionFile(exporter.folder / "position.json", "parquet") as kept,
            pytest.raises(NoetlError, match="position of another export"),
        ):
            kept.read()


# ── receivers ────────────────────────────────────────────────────────────────────────────────


def asks(form: str, url: str) -> ExportRequest:
    return ExportRequest(
        ids=(),
        everything=False,
        since=None,
        after=None,
        form=form,
        out=None,
        to=url,
        auth=None,
        table=None,
        create=form == "clickhouse",
        follow=True,
        position="x",
        every=None,
    )


async def sent(local: LocalNode, place: Path, form: str, url: URL, *, loses: bool = False) -> None:
    """One look of a new process; one that loses the place, after the target has taken all."""
    asked = PlaneQuestions(local)
    kept_before = place.read_bytes() if place.exists() else None
    async with AsyncExitStack() as stack:
        kept = stack.enter_context(PositionFile(place, form))
        take = await sender(stack, asks(form, str(url)), url, {})
        await Follower(
            asked.executions, asked.events, kept, kept.read(), take, most=20, most_bytes=1 << 20
        ).look()
    if loses and kept_before is not None:
        place.write_bytes(kept_before)


async def test_spans_come_once_under_their_ids(
    opened: Opened, tmp_path: Path, collector: Collector
) -> None:
    url, place = traces_url(URL(collector.url)), tmp_path / "p.json"
    async with opened() as local:
        for loses in (False, True, False):
            await run(local, 3)
            await sent(local, place, "otlp", url, loses=loses)
        found = {bytes(span.span_id) for span in collector.spans}
        rows = await local.storage.executions.page()
        assert len(found) == len(rows) * 9  # itself, and a step and a task for each of four
        assert collector.faults == []
        assert len(collector.spans) > len(found), "what was lost in between came again"


async def test_clickhouse_counts_each_event_once(
    opened: Opened, tmp_path: Path, clickhouse: ClickHouse
) -> None:
    clickhouse.run("drop table if exists noetl_events")
    place = tmp_path / "p.json"
    async with opened() as local:
        for loses in (False, True, False):
            await run(local, 3)
            await sent(local, place, "clickhouse", URL(clickhouse.url), loses=loses)
        found = clickhouse.rows("select execution_id, seq from noetl_events final")
        handed = sorted((row["execution_id"], int(row["seq"])) for row in found)
        assert handed == await expected(local)
        timed = clickhouse.rows(
            "select count() as n from noetl_events final where duration_ms is not null"
        )
        assert int(timed[0]["n"]) > 0
