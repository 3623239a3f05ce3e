"""What OUT, TASK and TOOL ask of `container`, on a real podman."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.podman import Podman
from tests.support.workplace import call_of
from tests.unit.tools.container.bench import Bench

from noetl.kinds.code import ContainerInputs


@pytest.fixture
def bench(podman: Podman) -> Iterator[Bench]:
    yield Bench(podman)
    assert podman.containers() == []


@pytest.mark.rule("OUT-2", "OUT-3")
def test_the_result_is_what_it_printed_and_the_block_says_what_ran(bench: Bench) -> None:
    outcome = bench.run("echo '{\"a\": 1}'; echo aside >&2")
    assert outcome.result == {
        "exit_code": 0,
        "stdout": '{"a": 1}\n',
        "stderr": "aside\n",
        "data": {"a": 1},
    }
    assert outcome.block is not None
    image_id = outcome.block.pop("image_id")
    assert (
        bench.podman.ask("inspect", "--format", "{{.Id}}", bench.podman.image).strip() == image_id
    )
    assert outcome.block == {
        "engine": "podman",
        "image": bench.podman.image,
        "exit_code": 0,
        "oom_killed": False,
    }


@pytest.mark.rule("OUT-4")
@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"command": "exit 3"}, "exit"),
        ({"image": "not-there"}, "container"),
        ({"command": ["nosuch"]}, "container"),
        ({"command": ["true"], "auth": "nobody"}, "auth"),
        ({"command": ["true"], "network": "a:b"}, "input"),
    ],
)
def test_every_failure_has_its_kind(bench: Bench, given: dict[str, Any], kind: str) -> None:
    error = bench.error(**given)
    assert (error["kind"], error["retryable"]) == (kind, False)


@pytest.mark.rule("TASK-7")
def test_a_timeout_ends_the_container(bench: Bench) -> None:
    error = bench.error(["sleep", "600"], total=2)
    assert error == {
        "kind": "timeout",
        "message": "the container did not end within 2 s, and was removed",
        "retryable": True,
    }


@pytest.mark.rule("TASK-11")
def test_resources_bound_the_container(bench: Bench) -> None:
    limits = {"memory": "24Mi", "cpu": 1}
    file = "/sys/fs/cgroup/memory/memory.limit_in_bytes"
    look = f"cat {file} 2>/dev/null || cat /sys/fs/cgroup/memory.max"
    assert bench.stdout(look, resources=limits) == f"{24 * 1024 * 1024}\n"


@pytest.mark.rule("TOOL-0")
def test_every_input_reaches_the_container(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("shown")
    printed = bench.stdout(
        'pwd; echo "$A $1"; cat; cat /file; ls /sys/class/net',
        args=["b"],
        env={"A": "a"},
        stdin="in\n",
        workdir="/work",
        mounts=[{"source": "file", "target": "/file"}],
        network="none",
        folder=str(tmp_path),
        engine="podman",
    )
    assert printed == "/work\na b\nin\nshownlo\n"


@pytest.mark.rule("KEY-2")
def test_a_secret_is_never_on_a_command_line(bench: Bench) -> None:
    """All command lines of the machine are read while the container runs."""

    async def call() -> tuple[bytes, str]:
        tool = bench.tool()
        inputs = ContainerInputs(
            image=bench.podman.image,
            command='cat; echo "$WORD"',
            env={"WORD": "s3cr3t-word"},
            stdin="s3cr3t-stdin ",
        )
        running = asyncio.create_task(tool.call(call_of(inputs), bench.place))
        seen = b""
        while not running.done():
            seen += await asyncio.to_thread(command_lines)
        await tool.close()
        return seen, running.result().result["stdout"]

    seen, printed = asyncio.run(call())
    assert b"--label" in seen
    assert b"s3cr3t" not in seen
    assert printed == "s3cr3t-stdin s3cr3t-word\n"


def command_lines() -> bytes:
    """Of podman and what it starts."""
    found = b""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_bytes()
        except OSError:
            continue
        if any(word in line for word in (b"podman", b"conmon", b"runc", b"busybox")):
            found += line
    return found
