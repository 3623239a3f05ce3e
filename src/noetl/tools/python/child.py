"""One warm child process, seen from the worker: started, asked, ended."""

import asyncio
import os
import select
import shutil
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from noetl.tools.children import ENVIRONMENT, INSIDE, PipeEnds, end_all, end_group, isolated, spawn
from noetl.tools.process.inside.frames import LONGEST, QUICK, SOON
from noetl.tools.process.output import Output

HEAD = 5
"""Bytes before the body of an answer: length and tag."""
PIPE = 65_536
PURE = (QUICK, SOON)
GRACE = 1.0
"""Seconds that a process has to end after it closed the connection."""


class ChildAnswer(msgspec.Struct, frozen=True):
    """What came back: `tag` and `body`, or how the process ended instead."""

    tag: bytes = b""
    body: bytes | bytearray = b""
    exit_code: int | None = None
    """Negative: the number of the signal; None while the process lives."""
    again: bool = False
    """Nothing came of it, through no fault of its own: ask another child, and let it be alone."""


AGAIN_ELSEWHERE = ChildAnswer(again=True)


class HiddenPlaces(NamedTuple):
    """What a child must not see, and of that what it may."""

    private: list[str]
    shown: list[str]


NOTHING = HiddenPlaces([], [])


class Asked(NamedTuple):
    """A call on its way to the child or in it."""

    answer: "asyncio.Future[ChildAnswer]"
    output: Output


class PythonChild:
    """
    A process that runs code for one worker; it lives in its own session and folder.

    Several calls may be on their way to it at once, which it answers in order. Only pure code is
    asked so (decision 0078): if the child dies, or one of them takes long, the others are asked
    again elsewhere, and nobody can tell.
    """

    def __init__(self, started: "StartedChild", folder: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._process, self._exit, self._socket, printed, out, err = started
        self._folder = folder
        self._pipes = {out: 1, err: 2, printed: 0}
        self.ended: asyncio.Future[int] = self._loop.create_future()
        """Done with the exit code when the process is no more."""
        self._asked: deque[Asked | None] = deque()
        """In order; None for one whose answer nobody waits for any more."""
        self.since = 0.0
        """When the first of them became the first."""
        self.begun = self._loop.time()
        self.answered = False
        """Whether it has come as far as to answer something."""
        self.light = False
        """Whether all that it was asked is pure, so that more of it may queue."""
        self.held = 0
        """Calls that have it; each gives it back once."""
        self.emptied: Callable[[PythonChild], None] | None = None
        """Told when it has answered the last that nobody waits for any more."""
        self._output: Output | None = None
        self._come = bytearray()
        self._unsent = memoryview(b"")
        self._behind: list[bytes] = []
        """Requests of this turn that go out together, behind one that is in the child already."""
        self._watch()

    def _watch(self) -> None:
        self._ready = select.poll()
        for pipe in self._pipes:
            self._ready.register(pipe, select.POLLIN)
            self._loop.add_reader(pipe, self._read_pipe, pipe)
        self._loop.add_reader(self._socket.fileno(), self._read_answer)
        self._loop.add_reader(self._exit, self._see_exit)

    @property
    def depth(self) -> int:
        """Calls on their way to it or in it."""
        return len(self._asked)

    def ask(self, request: bytes, output: Output) -> "asyncio.Future[ChildAnswer]":
        """The answer to a request; whoever gives up waiting leaves a child that must be ended."""
        answer: asyncio.Future[ChildAnswer] = self._loop.create_future()
        if self.ended.done():
            answer.set_result(ChildAnswer(exit_code=self.ended.result()))
            return answer
        frame = len(request).to_bytes(4, "big") + request
        if self._asked:  # it is busy: what else comes in this turn is sent with it
            if not self._behind:
                self._loop.call_soon(self._send_behind)
            self._behind.append(frame)
        else:
            self._output, self.since = output, self._loop.time()
            self._send(memoryview(frame))
        self._asked.append(Asked(answer, output))
        return answer

    def _send_behind(self) -> None:
        rest, self._behind = b"".join(self._behind), []
        if self._unsent:
            self._unsent = memoryview(bytes(self._unsent) + rest)
        else:
            self._send(memoryview(rest))

    def _send(self, rest: memoryview) -> None:
        try:
            rest = rest[self._socket.send(rest) :]
        except BlockingIOError:
            pass
        except OSError:  # it is gone; its exit tells the rest
            rest = memoryview(b"")
        if bool(rest) != bool(self._unsent):
            if rest:
                self._loop.add_writer(self._socket.fileno(), self._send_rest)
            else:
                self._loop.remove_writer(self._socket.fileno())
        self._unsent = rest

    def _send_rest(self) -> None:
        self._send(self._unsent)

    def _read_pipe(self, pipe: int) -> None:
        try:
            data = os.read(pipe, PIPE)
        except BlockingIOError:
            return
        if not data:
            self._drop_pipe(pipe)
        elif self._output is not None:
            stream = self._pipes[pipe]
            if stream:
                self._output.written(stream, data)
            else:
                self._output.printed(data)

    def _drop_pipe(self, pipe: int) -> None:
        if self._pipes.pop(pipe, None) is not None:
            self._loop.remove_reader(pipe)
            self._ready.unregister(pipe)
            os.close(pipe)

    def _read_answer(self) -> bool:
        """Whether something came."""
        try:
            data = self._socket.recv(PIPE)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._gather(data)
        else:  # the process is about to end, or the code closed what it must not
            self._loop.remove_reader(self._socket.fileno())
            self._loop.call_later(GRACE, self.kill)
        return bool(data)

    def _gather(self, data: bytes) -> None:
        if self._come:
            self._come += data
        come: bytes | bytearray = self._come or data
        start = answers = 0
        while self._asked and len(come) - start >= HEAD:
            length = int.from_bytes(come[start : start + 4], "big")
            end = start + HEAD + length
            if length > LONGEST:
                self.kill()  # no answer of ours: the code wrote to the connection
                return
            if end > len(come):
                break
            answers += 1
            body = come[start + HEAD : end]
            self._settle(ChildAnswer(bytes(come[start + 4 : start + HEAD]), body))
            start = end
        if come is data:
            self._come += data[start:]
        elif start:
            del self._come[:start]
        if answers:
            self.since = self._loop.time()
        if self._come and not self._asked:
            self.kill()

    def _settle(self, answer: ChildAnswer) -> None:
        asked = self._asked.popleft()
        self.answered = True
        if asked is None:
            if not self._asked and self.emptied is not None:
                self.emptied(self)
            return
        output = asked.output
        if answer.tag not in PURE:
            # All that was written before the answer is in the pipes by now.
            for pipe, _ in self._ready.poll(0):
                self._read_pipe(pipe)
        output.end()
        self._output = output if answer.tag in PURE else None
        if not asked.answer.done():
            asked.answer.set_result(answer)

    def take_back(self, *, all_of_them: bool = False) -> None:
        """The first call takes long, or the child goes: those behind it are asked elsewhere."""
        kept = [] if all_of_them else [self._asked[0]]
        behind = list(self._asked)[len(kept) :]
        self._asked = deque([*kept, *(None for _ in behind)])
        for asked in behind:
            if asked is not None and not asked.answer.done():
                asked.answer.set_result(AGAIN_ELSEWHERE)

    def _see_exit(self) -> None:
        self._loop.remove_reader(self._exit)
        end_group(self._process.pid)  # what it left behind; its number is still its own
        code = self._process.wait()
        while self._read_answer():  # it may have answered with its last breath
            pass
        self.ended.set_result(code)
        alone = len(self._asked) == 1
        while self._asked:  # of several nobody knows which one it was
            self._settle(ChildAnswer(exit_code=code) if alone else AGAIN_ELSEWHERE)

    def confined(self) -> bool:
        """Whether it has namespaces of its own; asked of a child that has answered."""
        try:
            return namespace_of(self._process.pid) != namespace_of(os.getpid())
        except OSError:
            return False

    def kill(self, *, strays: bool = True) -> None:
        """End the process at once, with its group and, where it may have any, other strays."""
        if not self.ended.done():
            (end_all if strays else end_group)(self._process.pid)

    async def end(self) -> None:
        """Kill it if it lives, wait until it is gone, and remove its folder."""
        self.kill(strays=False)
        await self.ended
        self._loop.remove_reader(self._socket.fileno())
        self._loop.remove_writer(self._socket.fileno())
        self._socket.close()
        for pipe in list(self._pipes):
            self._drop_pipe(pipe)
        os.close(self._exit)
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


def namespace_of(pid: int) -> int:
    return os.stat(f"/proc/{pid}/ns/pid_for_children").st_ino


PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); mode = sys.argv[2]; "
    "control, printed, worker = map(int, sys.argv[3:6]); "
    "private, shown = (word.split('\\n') if word else [] for word in sys.argv[6:]); "
    "sys.argv[:] = ['task']; from inside.namespaces import confine; "
    "parent = confine(mode, worker, (0, 1, 2, control, printed), private, shown); "
    "from inside.python_child import serve; del sys.path[0]; serve(control, printed, parent)"
)
"""Not by path: what is imported is compiled once, what is run as a script is so each time."""


class StartedChild(NamedTuple):
    """The worker's ends."""

    process: subprocess.Popen[bytes]
    exit: int
    """Readable when the process has ended."""
    connection: socket.socket
    printed: int
    out: int
    err: int

    def end(self) -> None:
        """Of one that nobody has taken over."""
        end_group(self.process.pid)
        self.process.wait()
        self.connection.close()
        for opened in (self.exit, self.printed, self.out, self.err):
            os.close(opened)


@cache
def compile_inside() -> None:
    """Once: a child that cannot write here would compile the same modules at every start."""
    tag = sys.implementation.cache_tag
    for source in Path(INSIDE, "inside").glob("*.py"):
        compiled = Path(source.parent, "__pycache__", f"{source.stem}.{tag}.pyc")
        if not compiled.exists() or compiled.stat().st_mtime < source.stat().st_mtime:
            import py_compile

            with suppress(OSError):  # not ours to write: then no child writes here either
                py_compile.compile(str(source), quiet=2)


def start(python: str, folder: str, mode: str, hidden: HiddenPlaces = NOTHING) -> StartedChild:
    """A new child that works in `folder`, ready to be asked; raises OSError."""
    compile_inside()
    with PipeEnds() as ends:
        ours, connection = socket.socketpair()
        ends.ours.callback(ours.close)
        ends.theirs.callback(connection.close)
        (printed, printed_end), (out, out_end), (err, err_end) = (ends.pipe() for _ in range(3))
        given = (connection.fileno(), printed_end, os.getpid())
        places = map("\n".join, hidden)
        process = spawn(
            isolated(PROGRAM, INSIDE, mode, *map(str, given), *places, python=python),
            stdout=out_end,
            stderr=err_end,
            fds=(connection.fileno(), printed_end),
            cwd=folder,
            env=ENVIRONMENT | {"HOME": folder, "TMPDIR": folder},
        )
    ours.setblocking(False)
    return StartedChild(process, os.pidfd_open(process.pid), ours, printed, out, err)
