"""Parts that wait for a time, and clocks that are set meanwhile."""

import time
from collections.abc import Coroutine
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.simulation.clocks import simulated
from tests.simulation.loop import Node, SimulatedLoop
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.steps import call, otherwise, playbook, step, when

from noetl.control.execution import Execution
from noetl.messages.outcome import failed, ok
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.server import clocks
from noetl.server.active import ActiveExecution
from noetl.server.delays import SLACK, Delays, Key
from noetl.server.timers import now

HOUR = 3600
TEXT = playbook(step("start", call("work")))
PLAN = make_plan(load_valid(TEXT), TEXT)


class Story:
    """Delays on a node whose clock can be set; `offered` says when each part was, in hours."""

    def __init__(self) -> None:
        self.loop = SimulatedLoop()
        self.node = Node("server")
        self.offered: list[tuple[int, float]] = []
        self.delays = Delays(self._offer)

    def _offer(self, key: Key) -> None:
        self.offered.append((key[2], round(self.loop.now / HOUR, 1)))

    def tell(self, story: Coroutine[Any, Any, None]) -> list[tuple[int, float]]:
        with simulated(self.loop, Random(1)):
            self.loop.run_until_complete(self.loop.on(self.node, story))
        self.loop.close()
        return self.offered

    def part(self, number: int) -> Key:
        active = ActiveExecution(Execution(execution_id="x1"), PLAN, folder=None, term=1)
        return active, "4.0", number

    async def passes(self, hours: float) -> None:
        done = self.loop.create_future()
        self.loop.call_later(hours * HOUR, done.set_result, None)
        await done


@pytest.mark.rule("TASK-8")
@pytest.mark.parametrize(("set_to", "begun"), [(0.0, 2.0), (1.5, 0.5), (9.0, 0.2), (-9.0, 2.0)])
def test_a_clock_that_is_set_is_looked_at_and_never_makes_a_delay_longer(
    set_to: float, begun: float
) -> None:
    """Set after 0.2 hours of a delay of two."""
    told = Story()

    async def story() -> None:
        assert told.delays.add(told.part(0), now() + 2 * HOUR * 1000)
        await told.passes(0.2)
        told.node.skew = set_to * HOUR
        await told.passes(20)

    assert told.tell(story()) == [(0, begun)]


@pytest.mark.rule("TASK-8")
def test_a_part_that_waits_anew_is_begun_once() -> None:
    told = Story()

    async def story() -> None:
        part = told.part(0)
        for hours in (1, 3, 2):
            assert told.delays.add(part, now() + hours * HOUR * 1000)
        assert not told.delays.add(told.part(1), now())
        await told.passes(9)
        assert part[0].timers == {}

    assert told.tell(story()) == [(0, 2.0)]


@pytest.mark.rule("TASK-8")
def test_a_hundred_thousand_delays_share_one_look() -> None:
    told = Story()

    async def story() -> None:
        active, run, _ = told.part(0)
        for number in range(100_000):
            told.delays.add((active, run, number), now() + 9 * HOUR * 1000)
        before = told.loop.turns
        await told.passes(1)
        assert told.loop.turns - before <= HOUR / clocks.LOOK + 10

    assert told.tell(story()) == []


def test_of_what_was_cancelled_nothing_is_left() -> None:
    told = Story()

    async def story() -> None:
        parts = [told.part(number) for number in range(3 * SLACK)]
        for part in parts:
            told.delays.add(part, now() + 9 * HOUR * 1000)
        for part in parts[1:]:
            part[0].end()
        assert list(told.delays._long) == [0]
        assert len(told.delays._due) <= SLACK + 2
        await told.passes(10)

    assert told.tell(story()) == [(0, 9.0)]


@pytest.mark.rule("TASK-8")
def test_a_retry_begins_when_a_wrong_clock_is_set_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock was wrong when the pause began: it was waited for as long as it was wrong by."""
    real, ahead = time.time, [0]
    monkeypatch.setattr(time, "time", lambda: real() + ahead[0])
    monkeypatch.setattr(clocks, "LOOK", 0.01)

    async def test(cluster: Cluster) -> None:
        tools = CannedTools()
        tools.answers["fetch"] = [failed("http", "not yet", retryable=True), ok("there")]
        server = await cluster.server()
        worker = cluster.worker(tools)
        worker.worker.patience = 0.5
        retried = otherwise("retry", attempts=3, delay=HOUR)
        text = playbook(step("first", call("fetch", when("outcome.status == 'ok'"), retried)))
        execution_id = await cluster.start(text)
        await until(lambda: len(tools.calls) == 1 and not worker.session.holds)
        await until(lambda: server.server.handout._delays._long)
        ahead[0] = 2 * HOUR
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)
