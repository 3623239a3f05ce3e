"""Events in pages and as a live stream: the same ones, resumed anywhere, at the reader's pace."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.support.api import Api, SmallPlane, api_of, begin
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import Gate, ok
from tests.support.steps import arc, call, playbook, step

from noetl.api.events import with_beats
from noetl.api.frames import AROUND, FollowedLog, SharedFrames, StreamForm
from noetl.api.tokens import make_token
from noetl.errors import LogUnavailable
from noetl.masking import KNOWN
from noetl.ports.event_log import Decision, ExecutionRow, LogRow

ONE = playbook(step("start", call("fetch")))
SOON = 30.0


class Frame(msgspec.Struct):
    """One message of a stream."""

    id: str = ""
    event: str = ""
    data: Any = None


async def frames(answer: aiohttp.ClientResponse) -> AsyncIterator[Frame]:
    """The messages of a stream, comments left out."""
    frame = Frame()
    async for line in answer.content:
        text = line.decode().rstrip("\n")
        key, _, value = text.partition(": ")
        if not text and frame.event:
            yield frame
            frame = Frame()
        elif key in ("id", "event"):
            setattr(frame, key, value)
        elif key == "data":
            frame.data = msgspec.json.decode(value)


def on_api(test: Callable[[Cluster, Api], Awaitable[None]], home: Path) -> None:
    async def run(cluster: Cluster) -> None:
        async with api_of(await cluster.server()) as api:
            await test(cluster, api)

    clustered(run, home)


async def all_events(api: Api, execution_id: str, **query: Any) -> list[Any]:
    found: list[Any] = []
    after = 0
    while True:
        page = await api.get(f"/api/executions/{execution_id}/events", after=after, **query)
        found += page["events"]
        after = page["after"]
        if not page["more"]:
            return found


async def streamed(api: Api, execution_id: str, query: str = "", **headers: str) -> list[Frame]:
    url = f"{api.url}/api/executions/{execution_id}/stream{query}"
    async with api.session.get(url, headers=headers) as answer:
        return [frame async for frame in frames(answer)]


async def ended(cluster: Cluster) -> str:
    """An execution that has ended."""
    cluster.worker(CannedTools())
    return (await cluster.run(ONE)).execution_id


@pytest.mark.rule("SRV-1", "EVT-1")
@pytest.mark.parametrize("limit", [1, 3, 200])
def test_pages_give_every_event_once_and_in_order(tmp_path: Path, limit: int) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        execution_id = await ended(cluster)
        found = await all_events(api, execution_id, limit=limit)
        assert [event["seq"] for event in found] == list(range(1, len(found) + 1))
        assert found[-1]["name"] == "playbook.processed"
        assert len(found) == len(await cluster.events(execution_id))

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("task.*", {"task.started", "task.done"}),
        ("StepDone", {"step.done"}),
        ("workflow.*", {"workflow.started", "workflow.finished"}),
        ("nothing", set()),
    ],
)
def test_events_are_found_by_name_also_by_older_ones(
    tmp_path: Path, glob: str, names: set[str]
) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        execution_id = await ended(cluster)
        found = await all_events(api, execution_id, name=glob, limit=1)
        assert {event["name"] for event in found} == names
        active = await streamed(api, execution_id, f"?name={glob}")
        assert [frame.data for frame in active[:-1]] == found

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_the_stream_tells_what_the_pages_tell_and_then_the_end(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        execution_id = await ended(cluster)
        pages = await all_events(api, execution_id)
        active = await streamed(api, execution_id)
        assert [frame.data for frame in active[:-1]] == pages
        assert [(frame.id, frame.event) for frame in active[:-1]] == [
            (str(event["seq"]), event["name"]) for event in pages
        ]
        assert (active[-1].event, active[-1].data) == (
            "end",
            {"status": "completed", "seq": len(pages)},
        )

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_a_stream_is_resumed_behind_what_is_known(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        execution_id = await ended(cluster)
        pages = await all_events(api, execution_id)
        for known in (0, 1, 5, len(pages) - 1):
            rest = [event["seq"] for event in pages[known:]]
            by_header = await streamed(api, execution_id, **{"Last-Event-ID": str(known)})
            by_query = await streamed(api, execution_id, f"?after={known}")
            both = await streamed(api, execution_id, "?after=2", **{"Last-Event-ID": str(known)})
            for found in (by_header, by_query, both):
                assert [frame.data["seq"] for frame in found[:-1]] == rest
        path = f"/api/executions/{execution_id}/stream"
        status, _ = await api.ask("GET", path, headers={"Last-Event-ID": str(len(pages))})
        assert status == 204, "a browser stops coming back then"
        nothing = await streamed(api, execution_id, f"?after={len(pages)}")
        assert [frame.event for frame in nothing] == ["end"]

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_events_come_as_they_happen(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        tools, gate = CannedTools(), Gate(ok("there"))
        tools.answers["fetch"] = [gate]
        execution_id = await cluster.start(ONE)
        url = f"{api.url}/api/executions/{execution_id}/stream"
        async with api.session.get(url) as answer:
            seen = []
            async for frame in frames(answer):
                seen.append(frame.event)
                if frame.event == "token.enqueued":
                    cluster.worker(tools)
                if frame.event == "task.started":
                    (key,) = await gate.held(1)
                    await gate.let_go(key)
        assert seen[-3:] == ["workflow.finished", "playbook.processed", "end"]
        assert seen.index("task.started") < seen.index("task.done")

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_streams_and_long_polls_end_when_the_server_stops(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        plane = await cluster.server()
        execution_id = await cluster.start(ONE)
        served = await begin(plane)
        async with aiohttp.ClientSession() as session:
            api = Api(served.url, session)
            stream = asyncio.ensure_future(streamed(api, execution_id))
            result = asyncio.ensure_future(
                api.get(f"/api/executions/{execution_id}/result", wait=60)
            )
            await api.get(f"/api/executions/{execution_id}")
            served.stop.set()
            assert "end" not in [frame.event for frame in await asyncio.wait_for(stream, SOON)]
            assert (await asyncio.wait_for(result, SOON))["status"] == "running"
        await served.task

    clustered(test, tmp_path)


LARGE = 100_000
ROWS = 400


async def large_log(plane: SmallPlane) -> None:
    """An execution with 40 MB of log."""
    row = ExecutionRow(
        execution_id="e1", path="p", digest="d", status="running", started_at=1, updated_at=1
    )
    event = msgspec.json.encode([{"name": "step.started", "filler": "x" * LARGE}])
    for seq in range(ROWS):
        await plane.storage.log.append(
            Decision(
                execution_id="e1",
                expected=seq,
                last=seq + 1,
                at=seq,
                events=event,
                row=row if seq == 0 else None,
            )
        )


class Followed(SmallPlane):
    """A plane that counts how much of a log each of its readers was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[int] = []
        self.left = 0

    async def row(self, execution_id: str) -> ExecutionRow:
        row = await self.storage.executions.find(execution_id)
        assert row is not None
        return row

    async def followed(
        self, execution_id: str, *, after: int = 0
    ) -> AsyncIterator[Sequence[LogRow]]:
        reader = len(self.given)
        self.given.append(0)
        try:
            while rows := await self.storage.log.read(execution_id, after=after, limit=5):
                yield rows
                self.given[reader] += len(rows)
                after = rows[-1].last
        finally:
            self.left += 1


@pytest.mark.fault("T13")
async def test_a_reader_that_does_not_read_costs_nothing_and_slows_nobody() -> None:
    """T13."""
    plane = Followed()
    await large_log(plane)
    async with api_of(plane) as api:
        host, port = api.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(b"GET /api/executions/e1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        quick = await streamed(api, "e1")
        assert len(quick) == ROWS + 1
        assert plane.given[0] < ROWS / 2, "no more than fits into the sockets"
        # The reader goes without a word: what was held for it is let go.
        writer.transport.abort()
        while plane.left < 2:
            await asyncio.sleep(0)


class Lost(Followed):
    """A plane whose log goes away in the middle."""

    async def followed(
        self, execution_id: str, *, after: int = 0
    ) -> AsyncIterator[Sequence[LogRow]]:
        yield await self.storage.log.read(execution_id, after=after, limit=2)
        raise LogUnavailable("the database is away")


async def test_a_stream_whose_log_goes_away_ends_without_an_end() -> None:
    """So its reader comes back for the rest, wherever that is."""
    plane = Lost()
    await large_log(plane)
    async with api_of(plane) as api:
        found = await streamed(api, "e1", "?after=7")
        again = await streamed(api, "e1", **{"Last-Event-ID": "9"})
    assert [frame.id for frame in found] == ["8", "9"]
    assert [frame.id for frame in again] == ["10", "11"]


async def test_a_stream_ends_with_the_token_of_its_reader() -> None:
    """Whoever is refused every new question is told nothing more by an old one, either."""
    plane = Followed()
    await large_log(plane)
    reader = await make_token(plane.storage.tokens, "ada", "viewer")
    admin = await make_token(plane.storage.tokens, "bob", "admin")
    async with api_of(plane, auth=True, token=reader.token) as api:
        url = f"{api.url}/api/executions/e1/stream"
        async with api.session.get(url, read_bufsize=1024) as answer:
            assert await answer.content.readline() == b"retry: 1000\n"
            headers = {"Authorization": f"Bearer {admin.token}"}
            revoke = f"/api/tokens/{reader.token_id}"
            assert (await api.ask("DELETE", revoke, headers=headers))[0] == 204
            rest = await answer.read()
        assert rest.count(b"event: step.started") < ROWS / 2, "no more than the sockets held"
        assert b"event: end" not in rest
        assert (await api.ask("GET", "/api/executions/e1/stream"))[0] == 401


@pytest.mark.parametrize(
    ("known", "first"), [("9", "10"), ("nonsense", "1"), ("-1", "1"), ("٣", "1"), ("", "1")]
)
async def test_a_last_id_that_is_none_means_the_beginning(known: str, first: str) -> None:
    plane = Followed()
    await large_log(plane)
    async with api_of(plane) as api:
        found = await streamed(api, "e1", **{"Last-Event-ID": known})
    assert found[0].id == first


async def test_a_last_id_beyond_every_log_gives_the_end() -> None:
    plane = Followed()
    await large_log(plane)
    async with api_of(plane) as api:
        found = await streamed(api, "e1", **{"Last-Event-ID": "9" * 20})
    assert [frame.event for frame in found] == ["end"]


async def endless(gate: asyncio.Event) -> AsyncIterator[LogRow]:
    yield LogRow(1, 1, 1, b"[]")
    await gate.wait()
    yield LogRow(2, 2, 1, b"[]")


async def test_a_silent_log_gives_a_sign_of_life() -> None:
    gate, closing = asyncio.Event(), asyncio.Event()
    found: list[int | None] = []
    async for row in with_beats(endless(gate), closing, 0.001):
        found.append(None if row is None else row.first)
        if len(found) == 4:
            gate.set()
    assert found[:4] == [1, None, None, None]
    assert found[-1] == 2


async def test_a_stop_ends_the_rows_at_once() -> None:
    closing = asyncio.Event()
    found = []
    async for row in with_beats(endless(asyncio.Event()), closing, SOON):
        found.append(row)
        closing.set()
    assert len(found) == 1


# ── what happens inside iterations, as counts ────────────────────────────────────────────────

EACH = playbook(
    step("start", call("fetch"), arcs=[arc("each")]),
    step("each", call("one"), loop={"in": [1, 2, 3, 4, 5], "iterator": "n"}),
)


def totals(found: list[Frame]) -> dict[str, int]:
    """The counts of all frames, added."""
    sums = {"started": 0, "done": 0, "failed": 0}
    for frame in found:
        for counted in frame.data.get("runs", {}).values() if frame.event == "counts" else ():
            for word in sums:
                sums[word] += counted.get(word, 0)
    return sums


@pytest.mark.rule("SRV-1")
def test_iterations_are_counted_for_those_who_ask_for_counts(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        cluster.worker(CannedTools())
        execution_id = (await cluster.run(EACH)).execution_id
        whole = await streamed(api, execution_id)
        counted = await streamed(api, execution_id, "?iterations=false")
        assert totals(counted) == {"started": 5, "done": 5, "failed": 0}
        told = [frame for frame in counted if frame.event != "counts"]
        inside = {"loop.iteration.started", "loop.iteration.done"}
        assert inside.isdisjoint(frame.event for frame in told)
        assert [frame.event for frame in told if frame.event.startswith("task.")] == [
            "task.started",
            "task.done",
        ], "of the step that has no loop"
        assert [frame.data for frame in told] == [
            frame.data for frame in whole if frame.id in {one.id for one in told}
        ]

    on_api(test, tmp_path)


@pytest.mark.rule("SRV-1")
def test_counts_are_resumed_anywhere_without_gap_and_double(tmp_path: Path) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        cluster.worker(CannedTools())
        execution_id = (await cluster.run(EACH)).execution_id
        counted = await streamed(api, execution_id, "?iterations=false")
        for place, frame in enumerate(counted[:-1]):
            rest = await streamed(api, execution_id, f"?iterations=false&after={frame.id}")
            assert [one.data for one in rest] == [one.data for one in counted[place + 1 :]]

    on_api(test, tmp_path)


async def test_a_log_is_encoded_once_however_many_follow_it() -> None:
    plane = Followed()
    await large_log(plane)
    rows = list(await plane.storage.log.read("e1", limit=20))
    shared = SharedFrames()
    log = FollowedLog("e1", None, StreamForm())
    first = shared.of(log, rows, 0)
    assert all(shared.of(log, rows, 0) is first for _ in range(50))
    assert shared.made == 1
    KNOWN.add("a secret that became known")
    try:
        assert shared.kept(log, 0) is None, "what was encoded before may hold it"
    finally:
        KNOWN.clear()


async def test_frames_that_are_kept_are_bounded() -> None:
    plane = Followed()
    await large_log(plane)
    shared = SharedFrames(3 * LARGE)
    log = FollowedLog("e1", None, StreamForm())
    for row in await plane.storage.log.read("e1", limit=20):
        shared.of(log, [row], row.first - 1)
    kept = [seq for seq in range(20) if shared.kept(log, seq) is not None]
    assert kept == [18, 19]


async def test_nor_do_names_that_no_event_has_fill_the_memory() -> None:
    plane = Followed()
    await large_log(plane)
    rows = list(await plane.storage.log.read("e1", limit=20))
    shared = SharedFrames(10 * AROUND)
    logs = [FollowedLog("e1", None, StreamForm(f"no.such.{place}")) for place in range(100)]
    assert all(shared.of(log, rows, 0) == b"" for log in logs)
    kept = [place for place, log in enumerate(logs) if shared.kept(log, 0) is not None]
    assert kept == list(range(90, 100)), "each takes room, however little it shows"
