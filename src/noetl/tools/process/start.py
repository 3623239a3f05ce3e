"""How a command comes to life: confined, and with nothing of the worker but its streams' ends."""

import marshal
import os
import subprocess
from pathlib import Path

import msgspec

from noetl.tools.bounds import CPU_SECONDS, Namespaces
from noetl.tools.children import NULL, PipeEnds, isolated, spawn

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from inside.warden import serve; "
    "serve(*map(int, sys.argv[2:]))"
)
"""Not by path: what is imported is compiled once, what is run as a script is so each time."""


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What shall run, and within which bounds."""

    words: list[str]
    """The program by its full path, and its arguments."""
    environment: dict[str, str]
    stdin: bytes | None = None
    memory: int | None = None
    """Bytes of address space; None sets no limit."""
    cpus: list[int] = []
    """The processors that it may use; none named, it may use all."""
    network: bool = True
    namespaces: Namespaces = "auto"
    """Whether to ask the kernel for namespaces of processes and mounts, or to insist."""
    cpu_seconds: int = CPU_SECONDS


class StartedCommand(msgspec.Struct, frozen=True):
    """The worker's ends."""

    process: subprocess.Popen[bytes]
    exit: int
    """Readable when the warden has ended."""
    status: int
    stdin: int | None
    out: int
    err: int


def start(order: ProcessSpec, folder: str) -> StartedCommand:
    """A warden that works in `folder` and runs the command; raises OSError."""
    with PipeEnds() as ends:
        (status, status_end), (out, out_end), (err, err_end) = (ends.pipe() for _ in range(3))
        stdin, stdin_end = (None, NULL) if order.stdin is None else ends.pipe(writes=True)
        orders = os.memfd_create("orders")
        ends.theirs.callback(os.close, orders)
        write_all(orders, marshal.dumps(told(order)))
        os.lseek(orders, 0, os.SEEK_SET)
        given = map(str, (orders, status_end, os.getpid()))
        process = spawn(
            isolated(PROGRAM, str(Path(__file__).parent), *given),
            stdin=stdin_end,
            stdout=out_end,
            stderr=err_end,
            fds=(orders, status_end),
            cwd=folder,
        )
    return StartedCommand(process, os.pidfd_open(process.pid), status, stdin, out, err)


def told(order: ProcessSpec) -> dict[str, object]:
    """The order as the warden reads it."""
    fields: dict[str, object] = msgspec.structs.asdict(order)
    del fields["stdin"]
    return fields


def write_all(descriptor: int, text: bytes) -> None:
    rest = memoryview(text)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
