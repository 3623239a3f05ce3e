"""Containers on a real podman: what goes in, what comes out, how they end."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of
from tests.unit.tools.container.bench import Bench

from noetl.kinds.code import ContainerInputs
from noetl.messages.reference import Reference
from noetl.tools.container.programs import KEEPER
from noetl.tools.tool import ToolCall


def test_a_text_is_for_the_shell_of_the_image(bench: Bench) -> None:
    outcome = bench.run("echo out; echo err >&2")
    assert outcome.result == {"exit_code": 0, "stdout": "out\n", "stderr": "err\n", "data": None}
    assert sorted(bench.place.lines) == [("stderr", "err"), ("stdout", "out")]


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ({}, "by itself\n"),
        ({"command": ["echo", "a b", "$HOME"]}, "a b $HOME\n"),
        ({"command": ["echo"], "args": ["a", 1, {"b": None}]}, 'a 1 {"b":null}\n'),
        ({"command": 'echo "$1-$2"', "args": ["a b", 2]}, "a b-2\n"),
        ({"command": ["pwd"], "workdir": "/work"}, "/work\n"),
        ({"command": ["cat"], "stdin": "text"}, "text"),
        ({"command": ["cat"], "stdin": {"a": 1}}, '{"a":1}'),
        ({"command": ["cat"]}, ""),
        ({"command": ["wc", "-c"], "stdin": "x" * 300_000}, "300000\n"),
        ({"command": 'echo "$A|$B"', "env": {"A": "1\n2", "B": True}}, "1\n2|true\n"),
        ({"command": 'echo "$PATH $HOME"', "env": {"PATH": "/bin", "HOME": "/h #"}}, "/bin /h #\n"),
    ],
)
def test_inputs_reach_the_container(bench: Bench, given: dict[str, Any], printed: str) -> None:
    assert bench.stdout(**given) == printed


def test_odd_values_arrive_as_they_are(bench: Bench) -> None:
    values = {"A": '"a', "B": "'b' #", "C": " c\t", "D": "", "E": "=$HOME*", "F": "f\r", "G": "ü\\"}
    long = {"LONG": "x" * 70_000}
    lines = bench.stdout(["env"], env={**values, **long}).split("\n")
    assert {f"{name}={value}" for name, value in {**values, **long}.items()} <= set(lines)


def test_nothing_for_the_container_reaches_the_program(bench: Bench, tmp_path: Path) -> None:
    """The loader would complain about the library, or run it."""
    library = str(tmp_path / "none.so")
    outcome = bench.run(["/bin/busybox", "env"], env={"LD_PRELOAD": library})
    assert f"LD_PRELOAD={library}" in outcome.result["stdout"].split("\n")
    assert outcome.result["stderr"] == ""


def test_json_is_parsed(bench: Bench) -> None:
    assert bench.run("echo '[1, 2]'").result["data"] == [1, 2]


def test_nothing_of_the_worker_is_in_the_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(bench.podman.environment, "HTTP_PROXY", "http://user:word@127.0.0.1:9")
    monkeypatch.setitem(bench.podman.environment, "PLANTED", "1")
    names = {line.partition("=")[0] for line in bench.stdout(["env"]).splitlines()}
    assert names <= {"PATH", "HOME", "HOSTNAME", "TERM", "container", "PWD", "SHLVL"}


def test_by_default_there_is_no_network(bench: Bench) -> None:
    listed = "ls /sys/class/net"
    assert bench.stdout(listed).split() == ["lo"]
    own = sorted(os.listdir("/sys/class/net"))
    assert sorted(bench.stdout(listed, network="host").split()) == own


def test_a_mount_shows_a_folder_of_the_playbook(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").write_text("shown")
    mounts: list[dict[str, Any]] = [{"source": "in", "target": "/in"}]
    assert bench.stdout("cat /in/file", mounts=mounts, folder=str(tmp_path)) == "shown"
    error = bench.error("echo x > /in/file", mounts=mounts, folder=str(tmp_path))
    assert error["kind"] == "exit"
    mounts[0]["read_only"] = False
    bench.stdout("echo -n x > /in/file", mounts=mounts, folder=str(tmp_path))
    assert (tmp_path / "in" / "file").read_text() == "x"


def test_memory_is_limited(bench: Bench) -> None:
    greedy = "x=$(yes | head -c 100000000); echo done"
    error = bench.error(greedy, resources={"memory": "20Mi"})
    assert (error["kind"], error["retryable"]) == ("limit", False)
    assert "spec.resources.memory" in error["message"]


def test_processors_are_limited(bench: Bench) -> None:
    assert bench.stdout(["echo", "ok"], resources={"cpu": 0.5}) == "ok\n"


@pytest.mark.parametrize(("code", "retryable"), [(3, False), (75, True)])
def test_another_exit_code_is_an_error(bench: Bench, code: int, retryable: bool) -> None:
    outcome = bench.run(f"echo why >&2; exit {code}")
    assert outcome.error == {
        "kind": "exit",
        "message": f"the container ended with exit code {code}: why",
        "retryable": retryable,
    }
    assert outcome.result["exit_code"] == code
    assert (outcome.block or {})["exit_code"] == code


FAILURES: dict[str, tuple[dict[str, Any], str, bool, str]] = {
    "no such image": ({"image": "not-there"}, "container", False, "'not-there' is not there"),
    "an unknown registry": ({"image": "nowhere.invalid/a:1"}, "connection", True, "cannot reach"),
    "no such program": ({"command": ["nosuch"]}, "container", False, "not found"),
    "no program at all": ({"command": ["/tmp"]}, "container", False, "permission denied"),
    "no such folder": ({"command": ["pwd"], "workdir": "/no"}, "container", False, "/no"),
    "no such network": ({"network": "nosuch"}, "container", False, "nosuch"),
}


@pytest.mark.parametrize("case", FAILURES)
def test_what_cannot_be_started_is_said(bench: Bench, case: str) -> None:
    given, kind, retryable, words = FAILURES[case]
    error = bench.error(**given)
    assert (error["kind"], error["retryable"]) == (kind, retryable), error
    assert words in error["message"]


def test_large_output_goes_to_the_result_store(bench: Bench) -> None:
    outcome = bench.run("yes | head -c 3000000", max_inline=1000)
    stored = outcome.result["stdout"]
    assert isinstance(stored, Reference)
    assert len(bench.place.results.value(stored)) == 3_000_000


def test_output_without_end_is_cut_off(bench: Bench) -> None:
    error = bench.error("yes", tool=bench.tool(longest=1_000_000))
    assert error["kind"] == "limit"
    assert "stdout is longer than the allowed 1000000 bytes" in error["message"]


def test_output_that_is_no_text_is_kept(bench: Bench) -> None:
    outcome = bench.run(r"printf '\377\000\001'")
    assert outcome.result["stdout"] == "/wAB"


@pytest.mark.parametrize("command", ["sleep 600", "trap '' TERM; while true; do sleep 1; done"])
def test_a_timeout_removes_the_container(bench: Bench, command: str) -> None:
    outcome = bench.run(f"echo begun; {command}", total=3)
    assert outcome.error is not None
    assert (outcome.error["kind"], outcome.error["retryable"]) == ("timeout", True)


class Listening(BenchPlace):
    """Tells when the first line comes."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = asyncio.Event()

    def log(self, call: ToolCall[Any], stream: str, text: str) -> None:
        super().log(call, stream, text)
        self.heard.set()


@pytest.mark.parametrize("how", ["cancel", "close"])
def test_no_container_outlives_its_call(bench: Bench, how: str) -> None:
    """Lines come while it runs; when the call is over, the container is gone."""

    async def call() -> tuple[list[str], list[str]]:
        tool, place = bench.tool(), Listening()
        inputs = ContainerInputs(image=bench.podman.image, command="echo begun; sleep 600")
        running = asyncio.create_task(tool.call(call_of(inputs), place))
        await place.heard.wait()
        before = bench.podman.containers()
        assert not running.done()
        if how == "close":
            await tool.close()
            await running
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await tool.close()
        assert place.lines == [("stdout", "begun")]
        return before, bench.podman.containers()

    before, after = asyncio.run(call())
    assert (len(before), after) == (1, [])


def test_what_a_killed_worker_left_is_removed(bench: Bench) -> None:
    """Its folder and its process are gone: nobody else would remove the container."""
    label = f"{KEEPER}={socket.gethostname()}"
    gone, lives = f"noetl-container-gone-{2**22 + 1}-1", f"noetl-container-gone-{os.getpid()}-1"
    options = ("--network", "none", "--log-driver", "none", bench.podman.image, "true")
    for name, labelled in ((gone, label), (lives, label), ("other-1", label), ("other-2", "a=b")):
        bench.podman.ask("create", "--name", name, "--label", labelled, *options)
    bench.stdout("true")
    assert bench.podman.containers() == [lives, "other-1", "other-2"]
    bench.podman.ask("rm", "--all", "--force")
