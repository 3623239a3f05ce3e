"""
What every tool kind must satisfy, whatever it does (the contract stands in tools/tool.py).

To add a kind: give its tool, a call that succeeds, one that fails and one that does not end,
in subjects.py.
"""

import asyncio
from typing import Any

import msgspec
import pytest
from tests.contracts.subjects import SUBJECTS, Subject
from tests.support.workplace import call_of

from noetl.kinds.kind import Inputs
from noetl.messages.outcome import ERROR_KINDS, Outcome
from noetl.playbook.model import Timeout


@pytest.fixture(params=SUBJECTS)
def subject(request: pytest.FixtureRequest) -> Subject:
    """The servers are started only for the kinds that need them."""
    make, needs = SUBJECTS[request.param]
    return make(request.getfixturevalue(needs))


def run(subject: Subject, *inputs: Inputs, **more: Any) -> list[Outcome]:
    """All calls at once, with one tool."""

    async def calls() -> list[Outcome]:
        tool = subject.tool()
        try:
            asked = (tool.call(call_of(one, **more), subject.place) for one in inputs)
            return await asyncio.gather(*asked)
        finally:
            await tool.close()

    return asyncio.run(calls())


def test_a_call_that_succeeds_has_a_result_and_no_error(subject: Subject) -> None:
    (outcome,) = run(subject, subject.good)

    assert (outcome.status, outcome.error) == ("ok", None)
    assert msgspec.json.decode(msgspec.json.encode(outcome.result)) == outcome.result
    assert set(outcome.block or {}) == subject.block


def test_a_call_that_fails_is_an_outcome_of_a_known_kind(subject: Subject) -> None:
    (outcome,) = run(subject, subject.bad)

    assert outcome.status == "error"
    assert outcome.error is not None
    assert outcome.error["kind"] in ERROR_KINDS
    assert outcome.error["kind"] != "internal"
    assert isinstance(outcome.error["retryable"], bool)
    assert "Traceback" not in outcome.error["message"]
    assert set(outcome.block or {}) == subject.block


def test_a_tool_that_keeps_time_ends_the_call_itself(subject: Subject) -> None:
    assert getattr(subject.tool(), "keeps_time", False)

    (outcome,) = run(subject, subject.endless, timeout=Timeout(total=0.1))

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("timeout", True)


def test_calls_may_run_at_once(subject: Subject) -> None:
    outcomes = run(subject, *[subject.good, subject.bad] * 20)

    assert [outcome.status for outcome in outcomes] == ["ok", "error"] * 20


def test_cancelling_ends_the_call_and_leaves_the_tool_usable(subject: Subject) -> None:
    async def calls() -> Outcome:
        tool = subject.tool()
        running = asyncio.create_task(tool.call(call_of(subject.endless), subject.place))
        # Another call ends meanwhile, so that the endless one has surely begun.
        await tool.call(call_of(subject.good), subject.place)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        outcome = await tool.call(call_of(subject.good), subject.place)
        await tool.close()
        return outcome

    assert asyncio.run(calls()).status == "ok"


def test_forgetting_and_closing_may_come_twice_and_without_a_call(subject: Subject) -> None:
    async def calls() -> None:
        tool = subject.tool()
        for _ in range(2):
            await tool.forget("never used")
            await tool.close()

    asyncio.run(calls())


def test_a_tool_works_after_it_forgot(subject: Subject) -> None:
    async def calls() -> list[str]:
        tool = subject.tool()
        seen: list[str] = []
        for _ in range(2):
            outcome = await tool.call(call_of(subject.good, scratch="s"), subject.place)
            seen.append(outcome.status)
            await tool.forget("s")
        await tool.close()
        return seen

    assert asyncio.run(calls()) == ["ok", "ok"]


def test_a_full_disk_is_an_outcome_and_says_so(subject: Subject) -> None:
    subject.place.results.full = True

    (outcome,) = run(subject, subject.good, max_inline=1)

    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("internal", True)
    assert "No space left" in outcome.error["message"]


def test_a_body_that_is_begun_is_kept_or_dropped(subject: Subject) -> None:
    run(subject, subject.good, subject.bad, max_inline=1)

    assert subject.place.results.unfinished == 0
