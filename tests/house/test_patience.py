"""A test that would wait for ever fails."""

import asyncio

import pytest
from tests.support.patience import bounded


def spin() -> None:
    with bounded(0.05):
        while True:
            pass


async def wait() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_loop_whose_fact_never_comes_fails_and_says_where() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"it waits at .*test_patience\.py:\d+"):
        spin()


def test_a_future_that_nobody_settles_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="nothing has come of it"), bounded(0.05):
        asyncio.run(wait())
