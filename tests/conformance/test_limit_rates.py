"""LIMIT: how many begin in a time, in one process and over servers."""

import asyncio
import time
from pathlib import Path

import pytest
from tests.conformance.test_limit import limited, limited_step, waits
from tests.conformance.test_limit_embedded import House, begun, ends, housed, reasons
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.scenario import ok

SECONDS = 1.5
PER = {"count": 2, "seconds": SECONDS}
LATER = "is reached; it begins when `per` allows it"
TEXTS = pytest.mark.parametrize(
    "text", [limited(per=PER), limited_step(per=PER)], ids=["playbook", "step"]
)


class Watch:
    """Whether enough time has passed, which no busy machine can shorten."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def passed(self) -> float:
        return time.monotonic() - self._began


@pytest.mark.rule("LIMIT-1", "LIMIT-2")
@TEXTS
def test_processes_of_a_home_begin_no_more_in_a_time(text: str, tmp_path: Path) -> None:
    async def test(house: House) -> None:
        nodes = [await house.node() for _ in range(2)]
        watch = Watch()
        actives = [await begun(nodes[n % 2], text) for n in range(2)]
        assert await ends(*actives) == ["completed"] * 2
        late = [await begun(nodes[n % 2], text) for n in range(3)]
        told: list[str] = []
        while watch.passed() < SECONDS and len(told) < 3:  # a claim is there after its token
            told = [wait.words for one in late for wait in await reasons(nodes[0], one)]
        assert [words for words in told if LATER not in words] == []
        assert await ends(*late) == ["completed"] * 3
        assert watch.passed() >= 2 * SECONDS, "five at two in a time"

    housed(test, tmp_path, ok(1))


@pytest.mark.rule("LIMIT-1", "LIMIT-2")
@TEXTS
def test_servers_begin_no_more_in_a_time(text: str, tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["work"] = [ok(1)]
        servers = [await cluster.server() for _ in range(2)]
        cluster.worker(tools)
        entry, _ = await servers[0].register(text)
        watch = Watch()
        rows = [
            await servers[n % 2].execute(playbook_id=entry.playbook_id, payload={})
            for n in range(5)
        ]
        await asyncio.gather(*(cluster.end_of(row.execution_id) for row in rows[:2]))
        told: list[str] = []
        while watch.passed() < SECONDS and not told:
            told = [wait.words for wait in await waits(servers[0], rows[-1].execution_id)]
        assert [
            one for one in told if "(per: {count: 2, seconds: 1.5}) is reached" not in one
        ] == []
        for row in rows:
            assert (await cluster.end_of(row.execution_id)).status == "completed"
        assert watch.passed() >= 2 * SECONDS, "five at two in a time"
        assert not cluster.root.tables.claims, "nothing leaks"

    clustered(test, tmp_path)
