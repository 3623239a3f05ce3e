"""Commands that do not end by themselves, and what they would leave behind."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest
from tests.support.workplace import BenchPlace, call_of
from tests.unit.tools.process.bench import Bench, running_with
from tests.unit.tools.process.orphaned import killed_worker

from noetl.kinds.code import ShellInputs
from noetl.messages.outcome import Outcome
from noetl.tools.bounds import Namespaces
from noetl.tools.process.tool import ShellTool

STUBBORN = "trap '' TERM; echo up; while true; do sleep {word}; done"
STRAYS = {
    "in the group": "sleep {word} & echo up",
    "of a session of its own": "setsid sleep {word} & echo up",
    "of a parent that is gone": "(setsid sh -c 'sleep {word} & sleep {word}' &) ; echo up",
}
NUMBER = count(1)
End = Callable[[ShellTool, "asyncio.Task[Outcome]"], Awaitable[None]]


@pytest.fixture
def word() -> str:
    """How long something sleeps: a number that no other test has on a command line."""
    return f"9{os.getpid()}{next(NUMBER):03}"


async def close(tool: ShellTool, call: "asyncio.Task[Outcome]") -> None:
    del call
    await tool.close()


async def cancel(tool: ShellTool, call: "asyncio.Task[Outcome]") -> None:
    del tool
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def cancel_twice(tool: ShellTool, call: "asyncio.Task[Outcome]") -> None:
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call
    await tool.close()


def ended_when_up(
    command: str, end: End = close, *, namespaces: Namespaces = "auto", grace: float = 60.0
) -> tuple[Outcome | None, BenchPlace]:
    """The outcome of a command that is ended once it has printed something."""
    place = BenchPlace()

    async def work() -> Outcome | None:
        tool = ShellTool(grace=grace, namespaces=namespaces)
        inputs = ShellInputs(command=command)
        call = asyncio.create_task(tool.call(call_of(inputs), place))
        while not place.lines:
            await asyncio.sleep(0)
        await end(tool, call)
        await tool.close()
        return None if call.cancelled() else await call

    return asyncio.run(work()), place


def test_a_timeout_ends_the_command(bench: Bench, word: str) -> None:
    outcome = bench.shell(f"sleep {word}", total=0.2)

    assert outcome.error == {
        "kind": "timeout",
        "message": "the command did not end within 0.2 s, and was ended",
        "retryable": True,
    }
    assert set(outcome.block or {}) == {"exit_code", "signal"}
    assert running_with(word) == []


@pytest.mark.parametrize("namespaces", ["auto", "off"])
def test_the_group_is_told_to_end_and_what_it_printed_is_kept(
    word: str, namespaces: Namespaces
) -> None:
    outcome, _ = ended_when_up(f"echo so far; sleep {word}; echo never", namespaces=namespaces)

    assert outcome is not None
    assert (outcome.error or {})["kind"] == "cancelled"
    assert outcome.block == {"exit_code": 143, "signal": "SIGTERM"}
    assert outcome.result["stdout"] == "so far\n"
    assert running_with(word) == []


@pytest.mark.parametrize("namespaces", ["auto", "off"])
def test_a_command_may_clean_up_when_it_is_told_to_end(word: str, namespaces: Namespaces) -> None:
    command = f"trap 'echo cleaned; exit 5' TERM; sleep {word} & echo up; wait"
    outcome, _ = ended_when_up(command, namespaces=namespaces)

    assert outcome is not None
    expected = {"exit_code": 5, "stdout": "up\ncleaned\n", "stderr": "", "data": None}
    assert outcome.result == expected
    assert running_with(word) == []


@pytest.mark.parametrize("namespaces", ["auto", "off"])
def test_what_ignores_the_request_to_end_is_killed(word: str, namespaces: Namespaces) -> None:
    command = STUBBORN.format(word=word)
    outcome, _ = ended_when_up(command, namespaces=namespaces, grace=0.1)

    assert outcome is not None
    assert outcome.block == {"exit_code": 137, "signal": "SIGKILL"}
    assert running_with(word) == []


@pytest.mark.parametrize("namespaces", ["auto", "off"])
@pytest.mark.parametrize("which", STRAYS)
def test_nothing_outlives_its_command(
    bench: Bench, word: str, which: str, namespaces: Namespaces
) -> None:
    tool = ShellTool(namespaces=namespaces)
    outcome = bench.shell(STRAYS[which].format(word=word), tool=tool)

    assert (outcome.status, outcome.result["stdout"]) == ("ok", "up\n")
    assert running_with(word) == []


@pytest.mark.parametrize("end", [cancel, cancel_twice])
@pytest.mark.parametrize("namespaces", ["auto", "off"])
def test_a_cancelled_call_ends_its_command(word: str, end: End, namespaces: Namespaces) -> None:
    command = STUBBORN.format(word=word)
    outcome, place = ended_when_up(command, end, namespaces=namespaces, grace=0.1)

    assert outcome is None
    assert running_with(word) == []
    assert place.results.unfinished == 0


def test_a_worker_that_is_killed_takes_its_commands_along(tmp_path: Path, word: str) -> None:
    command, worker_exit = killed_worker(tmp_path, word)
    assert worker_exit == -9
    assert command > 0
    while running_with(word):  # the kernel ends it; a test that hangs here has found a bug
        os.sched_yield()
