"""Which execution is meant by `last`, or by the beginning of an id."""

import asyncio

import pytest
from tests.contracts.homes import decision, row
from tests.support.scenario import scenario
from tests.support.steps import noop, step

from noetl.api.questions import PlaneQuestions
from noetl.cli.target import WHOLE, meant_id
from noetl.errors import ExecutionNotFound, NoetlError
from noetl.server.ids import new_execution_id

pytestmark = pytest.mark.unproven
"""The logs are written by hand."""

RUN = ("01abc", "01abd", "01abd-4.1-1", "02")


def meant(word: str, ids: tuple[str, ...] = RUN) -> str:
    return asyncio.run(found(word, ids))


async def found(word: str, ids: tuple[str, ...]) -> str:
    local = scenario(step("start", noop("a"))).local()
    for name in ids:
        parent = name.partition("-")[0] if "-" in name else None
        begun = row(name, parent_execution_id=parent)
        await local.storage.log.append(decision(name, 0, 1, row=begun))
    try:
        return await meant_id(PlaneQuestions(local), word)
    finally:
        await local.close()


@pytest.mark.parametrize(
    ("word", "whole"),
    [
        ("last", "02"),
        ("01abc", "01abc"),
        ("01abd", "01abd"),
        ("01abd-", "01abd-4.1-1"),
        ("0", None),
        ("01ab", None),
        ("02", "02"),
    ],
)
def test_the_beginning_of_one_id(word: str, whole: str | None) -> None:
    if whole is not None:
        assert meant(word) == whole
        return
    with pytest.raises(NoetlError, match=r"is the beginning of several ids: .*; write more of it"):
        meant(word)


def test_one_that_another_started_is_not_the_last() -> None:
    assert meant("last", RUN[:-1]) == "01abd"


@pytest.mark.parametrize("word", ["last", "9"])
def test_nothing_is_meant(word: str) -> None:
    with pytest.raises(ExecutionNotFound):
        meant(word, () if word == "last" else RUN)


def test_a_whole_id_is_not_looked_up() -> None:
    made = new_execution_id()
    assert WHOLE.fullmatch(made)
    assert WHOLE.fullmatch(f"{made}-4.1-1")
    assert not WHOLE.fullmatch(made[:-1])
    assert not WHOLE.fullmatch("last")
