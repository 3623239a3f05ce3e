"""A line on loopback that can be cut without either end hearing of it, and be mended again (T7)."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PIECE = 65_536
IDLE = b"Z\x00\x00\x00\x05I"
"""What PostgreSQL says when a transaction is over: it is ready, and outside of any."""

Sees = Callable[[bytes], bool]
"""Told each piece of a connection before it is carried on; whether it is what was waited for."""


class Proxy:
    """
    Carries every connection to one port.

    While it is cut nothing passes, and nothing closes; while it is broken nobody is let in. It can
    wait for a text, and break before the answer to it, or hold it back, passes.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._to = ("127.0.0.1", port)
        self._listening = socket.create_server((host, 0))
        self.port = int(self._listening.getsockname()[1])
        self._whole = threading.Event()
        self._whole.set()
        self._sockets: list[socket.socket] = []
        self._forgotten: set[socket.socket] = set()
        self._closed = threading.Event()
        self._broken = False
        self._commit: bytes | None = None
        self._held: bytes | None = None
        self.struck = threading.Event()
        """What was waited for has come."""
        self._released = threading.Event()
        self.answered = 0
        """Bytes that came back over it."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def forget(self) -> None:
        """Whatever is under way is silent for good; who comes anew passes, as behind a firewall."""
        self._forgotten.update(self._sockets)

    def break_(self) -> None:
        """Every connection ends, and nobody is let in until it is fixed."""
        self._broken = True
        self._end_all()

    def fix(self) -> None:
        self._broken = False
        self._released.set()
        self._whole.set()

    def break_at_commit_of(self, text: bytes) -> None:
        """PostgreSQL commits what holds this text; its answer is lost, and the line with it."""
        self.struck.clear()
        self._commit = text

    def hold_back(self, text: bytes) -> None:
        """An answer that holds this text waits; other connections go on."""
        self.struck.clear()
        self._released.clear()
        self._held = text

    # ── carrying ─────────────────────────────────────────────────────────────────────────────

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                try:
                    far = None if self._broken else socket.create_connection(self._to)
                except (
                    OSError
                ):  # nothing listens there: who came is turned away, the next may not be
                    far = None
                if far is None:
                    near.close()
                    continue
                self._sockets += [near, far]
                asked = _Asked()
                for ends in ((near, far, self._up(asked)), (far, near, self._down(asked))):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, stops: Sees) -> None:
        with suppress(OSError):
            while piece := source.recv(PIECE):
                self._whole.wait()
                if source in self._forgotten:
                    self._closed.wait()
                if stops(piece):
                    break
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _up(self, asked: "_Asked") -> Sees:
        def sees(piece: bytes) -> bool:
            asked.tail = asked.tail[-PIECE:] + piece
            if self._commit is not None and self._commit in asked.tail:
                self._commit, asked.commits = None, True
            return False

        return sees

    def _down(self, asked: "_Asked") -> Sees:
        def sees(piece: bytes) -> bool:
            self.answered += len(piece)
            if asked.commits and IDLE in piece:
                asked.commits = False
                self.struck.set()
                self.break_()
                return True
            if self._held is not None and self._held in piece:
                self._held = None
                self.struck.set()
                self._released.wait()
            return False

        return sees

    def _end_all(self) -> None:
        sockets, self._sockets = self._sockets, []
        for one in sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self) -> None:
        self.fix()
        self._closed.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._end_all()


class _Asked:
    """What one connection has sent up last, and whether a commit is under way on it."""

    tail = b""
    commits = False


@contextmanager
def between(port: int, host: str = "127.0.0.1") -> Iterator[Proxy]:
    """A line to a port of this machine, at another address of it; gone with the `with`."""
    proxy = Proxy(port, host)
    try:
        yield proxy
    finally:
        proxy.close()
