"""Which child runs which jq program: a free one, a new one, or whoever is next."""

import asyncio
import marshal
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec

from noetl.tools.process.ending import end_group
from noetl.tools.process.start import ENVIRONMENT
from noetl.tools.transform.inside.serve import HEAD

PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); from inside.serve import serve; "
    "serve(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])"
)


class ChildDied(Exception):
    """The child ended in the middle of a program: it ran out of memory, or of its time."""


class ProgramLimits(msgspec.Struct, frozen=True):
    """What one program may use."""

    memory: int
    cpu_seconds: int


class TransformChild:
    """One process, one program at a time."""

    def __init__(self, module: str) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            given = (str(theirs.fileno()), str(os.getpid()), module)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM, str(Path(__file__).parent), *given],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
                env=ENVIRONMENT,
            )
        self._ours.setblocking(False)

    async def ask(self, limits: ProgramLimits, text: str, given: str) -> tuple[bytes, bytes]:
        """The tag and body of the answer; after anything but an answer the child must be ended."""
        loop = asyncio.get_running_loop()
        request = marshal.dumps((limits.memory, limits.cpu_seconds, text, given))
        try:
            await loop.sock_sendall(self._ours, len(request).to_bytes(HEAD, "big") + request)
            head = await self._exactly(HEAD + 1)
            return head[HEAD:], await self._exactly(int.from_bytes(head[:HEAD], "big"))
        except ConnectionError:
            raise ChildDied from None

    async def _exactly(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        room = memoryview(bytearray(length))
        filled = 0
        while filled < length:
            count = await loop.sock_recv_into(self._ours, room[filled:])
            if not count:
                raise ChildDied
            filled += count
        return bytes(room)

    def end(self) -> None:
        """Kill it; it has nothing to clean up."""
        end_group(self._process.pid)
        self._process.wait()
        self._ours.close()


class TransformChildren:
    """At most `most` at once; those that answered are kept for the next program."""

    def __init__(self, most: int) -> None:
        self._free: list[TransformChild] = []
        self._turns = asyncio.Semaphore(most)

    async def ask(
        self, module: str, limits: ProgramLimits, text: str, given: str
    ) -> tuple[bytes, bytes]:
        """What jq makes of the input; cancelling it ends the program."""
        async with self._turns:
            child = self._free.pop() if self._free else TransformChild(module)
            try:
                answer = await child.ask(limits, text, given)
            except BaseException:
                child.end()
                raise
            self._free.append(child)
            return answer

    def close(self) -> None:
        """End those that wait for work."""
        while self._free:
            self._free.pop().end()
