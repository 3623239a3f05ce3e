"""A command while it runs, seen from the worker: its streams, its end, and how to end it."""

import asyncio
import marshal
import os
import signal
from collections.abc import Callable
from contextlib import suppress

import msgspec

from noetl.tools.bounds import CPU_SECONDS, Namespaces
from noetl.tools.children import INSIDE, NULL, PipeEnds, end_all, end_group, isolated, spawn
from noetl.tools.process.capture import STDERR, STDOUT

PIPE = 65_536
FULL = 32
"""Reads that empty any pipe."""


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
    private: list[str] = []
    """What it must not see, and of that what it may."""
    shown: list[str] = []
    writes: bool = False
    """Whether it may write where it is shown something."""
    cpu_seconds: int = CPU_SECONDS


class CommandEnd(msgspec.Struct, frozen=True):
    """How a command ended; one of the first four, or none if the warden was killed."""

    exit_code: int | None = None
    signal: int | None = None
    fault: int | None = None
    """The number of the error for which the program could not be run."""
    lacking: str | None = None
    """It was not run, since the kernel gave no `network` or no `namespaces`."""
    free: bool = False
    """Whether it ran unconfined, since the kernel allows no namespaces and has no Landlock."""


ENDS = {"exit": "exit_code", "signal": "signal", "exec": "fault"}
"""A word of the warden, and what it tells the number of."""


class RunningCommand:
    """
    One command. `take` gets its output piece by piece; if it raises, the command is killed and
    the exception stands in `refused`.
    """

    def __init__(self, order: ProcessSpec, folder: str, take: Callable[[int, bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._take = take
        self._said = b""
        self._unsent = memoryview(order.stdin or b"")
        self._start(order, folder)
        self.refused: Exception | None = None
        self.ended: asyncio.Future[CommandEnd] = self._loop.create_future()
        self._watch()

    def _start(self, order: ProcessSpec, folder: str) -> None:
        """A warden that works in `folder` and runs the command; raises OSError."""
        with PipeEnds() as ends, open(os.memfd_create("orders"), "wb") as orders:
            told = msgspec.structs.asdict(order)
            del told["stdin"]
            marshal.dump(told, orders)
            orders.flush()
            os.lseek(orders.fileno(), 0, os.SEEK_SET)
            (status, status_end), (out, out_end), (err, err_end) = (ends.pipe() for _ in range(3))
            stdin, stdin_end = (None, NULL) if order.stdin is None else ends.pipe(writes=True)
            given = map(str, (orders.fileno(), status_end, os.getpid()))
            self._process = spawn(
                isolated(PROGRAM, INSIDE, *given),
                stdin=stdin_end,
                stdout=out_end,
                stderr=err_end,
                fds=(orders.fileno(), status_end),
                cwd=folder,
            )
        self._exit = os.pidfd_open(self._process.pid)
        self._status, self._stdin = status, stdin
        self._streams = {out: STDOUT, err: STDERR}

    def _watch(self) -> None:
        for pipe in self._streams:
            self._loop.add_reader(pipe, self._read, pipe)
        self._loop.add_reader(self._status, self._read_status)
        self._loop.add_reader(self._exit, self._see_exit)
        if self._stdin is not None:
            self._loop.add_writer(self._stdin, self._send)

    def terminate(self) -> None:
        """Ask the command and its group to end."""
        with suppress(ProcessLookupError, PermissionError):
            if not self.ended.done():
                os.killpg(self._process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the command and all that it started, at once."""
        if not self.ended.done():
            end_all(self._process.pid)

    def _send(self) -> None:
        assert self._stdin is not None, "there is a stream to write to"
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent[:PIPE]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want to read; that is its own affair
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            self._loop.remove_writer(self._stdin)
            os.close(self._stdin)
            self._stdin = None

    def _read(self, pipe: int) -> bool:
        """Whether something came."""
        try:
            piece = os.read(pipe, PIPE)
        except BlockingIOError:
            return False
        if not piece:
            self._drop(pipe)
        elif self.refused is None:
            try:
                self._take(self._streams[pipe], piece)
            except Exception as refusal:
                self.refused = refusal
                self.kill()
        return bool(piece)

    def _drop(self, pipe: int) -> None:
        del self._streams[pipe]
        self._loop.remove_reader(pipe)
        os.close(pipe)

    def _read_status(self) -> None:
        with suppress(BlockingIOError):
            piece = os.read(self._status, PIPE)
            self._said += piece
            if not piece:
                self._loop.remove_reader(self._status)
            elif self._said.endswith(b" 1\n"):
                # What a command leaves behind ends with it: nobody would ever hear of it again.
                end_all(self._process.pid)

    def _see_exit(self) -> None:
        self._loop.remove_reader(self._exit)
        self._read_status()
        end_group(self._process.pid)  # its number is still its own
        self._process.wait()
        for pipe in list(self._streams):
            # What the pipe holds still counts; a stray that holds it open is not waited for.
            for _ in range(FULL):
                if pipe not in self._streams or not self._read(pipe):
                    break
            if pipe in self._streams:
                self._drop(pipe)
        self._close_stdin()
        self._loop.remove_reader(self._status)
        os.close(self._status)
        os.close(self._exit)
        self.ended.set_result(ended_of(self._said, self._process.returncode))


def ended_of(said: bytes, returncode: int) -> CommandEnd:
    """What the warden told in its first line, or what became of it."""
    lines = said.decode()
    free = lines.startswith("free")
    word, _, rest = lines.removeprefix("free 0\n").partition("\n")[0].partition(" ")
    if not word:
        return CommandEnd(signal=-returncode if returncode < 0 else None, free=free)
    number = int(rest.partition(" ")[0])
    if word not in ENDS:
        return CommandEnd(lacking=word)
    return msgspec.convert({ENDS[word]: number, "free": free}, CommandEnd)
