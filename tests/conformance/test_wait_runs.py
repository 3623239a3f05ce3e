"""WAIT: loops that wait, what is stopped or paused meanwhile, and what is told of it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import turns, until
from tests.support.steps import arc, call, loop, nested, otherwise, playbook, sets, step, when
from tests.support.waiting import STAGES, Stage, staged, waits

from noetl.control.execution import Run
from noetl.messages import events as e
from noetl.server import clocks
from noetl.server.timers import now

EVERYWHERE = pytest.mark.parametrize("where", STAGES)


# ── loops ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-2")
@EVERYWHERE
@pytest.mark.parametrize("policy", [{}, {"exec": "local"}], ids=["usual", "local"])
def test_a_waiting_iteration_holds_up_no_other(
    policy: dict[str, Any], where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step(
                "start",
                waits("hear", signal="go", when="{{ signal.data.n == iter.n }}"),
                call("tell", body="{{ iter.n }}"),
                loop=loop([0, 1, 2, 3, 4], mode="parallel", flight=3, **policy),
            )
        )
        execution_id = await stage.start(text)
        waiting = await stage.waits(execution_id, 3)
        assert [wait.task_run_id.split(".")[1] for wait in waiting] == ["1", "2", "3"]
        for n, left in ((1, 3), (2, 3), (4, 2), (0, 1), (3, 0)):
            await stage.signal(execution_id, "go", {"n": n})
            if left:
                await stage.waits(execution_id, left)
        execution = await stage.ended(execution_id)
        assert execution.status == "completed"
        (done,) = await stage.of(execution_id, e.LoopDone)
        assert (done.total, done.done, done.results) == (5, 5, ["tell"] * 5)
        assert len(stage.tools.calls) == 5

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-2", "SCOPE-4")
@EVERYWHERE
def test_a_sequential_loop_waits_as_a_whole_and_keeps_what_it_wrote(
    where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step(
                "start",
                waits("hear", signal="go"),
                sets("add", seen="{{ (ctx.seen | default([])) + [iter.n] }}"),
                loop=loop([1, 2, 3]),
            )
        )
        execution_id = await stage.start(text)
        for _ in range(3):
            await stage.waits(execution_id)
            await stage.signal(execution_id, "go")
        execution = await stage.ended(execution_id)
        assert execution.ctx == {"seen": [1, 2, 3]}

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-2", "LOOP-7")
@EVERYWHERE
@pytest.mark.parametrize("mode", ["sequential", "parallel"])
@pytest.mark.parametrize("outer", [None, "sequential", "parallel"])
def test_nested_loops_wait_too(outer: str | None, mode: str, where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        guard = "{{ signal.data == iter.m }}"
        inner = nested(
            "each",
            loop([1, 2, 3], iterator="m", mode=mode, flight=2, reduce={"seen": "append"}),
            waits("hear", otherwise(set_ctx={"seen": "{{ iter.m }}"}), signal="go", when=guard),
        )
        around: dict[str, Any] = {} if outer is None else {"loop": loop(["a"], mode=outer)}
        execution_id = await stage.start(playbook(step("start", inner, **around)))
        for n in (1, 2, 3):
            await stage.waits(execution_id, 1 if mode == "sequential" or n == 3 else 2)
            await stage.signal(execution_id, "go", n)
        execution = await stage.ended(execution_id)
        assert execution.status == "completed"
        assert execution.ctx == {"seen": [1, 2, 3]}

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-2")
@EVERYWHERE
def test_a_task_of_the_workbook_waits_too(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        lent = {"hear": {"kind": "wait", "signal": "go", "when": "{{ signal.data > 1 }}"}}
        text = playbook(
            step("start", {"ask": {"kind": "workbook", "name": "hear"}}), workbook={"tasks": lent}
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id)
        await stage.signal(execution_id, "go", 1)
        await stage.signal(execution_id, "go", 2)
        await stage.ended(execution_id)
        (done,) = await stage.of(execution_id, e.TaskDone)
        assert (done.outcome["result"], done.outcome["wait"]["by"]) == (2, "signal")

    staged(test, where, tmp_path)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-2", "NEXT-8")
@EVERYWHERE
@pytest.mark.parametrize("looped", [None, "sequential", "parallel"])
def test_what_waits_can_be_cancelled(looped: str | None, where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        around: dict[str, Any] = {} if looped is None else {"loop": loop([1, 2], mode=looped)}
        execution_id = await stage.start(playbook(step("start", waits("w", signal="x"), **around)))
        await stage.waits(execution_id, 2 if looped == "parallel" else 1)
        await stage.plane.order(execution_id, "cancel", "enough")
        execution = await stage.ended(execution_id)
        assert execution.status == "cancelled"

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-2", "NEXT-5")
@EVERYWHERE
def test_a_failure_elsewhere_stops_what_waits(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", arcs=[arc("wait"), arc("many"), arc("fail")], mode="inclusive"),
            step("wait", waits("w", signal="x")),
            step("many", waits("w", signal="x"), loop=loop([1, 2], mode="parallel")),
            step("fail", waits("w", signal="bad"), call("fail", when(True, "fail"))),
            executor={"spec": {"policy": {"fail_fast": True}}},
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id, 4)
        await stage.signal(execution_id, "bad")
        execution = await stage.ended(execution_id)
        assert execution.status == "failed"
        assert execution.error is not None
        assert execution.error["step"] == "fail"

    staged(test, where, tmp_path)


@pytest.mark.rule("WAIT-2", "TASK-10")
@EVERYWHERE
def test_the_timeout_of_a_step_goes_on_while_it_waits(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(step("start", waits("w", signal="x"), timeout=0.1))
        execution = await stage.ended(await stage.start(text))
        assert execution.error is not None
        assert execution.error["kind"] == "timeout"

    staged(test, where, tmp_path)


# ── pauses ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-6")
@EVERYWHERE
def test_a_pause_stops_the_clocks(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", arcs=[arc("rest"), arc("hear"), arc("late")], mode="inclusive"),
            step("rest", waits("w", seconds=3600)),
            step("hear", waits("w", signal="x", timeout=7200)),
            step("late", waits("w", until="2099-01-01T00:00:00Z"), timeout=9000),
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id, 3)
        before = dues(stage, execution_id)
        await stage.plane.order(execution_id, "pause")
        await until(lambda: stage.execution(execution_id).status == "paused")
        await past(now())
        await stage.plane.order(execution_id, "resume")
        await until(lambda: stage.execution(execution_id).status == "running")
        (resumed,) = await stage.of(execution_id, e.ExecutionResumed)
        after = dues(stage, execution_id)
        assert resumed.paused > 0
        moved = {step: after[step] - before[step] for step in before}
        assert moved == {
            "rest": resumed.paused,
            "hear": resumed.paused,
            "late": 0,
            "run": resumed.paused,
        }
        assert stage.execution(execution_id).paused == resumed.paused
        await stage.plane.order(execution_id, "cancel")
        await stage.ended(execution_id)

    staged(test, where, tmp_path)


def dues(stage: Stage, execution_id: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for wait in stage.waiting(execution_id):
        arm = wait.awaits[0]
        found[wait.step] = arm.get("due") or wait.due or 0
    runs = stage.execution(execution_id).runs.values()
    (since,) = [run.since for run in runs if run.step == "late"]
    assert since is not None
    return {**found, "run": since}


@pytest.mark.rule("WAIT-6")
@EVERYWHERE
def test_nothing_is_due_while_an_execution_is_paused(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        execution_id = await stage.start(
            playbook(step("start", waits("hold", signal="go"), waits("rest", seconds=0.01)))
        )
        await stage.waits(execution_id)
        await stage.plane.order(execution_id, "pause")
        await stage.signal(execution_id, "go")  # a run that has begun goes on to its next wait
        await until(lambda: [one.task for one in stage.waiting(execution_id)] == ["rest"])
        due = stage.waiting(execution_id)[0].awaits[0]["due"]
        await past(due)
        assert [one.task for one in stage.waiting(execution_id)] == ["rest"]
        await stage.plane.order(execution_id, "resume")
        assert (await stage.ended(execution_id)).status == "completed"

    staged(test, where, tmp_path)


async def past(due: int) -> None:
    """Returns when the clock shows a later time, and whoever looks at it has had a turn."""
    await until(lambda: now() > due + 20)


@pytest.mark.rule("WAIT-6", "TASK-10")
@EVERYWHERE
@pytest.mark.parametrize("clock", ["step", "execution"])
def test_timeouts_stand_still_while_an_execution_is_paused(
    clock: str, where: str, tmp_path: Path
) -> None:
    limits = {"spec": {"policy": {"limits": {"timeout": 0.2}}}}
    roots = {"executor": limits} if clock == "execution" else {}
    spec: dict[str, Any] = {"timeout": 0.2} if clock == "step" else {}

    async def test(stage: Stage) -> None:
        execution_id = await stage.start(
            playbook(step("start", waits("w", signal="x"), **spec), **roots)
        )
        await stage.waits(execution_id)
        await stage.plane.order(execution_id, "pause")
        begun = now()
        await past(begun + 300)
        assert stage.execution(execution_id).status == "paused"
        await stage.plane.order(execution_id, "resume")
        execution = await stage.ended(execution_id)
        assert execution.error is not None
        assert execution.error["kind"] == "timeout"
        assert execution.paused >= 300

    staged(test, where, tmp_path)


class Sleep:
    """How pauses of a pipeline pass: when the test says so."""

    def __init__(self, worker: Any) -> None:
        self.asked: list[float] = []
        self.over = asyncio.Event()
        worker.sleep = self

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.over.wait()


LOOPED = {"loop": loop([0], mode="parallel")}


@pytest.mark.rule("WAIT-6", "TASK-8")
@EVERYWHERE
@pytest.mark.parametrize(("delay", "more"), [(3, {}), (60, LOOPED)], ids=["step", "loop"])
def test_a_delay_that_a_worker_sleeps_out_stands_still_in_a_pause(
    delay: int, more: dict[str, Any], where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        sleep = Sleep(stage.worker)
        retry = when("_attempt == 1", "retry", attempts=2, delay=delay)
        execution_id = await stage.start(playbook(step("start", call("fetch", retry), **more)))
        await until(lambda: sleep.asked == [delay])
        await until(lambda: any(run.suspended for run in runs(stage, execution_id)))
        await stage.plane.order(execution_id, "pause")
        await until(lambda: stage.execution(execution_id).status == "paused")
        sleep.over.set()
        await past(now())
        assert len(stage.tools.calls) == 1, "its time is over, but for the pause"
        await stage.plane.order(execution_id, "resume")
        assert (await stage.ended(execution_id)).status == "completed"
        (resumed,) = await stage.of(execution_id, e.ExecutionResumed)
        assert sleep.asked == [delay, resumed.paused / 1000]
        assert len(stage.tools.calls) == 2

    staged(test, where, tmp_path)


def runs(stage: Stage, execution_id: str) -> list[Run]:
    return list(stage.execution(execution_id).runs.values())


# ── what is told ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-7")
@EVERYWHERE
def test_each_wait_is_named_with_the_command_that_answers(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        text = playbook(
            step("start", arcs=[arc("rest"), arc("hear"), arc("ask")], mode="inclusive"),
            step("rest", waits("w", seconds=3600)),
            step("hear", waits("w", signal="paid", timeout=7200)),
            step(
                "ask",
                waits(
                    "w", approval={"title": "Go?", "roles": ["finance"], "form": {"a": "number"}}
                ),
            ),
        )
        execution_id = await stage.start(text)
        await stage.waits(execution_id, 3)
        told = {one.step: one for one in await stage.reasons(execution_id)}
        assert {step: one.kind for step, one in told.items()} == {
            "rest": "timer",
            "hear": "signal",
            "ask": "approval",
        }
        assert told["rest"].until is not None
        assert told["rest"].since is not None
        assert told["hear"].answers == (f"noetl signal {execution_id} paid",)
        assert str(told["hear"].until) in told["hear"].words
        ask = told["ask"]
        assert (ask.title, ask.roles, ask.form) == ("Go?", ("finance",), {"a": {"type": "number"}})
        assert ask.answers == (
            f"noetl approve {execution_id} ask --set a=…",
            f"noetl reject {execution_id} ask",
        )
        assert ask.words.startswith("waits for an answer to 'Go?' since 2")
        await stage.plane.order(execution_id, "cancel")
        await stage.ended(execution_id)

    staged(test, where, tmp_path)


# ── clocks that are set ──────────────────────────────────────────────────────────────────────


@pytest.mark.rule("WAIT-3")
@EVERYWHERE
@pytest.mark.parametrize("hours", [[2], [-2, 2], [2, -2], [-2, -1, 3]], ids=str)
def test_a_clock_that_is_set_changes_when_a_wait_ends_never_how_often(
    hours: list[int], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, ahead = time.time, [0]
    monkeypatch.setattr(time, "time", lambda: real() + 3600 * ahead[0])
    monkeypatch.setattr(clocks, "LOOK", 0.01)

    async def test(stage: Stage) -> None:
        execution_id = await stage.start(playbook(step("start", waits("rest", seconds=3600))))
        await stage.waits(execution_id)
        for hour in hours:
            ahead[0] = hour
            await turns()
            if max(hours[: hours.index(hour) + 1]) < 1:
                assert len(stage.waiting(execution_id)) == 1
        ahead[0] = max(hours)
        assert (await stage.ended(execution_id)).status == "completed"
        assert len(await stage.of(execution_id, e.WaitDone)) == 1

    staged(test, where, tmp_path)
