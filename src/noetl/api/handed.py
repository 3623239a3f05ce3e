"""Connections that another process accepted: a shard is handed them one by one (decision 0093)."""

import asyncio
import contextlib
import os
import socket
from array import array
from collections.abc import Callable

READY = b"r"
"""What a shard says when it can answer."""
TAKEN = b"t"
"""What a shard says when it has a connection in its hands."""
ENDED = b"e"
"""What a shard says when a connection is over."""
ROOM = socket.CMSG_SPACE(array("i").itemsize)
TURN = 16
"""Connections that are taken before the loop looks at anything else."""
Call = Callable[[], None]
Make = Callable[[Call], asyncio.Protocol]
"""The protocol of a connection, which calls what it is given when the connection has ended."""


class Handed:
    """
    Our end of the socket that connections come over.

    It is there from the beginning of the process, and `gone` is called when its other end is: with
    the process that hands out. Nothing comes before `begin`, which says that we can answer.
    """

    def __init__(self, channel: socket.socket, gone: Call) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._make: Make | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self._unsaid = bytearray()
        self._loop.add_reader(channel, self._look)

    def begin(self, make: Make) -> None:
        self._make = make
        self._say(READY)

    def end(self) -> None:
        """Take nothing more. What was handed over and not taken is reset: who called asks again."""
        self._loop.remove_reader(self._channel)
        self._loop.remove_writer(self._channel)
        self._channel.close()

    def _look(self) -> None:
        for _ in range(TURN):
            if not self._take():
                return

    def _take(self) -> bool:
        """The next connection, if there is one."""
        try:
            # Closed on exec from the first moment: no child may hold it. `recv_fds` takes no flags.
            said, told, _, _ = self._channel.recvmsg(1, ROOM, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return False
        except OSError:
            said, told = b"", []
        if not said:
            self._loop.remove_reader(self._channel)
            self._gone()
            return False
        self._say(TAKEN)
        if told and self._make is not None:
            [fd] = array("i", told[0][2])
            opening = self._loop.create_task(self._open(socket.socket(fileno=fd), self._make))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
        else:  # there was no file left for it, and the kernel has closed it
            self._over()
        return True

    async def _open(self, connection: socket.socket, make: Make) -> None:
        try:
            connection.setblocking(False)
            # asyncio does it for what it accepts itself: 40 ms for each small answer.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(lambda: make(self._over), connection)
        except OSError:  # whoever called has hung up meanwhile
            connection.close()
            self._over()

    def _over(self) -> None:
        self._say(ENDED)

    def _say(self, word: bytes) -> None:
        """
        No word may be lost: the other end counts them, and where it counted wrong it would hand us
        nothing more. Thousands of connections may end at once, and the kernel keeps a few hundred
        words that nobody has heard; the others are said when it has room.
        """
        if self._channel.fileno() < 0:  # we have ended: what is left of connections is over
            return
        self._unsaid += word
        if len(self._unsaid) == len(word):  # else what was unsaid before waits for room
            self._speak()

    def _speak(self) -> None:
        with contextlib.suppress(OSError):  # no room for it now
            try:
                del self._unsaid[: self._channel.send(self._unsaid)]
            except (BrokenPipeError, ConnectionResetError):  # its reader learns of it
                self._unsaid.clear()
        if self._unsaid:
            self._loop.add_writer(self._channel, self._speak)
        else:
            self._loop.remove_writer(self._channel)


def from_standard_input() -> socket.socket:
    """The channel that we were started with; no child of ours finds it as its own input."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return channel
