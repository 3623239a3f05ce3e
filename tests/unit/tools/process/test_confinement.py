"""What a command sees of the machine, where the kernel lets it be confined."""

import pytest
from tests.unit.tools.process.bench import Bench

from noetl.tools.process.capture import Captured
from noetl.tools.process.outcomes import Printed, outcome_of
from noetl.tools.process.running import Ended, ended_of
from noetl.tools.process.tool import ShellTool


def test_a_command_sees_its_own_processes_only(bench: Bench) -> None:
    numbers = bench.stdout("ls /proc | grep -c '^[0-9]'; echo $$").split()
    assert int(numbers[0]) <= 5
    assert numbers[1] == "2"


def test_without_namespaces_it_sees_all(bench: Bench) -> None:
    assert int(bench.stdout("echo $$", tool=ShellTool(namespaces=False))) > 2


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
        tool=ShellTool(namespaces=False),
    )
    assert devices.split() == ["lo"]


@pytest.mark.parametrize(
    ("said", "returncode", "ended"),
    [
        (b"exit 3 0\n", 0, Ended(exit_code=3)),
        (b"exit 3 1\n", -9, Ended(exit_code=3)),
        (b"signal 15 0\n", 0, Ended(signal=15)),
        (b"exec 2\nexit 127 0\n", 0, Ended(fault=2)),
        (b"network 0\n", 0, Ended(unconfined=True)),
        (b"", -9, Ended(signal=9)),
        (b"", 1, Ended()),
    ],
)
def test_what_the_warden_tells(said: bytes, returncode: int, ended: Ended) -> None:
    assert ended_of(said, returncode) == ended


def test_what_must_be_confined_and_cannot_is_not_run() -> None:
    nothing = Printed(Captured(), Captured())
    outcome = outcome_of(Ended(unconfined=True), nothing, "/bin/sh")
    assert outcome.error is not None
    assert outcome.error["kind"] == "input"
    assert outcome.error["message"].startswith("spec.resources.network is none, but the kernel")
    assert outcome.block == {"exit_code": None, "signal": None}
