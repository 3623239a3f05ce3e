"""What is left to say when a run could not go on, or could not be shown."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.cli.running import shown as s

from noetl.cli.background.signals import unless
from noetl.cli.running.attend import attended
from noetl.cli.running.show import SteadyShow
from noetl.errors import LogUnavailable


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            LogUnavailable("the disk is full"),
            "the disk is full; then continue with: noetl resume x1",
        ),
        (LogUnavailable("free some, and noetl resume x1"), "free some, and noetl resume x1"),
        (OSError(28, "No space left"), "No space left; then continue with: noetl resume x1"),
    ],
)
async def test_a_log_that_cannot_be_written_says_how_to_go_on(fault: Exception, said: str) -> None:
    finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    finished.set_exception(fault)
    active: Any = SimpleNamespace(execution=s.active(), finished=finished)
    local: Any = None
    with pytest.raises(LogUnavailable, match=rf"{said}$"):
        await attended(local, active)


async def test_what_hangs_can_be_interrupted() -> None:
    loop = asyncio.get_running_loop()
    interrupted = asyncio.Event()
    hangs: asyncio.Future[int] = loop.create_future()
    loop.call_soon(interrupted.set)
    assert await unless(interrupted, hangs) is None
    assert hangs.cancelled()
    done: asyncio.Future[int] = loop.create_future()
    done.set_result(3)
    assert await unless(interrupted, done) == 3


class Broken:
    """A show whose output is gone."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        self.asked = 0

    def begin(self, *_: object) -> None:
        self.asked += 1
        raise self.fault

    take = hear = tell = end = begin


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (OSError("gone"), "progress can no longer be shown (gone); the execution continues\n"),
        (BrokenPipeError(), ""),
    ],
)
def test_a_show_that_fails_says_so_once(
    fault: Exception, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Broken(fault)
    show = SteadyShow(broken)
    show.begin(s.active())
    show.take(s.active(), [])
    show.end()
    assert (broken.asked, capsys.readouterr().err) == (1, said)
