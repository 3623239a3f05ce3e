"""The server at work: snapshots, refused commits, faults of its own, owners one after another."""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.support.scenario import Gate, Scenario, ok, scenario
from tests.support.steps import arc, call, loop, noop, otherwise, sets, step

from noetl.control.execution import Execution
from noetl.errors import NoetlError, VersionConflict
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.node.local import LocalNode
from noetl.server import active as live_module
from noetl.server.active import ActiveExecution
from noetl.server.replay import replay, rows_of


def long() -> Scenario:
    add = otherwise(set_ctx={"n": "{{ (ctx.n | default(0)) + 1 }}"})
    return scenario(
        step("start", call("one", add), arcs=[arc("run", "ctx.n > 2"), arc("start")]),
        step("run", call("work"), loop=loop(list(range(8)), mode="parallel", flight=2)),
    )


def test_a_snapshot_and_its_tail_come_to_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "SNAPSHOT_AFTER", 3)
    made = long()
    ran = made.run()
    assert ran.status == "completed"

    async def both() -> tuple[tuple[Execution, int], tuple[Execution, int]]:
        log = made.home.log
        tail = await replay(log, "x1", made.plan)
        return tail, await replay(log, "x1", made.plan, from_snapshot=False)

    (short, few), (whole, all_) = asyncio.run(both())
    assert short == whole == msgspec.structs.replace(ran.execution, bodies={})
    assert 0 < few < all_ == len(ran.rows)


def test_steps_that_share_a_row_count_for_the_next_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Recovery costs what is live, however much a row holds."""
    monkeypatch.setattr(live_module, "SNAPSHOT_AFTER", 6)
    chain = [step(f"s{n}", noop("t"), arcs=[arc(f"s{n + 1}")]) for n in range(20)]
    made = scenario(*chain, step("s20", noop("t")))
    ran = made.run()
    assert len(ran.rows) < 6
    assert asyncio.run(made.home.log.snapshot("x1")) is not None


def test_pages_of_a_log_are_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.server.replay.PAGE", 2)
    made = long()
    ran = made.run()

    async def read() -> list[Any]:
        return [row async for row in rows_of(made.home.log, "x1")]

    assert asyncio.run(read()) == ran.rows


def test_a_commit_that_another_writer_forestalled_gives_the_execution_up() -> None:
    """The state in memory is not what the log says: nobody may go on from it."""
    gate = Gate()
    made = scenario(step("start", call("one"), arcs=[arc("more")]), step("more", noop("m")))
    made.answers("one", gate)

    async def story() -> list[str]:
        async with made.running() as (local, active):
            (held,) = await gate.held(1)
            row = made.home.tables.rows["x1"]
            made.home.tables.rows["x1"] = msgspec.structs.replace(row, seq=row.seq + 1)
            await gate.let_go(held)
            with pytest.raises(VersionConflict):
                await active.finished
            assert local.server.find("x1") is None
            return [type(event).__name__ for event in made.home.tables.decisions["x1"]]

    assert len(asyncio.run(story())) == 1


def test_a_fault_of_our_own_is_said_and_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = scenario(step("start", call("one")))
    gate = Gate()
    made.answers("one", gate)

    def broken(*_: Any, **__: Any) -> None:
        raise KeyError("a hole in the plan")

    async def story() -> None:
        async with made.running() as (local, active):
            second = msgspec.structs.replace(made.request(None, None), execution_id="x2")
            other = local.server.start(second, made.plan, None)
            await gate.held(2)
            with monkeypatch.context() as patched:
                patched.setattr("noetl.server.server.decide_next", broken)
                local.server.receive(active, r.PauseExecution())
            with pytest.raises(NoetlError, match="a bug in NoETL: KeyError"):
                await active.finished
            held = await gate.held(1)
            await gate.let_go(held[-1])
            await other.finished
            assert other.execution.status == "completed"

    asyncio.run(story())


def test_a_report_of_an_owner_before_this_one_is_refused() -> None:
    made = scenario(step("start", call("one")))
    gate = Gate()
    made.answers("one", gate)

    async def story(local: LocalNode, active: ActiveExecution) -> None:
        (held,) = await gate.held(1)
        active.term = 5
        late = r.Report(
            step_run_id="4.0",
            part=0,
            epoch=1,
            worker="w",
            events=[e.StepStarted(step="start", step_run_id="4.0")],
        )
        assert local.session.report("x1", late).events == []
        assert local.session.report("nobody", late).events == []
        active.term = 1
        await gate.let_go(held)

    assert made.act(story).status == "completed"


@pytest.mark.parametrize("after", range(1, 6))
def test_one_process_stops_and_the_next_goes_on(after: int) -> None:
    """In good order this time: what was recorded is not done again."""
    made = scenario(
        step("start", *[call(f"t{number}") for number in range(6)], arcs=[arc("more")]),
        step("more", sets("end", done="{{ true }}")),
    )
    reached = asyncio.Event()

    async def stop_here(call_: Any) -> Any:
        reached.set()
        await asyncio.get_running_loop().create_future()
        return ok(call_.label)

    made.answers(f"t{after}", stop_here, ok("again"))

    async def story() -> tuple[str, list[str]]:
        async with made.running():
            await reached.wait()
        local = made.local("2")
        active = await local.resume("x1")
        await active.finished
        await local.close()
        return active.execution.status, [call_.label for call_ in made.tools.calls]

    status, labels = asyncio.run(story())
    assert status == "completed"
    assert labels == [*[f"t{n}" for n in range(after + 1)], *[f"t{n}" for n in range(after, 6)]]


def test_what_was_cancelled_before_a_crash_ends_as_cancelled() -> None:
    made = scenario(step("start", call("one"), arcs=[arc("more", True)]), step("more", noop("m")))
    gate = Gate()
    made.answers("one", gate)

    async def story() -> Execution:
        local = made.local()
        await local.library.plan_of(made.text, None)
        active = local.server.start(made.request(None, None), made.plan, None)
        await gate.held(1)
        local.worker.stopping = True
        rows = made.home.tables.decisions["x1"]
        local.server.receive(active, r.CancelExecution())
        del rows[2:]  # the process dies before the worker has confirmed
        made.home.tables.rows["x1"].seq = rows[-1].last
        await local.close()
        assert isinstance(active.execution, Execution)
        made.home.die()
        heir = made.local("2")
        found = await heir.resume("x1")
        await found.finished
        await heir.close()
        return found.execution

    state = asyncio.run(story())
    assert state.status == "cancelled"
    assert state.tallies["start"].status == "cancelled"
    assert "more" not in state.tallies
