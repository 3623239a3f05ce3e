"""How a child process comes to life: nothing of the worker goes with it but three pipes' ends."""

import os
import socket
import subprocess
from pathlib import Path

import msgspec

from noetl.tools.children import ENVIRONMENT, PipeEnds, isolated, spawn

PROGRAM = (
    "import sys; sys.path[:0] = sys.argv[1:3]; mode = sys.argv[3]; "
    "control, printed, worker = map(int, sys.argv[4:]); sys.argv[:] = ['task']; "
    "from namespaces import confine; parent = confine(mode, worker, (0, 1, 2, control, printed)); "
    "from inside.serve import serve; del sys.path[:2]; serve(control, printed, parent)"
)
"""Not by path: what is imported is compiled once, what is run as a script is so each time."""
FOLDERS = (
    str(Path(__file__).parent),
    str(Path(__file__).parent.with_name("process") / "inside"),
)


class StartedChild(msgspec.Struct, frozen=True):
    """The worker's ends."""

    process: subprocess.Popen[bytes]
    exit: int
    """Readable when the process has ended."""
    connection: socket.socket
    printed: int
    out: int
    err: int


def start(python: str, folder: str, mode: str) -> StartedChild:
    """A new child that works in `folder`, ready to be asked; raises OSError."""
    with PipeEnds() as ends:
        ours, connection = socket.socketpair()
        ends.ours.callback(ours.close)
        ends.theirs.callback(connection.close)
        (printed, printed_end), (out, out_end), (err, err_end) = (ends.pipe() for _ in range(3))
        given = (connection.fileno(), printed_end, os.getpid())
        process = spawn(
            isolated(PROGRAM, *FOLDERS, mode, *map(str, given), python=python),
            stdout=out_end,
            stderr=err_end,
            fds=(connection.fileno(), printed_end),
            cwd=folder,
            env=ENVIRONMENT | {"HOME": folder, "TMPDIR": folder},
        )
    ours.setblocking(False)
    return StartedChild(process, os.pidfd_open(process.pid), ours, printed, out, err)
