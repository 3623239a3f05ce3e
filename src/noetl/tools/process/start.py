"""How a command comes to life: confined, and with nothing of the worker but its streams' ends."""

import marshal
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec

from noetl.tools.bounds import CPU_SECONDS, Namespaces

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from inside.warden import serve; "
    "serve(*map(int, sys.argv[2:]))"
)
"""Not by path: what is imported is compiled once, what is run as a script is so each time."""
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
"""What a command gets of the system; no variable of the worker is among it (trust model)."""


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
    with ExitStack() as theirs, ExitStack() as undo:
        pipes = []
        for _ in range(3):
            reading, writing = os.pipe()
            undo.callback(os.close, reading)
            theirs.callback(os.close, writing)
            os.set_blocking(reading, False)
            pipes.append((reading, writing))
        (status, status_end), (out, out_end), (err, err_end) = pipes
        stdin, stdin_end = None, subprocess.DEVNULL
        if order.stdin is not None:
            stdin_end, stdin = os.pipe()
            theirs.callback(os.close, stdin_end)
            undo.callback(os.close, stdin)
            os.set_blocking(stdin, False)
        orders = os.memfd_create("orders")
        theirs.callback(os.close, orders)
        write_all(orders, marshal.dumps(told(order)))
        os.lseek(orders, 0, os.SEEK_SET)
        given = map(str, (orders, status_end, os.getpid()))
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", PROGRAM, str(Path(__file__).parent), *given],
            stdin=stdin_end,
            stdout=out_end,
            stderr=err_end,
            pass_fds=(orders, status_end),
            start_new_session=True,
            cwd=folder,
            env=ENVIRONMENT,
        )
        undo.pop_all()
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
