"""What a command sees of the machine, where the kernel lets it be confined."""

import os
import subprocess
import sys

import pytest
from tests.house.tree import ROOT
from tests.unit.tools.process.bench import Bench

from noetl.tools.process.capture import Captured, CommandOutput
from noetl.tools.process.outcomes import outcome_of
from noetl.tools.process.running import CommandEnd, ended_of
from noetl.tools.process.tool import ShellTool


def test_a_command_sees_its_own_processes_only(bench: Bench) -> None:
    numbers = bench.stdout("ls /proc | grep -c '^[0-9]'; echo $$").split()
    assert int(numbers[0]) <= 5
    assert numbers[1] == "2"


def test_without_namespaces_it_sees_all(bench: Bench) -> None:
    assert int(bench.stdout("echo $$", tool=ShellTool(namespaces="off"))) > 2


def test_without_network_there_is_nothing_to_reach(bench: Bench) -> None:
    devices = bench.stdout("tail -n +3 /proc/net/dev | cut -d: -f1", resources={"network": "none"})
    assert devices.split() == ["lo"]
    shared = bench.stdout("readlink /proc/self/ns/net").strip()
    alone = bench.stdout("readlink /proc/self/ns/net", resources={"network": "none"}).strip()
    assert shared != alone


def test_no_network_holds_without_the_other_namespaces(bench: Bench) -> None:
    devices = bench.stdout(
        "tail -n +3 /proc/net/dev | cut -d: -f1",
        resources={"network": "none"},
        tool=ShellTool(namespaces="off"),
    )
    assert devices.split() == ["lo"]


@pytest.mark.parametrize(
    ("said", "returncode", "ended"),
    [
        (b"exit 3 0\n", 0, CommandEnd(exit_code=3)),
        (b"exit 3 1\n", -9, CommandEnd(exit_code=3)),
        (b"signal 15 0\n", 0, CommandEnd(signal=15)),
        (b"exec 2\nexit 127 0\n", 0, CommandEnd(fault=2)),
        (b"network 0\n", 0, CommandEnd(lacking="network")),
        (b"namespaces 0\n", 0, CommandEnd(lacking="namespaces")),
        (b"free 0\nexit 3 1\n", 0, CommandEnd(exit_code=3, free=True)),
        (b"free 0\n", -9, CommandEnd(signal=9, free=True)),
        (b"", -9, CommandEnd(signal=9)),
        (b"", 1, CommandEnd()),
    ],
)
def test_what_the_warden_tells(said: bytes, returncode: int, ended: CommandEnd) -> None:
    assert ended_of(said, returncode) == ended


def test_what_must_be_confined_and_cannot_is_not_run() -> None:
    nothing = CommandOutput(Captured(), Captured())
    outcome = outcome_of(CommandEnd(lacking="network"), nothing, "/bin/sh")
    assert outcome.error is not None
    assert outcome.error["kind"] == "input"
    assert outcome.error["message"].startswith("spec.resources.network is none, but the kernel")
    assert outcome.block == {"exit_code": None, "signal": None}


FORBIDDING = 'echo 0 > /proc/sys/user/max_pid_namespaces && exec "$0" -c "$1"'
WORKER = """
import asyncio
from tests.support.kernels import forbid_landlock
from tests.support.workplace import BenchPlace, call_of
from noetl.kinds.code import ShellInputs
from noetl.tools.process.tool import ShellTool

async def calls():
    tool, call = ShellTool(), ShellInputs(command="echo $$")
    free = await tool.call(call_of(call), BenchPlace())
    alone = await tool.call(call_of(call, resources={"network": "none"}), BenchPlace())
    await tool.close()
    print(free.status, int(free.result["stdout"]) > 2, alone.error["kind"])
    place, tool = BenchPlace(), ShellTool(namespaces="demand")
    refused = await tool.call(call_of(call), place)
    tool = ShellTool()
    for _ in range(2):
        await tool.call(call_of(call), place)
    print(refused.error["message"].split()[3], place.lines[1][1].split()[-1], len(place.lines))

forbid_landlock()
asyncio.run(calls())
"""


def test_a_kernel_that_confines_nothing_refuses_only_what_needs_it() -> None:
    """A limit of the kernel, which whoever owns a user namespace may set in there."""
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", FORBIDDING, sys.executable, WORKER],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    )
    words = [b"ok", b"True", b"input", b"namespaces", b"(docs/operate/trust-model.md)", b"3"]
    assert ended.stdout.split() == words
