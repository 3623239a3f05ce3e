"""Talking to a child over a socket: a length and a body to it, a length, a tag and a body back."""

import asyncio
import socket

HEAD = 4
"""Bytes that tell a length; see `process/inside/frames.py`."""


class PeerGone(Exception):
    """The child ended in the middle: killed, out of memory or of its time, or by its own fault."""


class FramedSocket:
    """The worker's end."""

    def __init__(self, ours: socket.socket) -> None:
        self._ours = ours
        ours.setblocking(False)

    async def send(self, body: bytes) -> None:
        try:
            head = len(body).to_bytes(HEAD, "big")
            await asyncio.get_running_loop().sock_sendall(self._ours, head + body)
        except ConnectionError:
            raise PeerGone from None

    async def receive(self) -> tuple[bytes, bytes]:
        """The tag and body of the next answer."""
        head = await self._exactly(HEAD + 1)
        return head[HEAD:], await self._exactly(int.from_bytes(head[:HEAD], "big"))

    async def _exactly(self, length: int) -> bytes:
        loop = asyncio.get_running_loop()
        room = memoryview(bytearray(length))
        filled = 0
        while filled < length:
            try:
                count = await loop.sock_recv_into(self._ours, room[filled:])
            except ConnectionError:
                count = 0
            if not count:
                raise PeerGone
            filled += count
        return bytes(room)
