"""Commands that do not end by themselves, and what they would leave behind."""

import asyncio
from pathlib import Path

import pytest
from tests.support.workplace import BenchPlace, call_of
from tests.unit.tools.process.bench import Bench, running_with

from noetl.kinds.code import ShellInputs
from noetl.tools.process.tool import ShellTool

STUBBORN = "trap '' TERM; echo up; while true; do sleep {word}; done"
STRAYS = {
    "in the group": "sleep {word} & echo up",
    "of a session of its own": "setsid sleep {word} & echo up",
    "of a parent that is gone": "(setsid sh -c 'sleep {word} & sleep {word}' &) ; echo up",
}


@pytest.mark.parametrize("namespaces", [True, False])
def test_a_timeout_ends_the_group_and_keeps_what_was_printed(
    bench: Bench, namespaces: bool
) -> None:
    tool = ShellTool(namespaces=namespaces)
    outcome = bench.shell("echo so far; sleep 6101; echo never", total=0.5, tool=tool)

    assert outcome.error == {
        "kind": "timeout",
        "message": "the command did not end within 0.5 s, and was ended",
        "retryable": True,
    }
    assert outcome.block == {"exit_code": 143, "signal": "SIGTERM"}
    assert outcome.result["stdout"] == "so far\n"
    assert running_with("6101") == []


@pytest.mark.parametrize("namespaces", [True, False])
def test_a_command_may_clean_up_when_it_is_told_to_end(bench: Bench, namespaces: bool) -> None:
    command = "trap 'echo cleaned; exit 5' TERM; sleep 6102 & wait"
    outcome = bench.shell(command, total=0.5, tool=ShellTool(namespaces=namespaces))

    assert outcome.error is not None
    assert outcome.error["kind"] == "timeout"
    assert outcome.result == {"exit_code": 5, "stdout": "cleaned\n", "stderr": "", "data": None}


@pytest.mark.parametrize("namespaces", [True, False])
def test_what_ignores_the_request_to_end_is_killed(bench: Bench, namespaces: bool) -> None:
    tool = ShellTool(grace=0.2, namespaces=namespaces)
    outcome = bench.shell(STUBBORN.format(word="6103"), total=0.3, tool=tool)

    assert outcome.error is not None
    assert outcome.error["kind"] == "timeout"
    assert outcome.block == {"exit_code": 137, "signal": "SIGKILL"}
    assert running_with("6103") == []


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize("which", STRAYS)
def test_nothing_outlives_its_command(bench: Bench, which: str, namespaces: bool) -> None:
    word = f"61{list(STRAYS).index(which)}{int(namespaces)}"
    tool = ShellTool(namespaces=namespaces)
    outcome = bench.shell(STRAYS[which].format(word=word), tool=tool)

    assert (outcome.status, outcome.result["stdout"]) == ("ok", "up\n")
    assert running_with(word) == []


@pytest.mark.parametrize("namespaces", [True, False])
def test_a_cancelled_call_waits_until_its_command_is_gone(namespaces: bool) -> None:
    place = BenchPlace()

    async def cancel() -> None:
        tool = ShellTool(grace=0.2, namespaces=namespaces)
        inputs = ShellInputs(command=STUBBORN.format(word="6104"))
        call = asyncio.create_task(tool.call(call_of(inputs, max_inline=1), place))
        while not place.lines:  # it is up
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert running_with("6104") == []
        await tool.close()

    asyncio.run(cancel())
    assert place.results.unfinished == 0


def test_a_call_that_is_cancelled_twice_still_ends_its_command() -> None:
    place = BenchPlace()

    async def cancel() -> None:
        tool = ShellTool(grace=0.2)
        inputs = ShellInputs(command=STUBBORN.format(word="6105"))
        call = asyncio.create_task(tool.call(call_of(inputs), place))
        while not place.lines:
            await asyncio.sleep(0)
        for _ in range(2):
            call.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await call
        await tool.close()
        assert running_with("6105") == []

    asyncio.run(cancel())


def test_closing_the_tool_ends_what_runs() -> None:
    place = BenchPlace()

    async def close() -> str | None:
        tool = ShellTool(grace=0.2)
        call = asyncio.create_task(
            tool.call(call_of(ShellInputs(command="echo up; sleep 6106")), place)
        )
        while not place.lines:
            await asyncio.sleep(0)
        await tool.close()
        outcome = await call
        return outcome.status

    assert asyncio.run(close()) == "error"
    assert running_with("6106") == []


def test_a_worker_that_is_killed_takes_its_commands_along(tmp_path: Path) -> None:
    from tests.unit.tools.process.orphaned import killed_worker

    command, worker_exit = killed_worker(tmp_path, "6107")
    assert worker_exit == -9
    assert command > 0
    while running_with("6107"):  # the kernel ends it; a test that hangs here has found a bug
        pass
