"""WAIT: many questions at once, answered in any order, and found without looking at the others."""

import asyncio
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import PATIENCE
from tests.support.steps import loop, nested, otherwise, playbook, step
from tests.support.waiting import STAGES, Stage, staged, waits

from noetl.api.questions import PlaneQuestions
from noetl.control.approvals import approvals, key_of, names_among

EVERYWHERE = pytest.mark.parametrize("where", STAGES)
ASKS = playbook(
    step("start", waits("pay", approval={"title": "Pay?"})),
    step("idle", waits("ever", seconds=900)),
)


async def asking(stage: Stage) -> list[str]:
    return [row.execution_id for row in await stage.plane.storage.executions.asking()]


async def until_asking(stage: Stage, *wanted: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while await asking(stage) != list(wanted):
            await asyncio.sleep(0)


@pytest.mark.rule("WAIT-7")
@EVERYWHERE
def test_whoever_asks_what_waits_for_people_reads_no_others(where: str, tmp_path: Path) -> None:
    """However many wait for something else, their rows are not read either."""

    async def test(stage: Stage) -> None:
        plane = stage.plane
        quiet = [await stage.start(playbook(step("start", waits("x", signal="s")))) for _ in "abc"]
        one, other = [await stage.start(ASKS) for _ in range(2)]
        await until_asking(stage, other, one)
        read: list[str] = []
        state = plane.state

        async def reading(execution_id: str) -> Any:
            read.append(execution_id)
            return await state(execution_id)

        plane.state = reading  # type: ignore[method-assign]
        page = await PlaneQuestions(plane).waiting(limit=1)
        assert [found.execution_id for found in page.waiting] == read == [other]
        assert page.next is not None
        await plane.answer(other, None, approved=True, sender="me")
        await until_asking(stage, one)
        for name in (one, other, *quiet):
            await plane.order(name, "cancel")
            await stage.ended(name)
        assert await asking(stage) == []

    staged(test, where, tmp_path)


def squares(kind: str) -> str:
    """Four waits, two in each of two iterations, all in flight at once."""
    every: dict[str, dict[str, Any]] = {
        "approval": {"approval": {"title": "{{ iter.parent.n }}{{ iter.m }}?"}},
        "signal": {"signal": "go", "when": "{{ signal.data == [iter.parent.n, iter.m] }}"},
    }
    seen = {"seen": "{{ [iter.parent.n, iter.m] }}"}
    inner = nested(
        "each",
        loop(["x", "y"], iterator="m", mode="parallel", flight=2, reduce={"seen": "append"}),
        waits("hear", otherwise(set_ctx=seen), **every[kind]),
    )
    around = loop(["a", "b"], mode="parallel", flight=2, reduce={"seen": "extend"})
    return playbook(step("start", inner, loop=around))


ORDERS = [list(order) for order in permutations(range(4))][::5]


@pytest.mark.rule("WAIT-2", "WAIT-4", "WAIT-5", "LOOP-7")
@EVERYWHERE
@pytest.mark.parametrize("kind", ["approval", "signal"])
@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_nested_parallel_loops_are_answered_in_any_order(
    order: list[int], kind: str, where: str, tmp_path: Path
) -> None:
    async def test(stage: Stage) -> None:
        execution_id = await stage.start(squares(kind))
        await stage.waits(execution_id, 4)
        questions = approvals(stage.execution(execution_id))
        names = sorted(names_among(questions)[key_of(*one)] for one in questions)
        cells = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"]]
        for left, number in zip((3, 2, 1, 0), order, strict=True):
            if kind == "signal":
                await stage.signal(execution_id, "go", cells[number])
            else:
                assert len(set(names)) == 4, "each question has a name of its own"
                await stage.plane.answer(execution_id, names[number], approved=True, sender="me")
            if left:
                await stage.waits(execution_id, left)
        execution = await stage.ended(execution_id)
        assert execution.status == "completed"
        assert execution.ctx == {"seen": cells}, "in order of the index, whoever came first"

    staged(test, where, tmp_path)
