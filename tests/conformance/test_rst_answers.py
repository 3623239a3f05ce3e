"""RST-5: an answer is taken over only by what it was given to; else it is asked for again."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.canned import CannedTools, Silence
from tests.support.cluster import PATIENCE, until
from tests.support.scenario import Gate, error, ok
from tests.support.steps import arc, call, loop, otherwise, playbook, sets, step, task, when
from tests.support.waiting import STAGES, Stage, staged, waits

from noetl.errors import RestartRefused
from noetl.messages import events as e
from noetl.node.local import LocalNode
from noetl.node.restarts import Followed
from noetl.tools.playbook import PlaybookTool
from noetl.tools.tool import Tool

EVERYWHERE = pytest.mark.parametrize("where", STAGES)
HEAD = {"name": "pay", "path": "demo/pay"}
ASK = waits("ask", approval="Pay {{ workload.amount }}?")
PAY = call("pay", body="{{ workload.amount }}")
WORKLOAD = {"amount": 10, "note": "x"}


def text_of(*steps: Any, workload: dict[str, Any] = WORKLOAD) -> str:
    return playbook(*steps, metadata=HEAD, workload=workload)


TWO = text_of(step("ask", ASK, arcs=[arc("pay")]), step("pay", PAY))


async def again(
    stage: Stage, origin: str, *chosen: str, text: str | None = None, **payload: Any
) -> str:
    plane = stage.plane
    if isinstance(plane, LocalNode):
        followed = None
        if text is not None:
            followed = Followed(await plane.library.plan_of(text, None), None, None)
        active = await plane.restart(origin, chosen=chosen, payload=payload, followed=followed)
        return active.execution_id
    version = None
    if text is not None:
        version = str((await plane.register(text))[0].version)
    row = await plane.restarts.restart(origin, chosen=chosen, payload=payload, version=version)
    return row.execution_id


async def answered(stage: Stage, execution_id: str, title: str, step: str = "ask") -> None:
    (wait,) = await stage.waits(execution_id)
    assert wait.awaits[0]["title"] == title
    await stage.plane.answer(execution_id, step, approved=True, sender="ann")


async def paid(stage: Stage, execution_id: str) -> list[Any]:
    """What it had paid by the time it ended."""
    await stage.ended(execution_id)
    calls = [one for one in stage.tools.calls if one.execution_id == execution_id]
    return [one.inputs.body for one in calls if one.label == "pay"]


@pytest.mark.rule("RST-5", "RST-3")
@EVERYWHERE
def test_another_payload_is_asked_for_again(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        stage.tools.answers["pay"] = [error("x"), ok(), error("x"), ok()]
        old = await stage.start(TWO)
        await answered(stage, old, "Pay 10?")
        assert await paid(stage, old) == [10]
        same = await again(stage, old, amount=10)
        assert await paid(stage, same) == [10], "what was asked is the same: nobody is asked"
        more = await again(stage, old, "pay", amount=1_000_000)
        await answered(stage, more, "Pay 1000000?")
        assert await paid(stage, more) == [1_000_000]
        (first, *_) = await stage.of(more, e.ExecutionRequested)
        assert [one.partition("@")[0] for one in first.chosen] == ["pay", "ask"]

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-5", "RST-4")
@EVERYWHERE
def test_another_text_of_the_step_is_asked_for_again(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        stage.tools.answers["pay"] = [error("x"), ok(), ok()]
        old = await stage.start(TWO)
        await answered(stage, old, "Pay 10?")
        assert await paid(stage, old) == [10]
        corrected = text_of(
            step("ask", ASK, arcs=[arc("pay")]), step("pay", call("pay", body="corrected"))
        )
        same = await again(stage, old, text=corrected)
        assert await paid(stage, same) == ["corrected"], "the text of its own step is the same"
        other = text_of(
            step("ask", waits("ask", approval="Really?"), arcs=[arc("pay")]), step("pay", PAY)
        )
        asked = await again(stage, old, text=other)
        await answered(stage, asked, "Really?")
        assert await paid(stage, asked) == [10]

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-5", "RST-1")
@EVERYWHERE
def test_a_run_that_would_go_on_behind_its_answer_asks_again(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        stage.tools.answers["pay"] = [Silence(), Silence(), ok()]
        old = await stage.start(text_of(step("ask", ASK, PAY)))
        await answered(stage, old, "Pay 10?")
        await cancelled(stage, old, 1)
        same = await again(stage, old)
        await cancelled(stage, same, 2)
        with pytest.raises(RestartRefused, match=f"'ask' was answered in {old}.*restart that"):
            await again(stage, same, amount=11)
        more = await again(stage, old, amount=11)
        await answered(stage, more, "Pay 11?")
        assert await paid(stage, more) == [11]

    staged(test, where, tmp_path)


async def cancelled(stage: Stage, execution_id: str, calls: int) -> None:
    await until(lambda: len(stage.tools.calls) == calls)
    await stage.plane.order(execution_id, "cancel")
    assert (await stage.ended(execution_id)).status == "cancelled"


@pytest.mark.rule("RST-5")
@EVERYWHERE
def test_ctx_that_is_written_anew_is_asked_for_again(where: str, tmp_path: Path) -> None:
    """The step that asks is no effect of the one that is run again; it showed what that wrote."""

    def text(title: str) -> str:
        price = call("price", otherwise(set_ctx={"amount": "{{ outcome.result }}"}))
        both = [arc("price"), arc("first")]
        return text_of(
            step("start", sets("both", amount=5), arcs=both, mode="inclusive"),
            step("price", price, arcs=[arc("pay")]),
            step("first", waits("go", signal="go"), arcs=[arc("ask")]),
            step("ask", waits("ask", approval=title), arcs=[arc("pay")]),
            step("pay", call("pay", body="{{ ctx.amount }}"), join={"from": ["price", "ask"]}),
        )

    async def test(stage: Stage) -> None:
        for title, asks in (("Pay {{ ctx.amount }}?", True), ("Pay?", False)):
            gate = Gate(ok(11))
            stage.tools.answers["price"] = [ok(10), gate]
            old = await stage.start(text(title))
            await stage.waits(old)
            await until(lambda: stage.execution(old).ctx.get("amount") == 10)  # noqa: B023
            await stage.signal(old, "go")
            await until(lambda: [one.step for one in stage.waiting(old)] == ["ask"])  # noqa: B023
            await stage.plane.answer(old, "ask", approved=True, sender="ann")
            assert await paid(stage, old) == [10]
            new = await again(stage, old, "price")
            (held,) = await gate.held(1)
            await until(lambda: len(stage.waiting(new)) == asks)  # noqa: B023
            await gate.let_go(held)
            if asks:
                await stage.plane.answer(new, "ask", approved=True, sender="ann")
            assert await paid(stage, new) == [11]

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-5", "WAIT-4")
@EVERYWHERE
def test_signals_were_sent_to_one_workload_too(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        stage.tools.answers["pay"] = [error("x"), ok()]
        text = text_of(
            step("ask", waits("go", signal="go"), arcs=[arc("pay")]),
            step("pay", PAY, waits("more", signal="go")),
        )
        old = await stage.start(text)
        await stage.signal(old, "go")
        await stage.signal(old, "go")
        assert await paid(stage, old) == [10]
        new = await again(stage, old, amount=11)
        for step_ in ("ask", "pay"):
            (wait,) = await stage.waits(new)
            assert wait.step == step_, "neither the one that was taken nor the one that was kept"
            await stage.signal(new, "go")
        assert (await stage.ended(new)).status == "completed"

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-5")
@EVERYWHERE
def test_of_a_loop_the_iterations_ask_again(where: str, tmp_path: Path) -> None:
    async def test(stage: Stage) -> None:
        fails = when("outcome.status == 'error'", "fail")
        asks = waits("ask", approval="Pay {{ iter.who }} {{ workload.amount }}?")
        each = loop(["a", "b"], iterator="who")
        text = text_of(
            step("ask", asks, loop=each, arcs=[arc("pay")]), step("pay", call("pay", fails))
        )
        stage.tools.answers["pay"] = [error("x"), ok()]
        old = await stage.start(text)
        for who in "ab":
            await answered(stage, old, f"Pay {who} 10?")
        await stage.ended(old)
        new = await again(stage, old, amount=11)
        for who in "ab":
            await answered(stage, new, f"Pay {who} 11?")
        assert (await stage.ended(new)).status == "completed"

    staged(test, where, tmp_path)


@pytest.mark.rule("RST-5", "TOOL-1")
@EVERYWHERE
def test_an_answer_to_a_playbook_below_is_asked_for_again(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tool(self: CannedTools, kind: str) -> Tool:
        return PlaybookTool() if kind == "playbook" else self

    monkeypatch.setattr(CannedTools, "__getitem__", tool)

    async def test(stage: Stage) -> None:
        child = playbook(
            step("ask", ASK), metadata={"name": "c", "path": "demo/child"}, workload={"amount": 0}
        )
        await stage.plane.register(child)
        ask = task("below", "playbook", path="demo/child", args={"amount": "{{ workload.amount }}"})
        stage.tools.answers["pay"] = [error("x"), ok(), ok()]
        old = await stage.start(text_of(step("first", ask, arcs=[arc("pay")]), step("pay", PAY)))
        await answered(stage, await child_of(stage, old), "Pay 10?")
        assert await paid(stage, old) == [10]
        assert await paid(stage, await again(stage, old)) == [10]
        new = await again(stage, old, "pay", amount=11)
        await answered(stage, await child_of(stage, new), "Pay 11?")
        assert await paid(stage, new) == [11]

    staged(test, where, tmp_path)


async def child_of(stage: Stage, execution_id: str) -> str:
    async with asyncio.timeout(PATIENCE):
        while not (rows := await stage.plane.storage.executions.children(execution_id)):
            await asyncio.sleep(0)
    return str(rows[0].execution_id)
