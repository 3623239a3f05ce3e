"""What runs and what waits, each with its reason."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.contracts.homes import SqliteHomes, decision
from tests.support.scenario import Gate, scenario
from tests.support.steps import arc, call, loop, noop, otherwise, refuse, sets, step, when

from noetl.messages import requests as r
from noetl.ports.roster import ServerRow
from noetl.server.waiting import Workers, at_server, waits_of


@pytest.mark.rule("NEXT-7")
async def test_a_join_names_who_is_missing() -> None:
    gate = Gate()
    told = scenario(
        step("start", arcs=[arc("quick"), arc("slow")], mode="inclusive"),
        step("quick", noop("a"), arcs=[arc("both")]),
        step("slow", call("get"), arcs=[arc("both")]),
        step("both", noop("b"), join={"from": ["quick", "slow"]}),
    ).answers("get", gate)
    async with told.running() as (_, active):
        [held] = await gate.held(1)
        waits = {wait.step: wait for wait in waits_of(active.execution, active.plan)}
        assert set(waits) == {"slow", "both"}
        assert (waits["both"].kind, waits["both"].missing) == ("join", ("slow",))
        assert waits["both"].words == "join: 1 of 2 tokens are there, missing: slow"
        await gate.let_go(held)
        await active.finished
        assert waits_of(active.execution, active.plan) == []


@pytest.mark.rule("ADM-3")
async def test_a_refused_token_names_what_it_reads() -> None:
    gate = Gate()
    told = scenario(
        step("start", arcs=[arc("shut"), arc("slow")], mode="inclusive"),
        step("shut", noop("a"), admit=[refuse("not ctx.open")]),
        step("slow", call("get"), arcs=[arc("opens")]),
        step("opens", sets("o", open=True)),
    ).answers("get", gate)
    async with told.running() as (_, active):
        [held] = await gate.held(1)
        [shut] = [w for w in waits_of(active.execution, active.plan) if w.step == "shut"]
        assert shut.kind == "refused"
        assert shut.words.endswith("it is asked again when ctx.open changes")
        await gate.let_go(held)
        await active.finished
        assert active.execution.tallies["shut"].runs == 1


async def test_a_task_says_where_it_stands() -> None:
    gate = Gate()
    told = scenario(step("start", noop("a"), call("get"))).answers("get", gate)
    async with told.running() as (local, active):
        [held] = await gate.held(1)
        for part in set(local.worker._work.values()):
            part.report()
        [wait] = waits_of(active.execution, active.plan)
        assert (wait.kind, wait.task, wait.attempt) == ("task", "get", 1)
        assert "at task 'get' on worker local-" in wait.words
        await gate.let_go(held)
        await active.finished


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        (Workers(), "waits for a worker of pool 'default'"),
        (
            Workers(0),
            "waits for a worker of pool 'default'; no worker of that pool is known; start one: "
            "noetl worker start --pool default",
        ),
        (
            Workers(0, meant="defualt"),
            "waits for a worker of pool 'default'; no worker of that pool is known; did you mean "
            "'defualt'?",
        ),
        (
            Workers(2, 0, {"4.0": 0}),
            "since 1970-01-01T00:00:00.000Z; it has 2 workers, without a free place",
        ),
        (Workers(2, 3), "it has 2 workers, with 3 free places"),
    ],
)
async def test_what_waits_for_a_worker_names_its_pool(workers: Workers, words: str) -> None:
    gate = Gate()
    told = scenario(step("start", call("get"), loop=loop([1, 2], mode="parallel")))
    async with told.answers("get", gate).running() as (_, active):
        await gate.held(2)
        [run] = active.execution.runs.values()
        held = [(part, part.worker) for part in run.parts.values()]
        workers = replace(workers, since=dict.fromkeys([run.step_run_id] * len(workers.since), 0))
        for part, _ in held:
            part.worker = None
        [wait] = waits_of(active.execution, active.plan, workers)
        assert (wait.kind, wait.pool) == ("loop", "default")
        assert words in wait.words
        for part, worker in held:
            part.worker = worker
        for one in await gate.held(2):
            await gate.let_go(one)
        await active.finished


@pytest.mark.unproven
async def test_workers_come_to_a_server_on_a_home_not_to_a_run(tmp_path: Path) -> None:
    homes = SqliteHomes(tmp_path)
    try:
        home = await homes.open()
        await home.log.append(decision("e1", 0))
        await home.owners.claim("e1")
        holder = await home.owners.holder("e1")
        assert holder is not None
        assert holder.isdecimal()
        assert not await at_server(home, "e1", holder), "`noetl run` is its own worker"
        await home.roster.server_seen(
            ServerRow(name=home.owners.me, address="a", version="1", started_at=1, seen_at=1)
        )
        assert await at_server(home, "e1", holder)
        assert not await at_server(home, "e1", None)
    finally:
        await homes.close_all()


async def test_a_loop_says_how_far_it_is() -> None:
    gate = Gate()
    told = scenario(
        step("start", call("get"), loop=loop([1, 2, 3], mode="parallel", flight=2))
    ).answers("get", gate)
    async with told.running() as (local, active):
        await gate.let_go((await gate.held(2))[0])
        await gate.held(2)
        for part in set(local.worker._work.values()):
            part.report()
        [wait] = waits_of(active.execution, active.plan)
        assert wait.kind == "loop"
        assert wait.words == "loop: 1 of 3 iterations done, 2 in flight"
        for held in await gate.held(2):
            await gate.let_go(held)
        await active.finished


@pytest.mark.rule("TASK-8")
async def test_a_pause_says_until_when() -> None:
    told = scenario(step("start", noop("a", when("_attempt < 2", "retry", attempts=3, delay=60))))
    gate = Gate()

    async def sleep(_: float) -> None:
        await gate.held(0)

    async with told.running() as (local, active):
        seen = []

        async def look(_: float) -> None:
            seen.extend(waits_of(active.execution, active.plan))

        local.worker.sleep = look
        await active.finished
    [wait] = seen
    assert wait.kind == "timer"
    assert wait.until is not None
    assert wait.until in wait.words


async def test_a_paused_execution_holds_its_tokens() -> None:
    gate = Gate()
    told = scenario(
        step("start", call("get", otherwise()), arcs=[arc("after")]), step("after", noop("b"))
    ).answers("get", gate)
    async with told.running() as (local, active):
        [held] = await gate.held(1)
        local.server.receive(active, r.PauseExecution())
        await gate.let_go(held)
        [wait] = waits_of(active.execution, active.plan)
        assert (wait.step, wait.kind) == ("after", "paused")
        local.server.receive(active, r.ResumeExecution())
        await active.finished
        assert active.execution.status == "completed"
