"""The door of a server with shards: it alone listens, and hands connections to them."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

from noetl.api.handed import ENDED, READY, TAKEN

UNTAKEN = 16
"""Connections that a shard is handed before it has taken the first: others get those after it."""
TURN = 64
"""Connections that are accepted before the loop looks at anything else."""
PAUSE = 0.5
"""Seconds until we accept or hand over again where we could not: files are short."""
A_CONNECTION = b"c"


class ShardPlace:
    """One shard as the door sees it."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self.ready = False
        self.untaken = 0
        self.held = 0
        """Connections that it was handed and that have not ended."""

    @property
    def has_room(self) -> bool:
        return self.ready and self.untaken < UNTAKEN

    def hear(self, said: bytes) -> None:
        self.ready = self.ready or READY in said
        self.untaken -= said.count(TAKEN)
        self.held -= said.count(ENDED)


class ShardDoor:
    """
    Who gets which connection: the shard that has fewest, in turn where several have as few.

    The socket that listens stays in this process, without SO_REUSEPORT: the kernel refuses it to
    whoever else binds it, tasks with our user, too (decision 0093). Where no shard takes any, those
    who call wait in the queue of the kernel.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._loop = asyncio.get_running_loop()
        self._places: list[ShardPlace] = []
        self._accepting = False
        self._later: asyncio.TimerHandle | None = None
        self._kept: socket.socket | None = None
        """What was accepted and could not be handed over yet."""

    @contextlib.contextmanager
    def place(self) -> Iterator[int]:
        """The standard input of a new shard; ours once this block is left."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        made = ShardPlace(ours)
        self._places.append(made)
        self._loop.add_reader(ours, self._hear, made)
        with theirs:
            yield theirs.fileno()

    def close(self) -> None:
        self._pause()
        if self._later is not None:
            self._later.cancel()
        if self._kept is not None:
            self._kept.close()
        for place in list(self._places):
            self._leave(place)
        self._listening.close()

    def _hear(self, place: ShardPlace) -> None:
        try:
            said = place.channel.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if not said:
            self._leave(place)
            return
        place.hear(said)
        self._go_on()

    def _leave(self, place: ShardPlace) -> None:
        """Its shard is gone, or takes nothing any more; a new one gets a place of its own."""
        self._loop.remove_reader(place.channel)
        place.channel.close()
        self._places.remove(place)

    @property
    def _has_room(self) -> bool:
        return any(place.has_room for place in self._places)

    def _go_on(self) -> None:
        if not self._accepting and self._has_room:
            self._loop.add_reader(self._listening, self._accept)
            self._accepting = True
            if self._kept is not None:  # nobody else may come
                self._accept()

    def _pause(self) -> None:
        if self._accepting:
            self._loop.remove_reader(self._listening)
            self._accepting = False

    def _pause_for_files(self) -> None:
        """Those that come meanwhile wait in the queue of the kernel."""
        self._pause()
        if self._later is not None:
            self._later.cancel()
        self._later = self._loop.call_later(PAUSE, self._go_on)

    def _accept(self) -> None:
        for _ in range(TURN):
            if not self._has_room:
                self._pause()
                return
            connection = self._next()
            if connection is None:
                return
            if not self._hand(connection):
                self._kept = connection
                self._pause_for_files()
                return
            connection.close()

    def _next(self) -> socket.socket | None:
        if self._kept is not None:
            connection, self._kept = self._kept, None
            return connection
        try:
            return self._listening.accept()[0]
        except (BlockingIOError, ConnectionAbortedError, InterruptedError):
            return None
        except OSError:  # no file for it
            self._pause_for_files()
            return None

    def _hand(self, connection: socket.socket) -> bool:
        """
        Give it to the shard that has fewest; where all have just died, it is lost with them. False
        where nothing can be handed over now: of all files of our user only so many may be on their
        way, and a task of his can have them there. That is no reason to leave a shard.
        """
        while free := [place for place in self._places if place.has_room]:
            place = min(free, key=lambda one: one.held)
            try:
                socket.send_fds(place.channel, [A_CONNECTION], [connection.fileno()])
            except (BrokenPipeError, ConnectionResetError):
                self._leave(place)
                continue
            except OSError:
                return False
            place.untaken += 1
            place.held += 1
            self._places.remove(place)  # the last in turn
            self._places.append(place)
            break
        return True
