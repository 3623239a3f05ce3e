"""Calls of pure code queue in a child, and none of them sees that it was not alone (TOOL-3)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench

from noetl.messages.outcome import Outcome
from noetl.tools.process.inside.program import Program

DIVIDE = "result = 6 // n"
COUNT = """
total = 0
for number in range(n):
    total += number
result = total
"""

LONG = 20_000_000
"""Numbers: many times as long as calls behind others wait before they are asked elsewhere."""


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, children=1)
    yield bench
    bench.close()


def ask_all(bench: Bench, code: str, numbers: list[int]) -> list[Outcome]:
    """All at once, when the child has learned how soon the code is over."""

    async def at_once() -> list[Outcome]:
        for _ in range(3):
            await bench.call(code, n=1)
        return list(await asyncio.gather(*(bench.call(code, n=number) for number in numbers)))

    return bench.wait(at_once())


@pytest.mark.rule("TOOL-3")
def test_each_of_many_calls_gets_its_own_answer(one: Bench) -> None:
    numbers = list(range(1, 200))
    outcomes = ask_all(one, "result = [n, n * n]", numbers)
    assert [outcome.result for outcome in outcomes] == [[n, n * n] for n in numbers]


@pytest.mark.rule("TOOL-3")
def test_of_calls_in_one_child_only_the_faulty_ones_fail(one: Bench) -> None:
    numbers = [1, 2, 0, 3, 0, 6]
    outcomes = ask_all(one, DIVIDE, numbers)
    assert [outcome.result for outcome in outcomes] == [6, 3, None, 2, None, 1]
    kinds = [(outcome.block or {})["exception_type"] for outcome in outcomes if outcome.error]
    assert kinds == ["ZeroDivisionError"] * 2


@pytest.mark.rule("TOOL-3")
def test_a_call_that_takes_long_holds_up_no_other(bench: Bench) -> None:
    async def first_done() -> int:
        for _ in range(3):
            await bench.call(COUNT, n=1)
        endless = [asyncio.ensure_future(bench.call(COUNT, n=10**12)) for _ in range(1)]
        quick = [asyncio.ensure_future(bench.call(COUNT, n=3)) for _ in range(40)]
        outcomes = await asyncio.gather(*quick)
        for task in endless:
            assert not task.done()
            task.cancel()
        await asyncio.gather(*endless, return_exceptions=True)
        return sum(int(outcome.result) for outcome in outcomes)

    assert bench.wait(first_done()) == 40 * 3


@pytest.mark.rule("TOOL-3")
def test_a_child_whose_calls_were_asked_elsewhere_is_free_again(one: Bench) -> None:
    """It answers them all the same, to nobody: it was never given back, and no call got it."""

    async def after_a_long_one() -> list[object]:
        for _ in range(3):
            await one.call(COUNT, n=1)
        calls = [one.call(COUNT, n=n) for n in (LONG, 3, 4, 5)]
        return [outcome.result for outcome in await asyncio.gather(*calls)]

    assert one.wait(after_a_long_one()) == [sum(range(LONG)), 3, 6, 10]


@pytest.mark.rule("TOOL-3")
def test_a_child_that_dies_with_several_calls_makes_room_for_another(one: Bench) -> None:
    async def survive() -> list[object]:
        for _ in range(3):
            await one.call(COUNT, n=1)
        calls = [asyncio.ensure_future(one.call(COUNT, n=n)) for n in (LONG, 3, 4)]
        await asyncio.sleep(0)
        for child in [*one.tool._children._busy]:
            child.kill()
        return [outcome.result for outcome in await asyncio.gather(*calls)]

    assert one.wait(survive()) == [sum(range(LONG)), 3, 6]


@pytest.mark.rule("TOOL-3")
def test_cancelling_one_call_takes_nothing_from_those_behind_it(one: Bench) -> None:
    async def cancel() -> list[object]:
        for _ in range(3):
            await one.call(COUNT, n=1)
        calls = [asyncio.ensure_future(one.call(COUNT, n=n)) for n in (10**12, 3, 4, 5)]
        await asyncio.sleep(0)
        calls[0].cancel()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        return [getattr(outcome, "result", None) for outcome in outcomes]

    assert one.wait(cancel()) == [None, 3, 6, 10]


@pytest.mark.parametrize(
    ("code", "pure"),
    [
        ("result = n + 1", True),
        ("def main(n): return sorted(str(n))", True),
        ("print(n)", False),
        ("import os\nresult = os.getpid()", False),
        ("result = open('x').read()", False),
        ("result = ().__class__", False),
        ("result = getattr(n, 'real')", False),
        ("result = id(n)", False),
        ("match n:\n    case object(__class__=found): result = found", False),
        ("match n:\n    case int(real=found): result = found", False),
    ],
)
def test_pure_is_what_nobody_can_tell_from_running_twice(code: str, pure: bool) -> None:
    assert Program(code).pure is pure
