"""How a child process comes to life: nothing of the worker goes with it but three pipes' ends."""

import os
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

import msgspec

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
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


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
    with ExitStack() as theirs, ExitStack() as undo:
        ours, connection = socket.socketpair()
        undo.callback(ours.close)
        theirs.callback(connection.close)
        ends = []
        for _ in range(3):
            reading, writing = os.pipe()
            os.set_blocking(reading, False)
            undo.callback(os.close, reading)
            theirs.callback(os.close, writing)
            ends.append((reading, writing))
        (printed, printed_end), (out, out_end), (err, err_end) = ends
        given = (connection.fileno(), printed_end, os.getpid())
        process = subprocess.Popen(
            [python, "-I", "-S", "-c", PROGRAM, *FOLDERS, mode, *map(str, given)],
            stdin=subprocess.DEVNULL,
            stdout=out_end,
            stderr=err_end,
            pass_fds=(connection.fileno(), printed_end),
            start_new_session=True,
            cwd=folder,
            env=ENVIRONMENT | {"HOME": folder, "TMPDIR": folder},
        )
        undo.pop_all()
    ours.setblocking(False)
    return StartedChild(process, os.pidfd_open(process.pid), ours, printed, out, err)
