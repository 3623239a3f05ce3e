"""
Who says what over NATS, proved (decision 0049).

A request is `SIGNED`, the length and name of the key, the server's salt, session, number, signature
and payload; an answer `SIGNED`, signature and payload. What signs derives from the key, the server
and its salt. Session and number of a request are signed with it, and with its answer: no request is
taken twice, and no answer fits another request. `GREETING` and a salt is what a server says to one
with another salt; `UNKNOWN`, to one whose key it does not know.
"""

import asyncio
import hmac
import os
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

from noetl.errors import ServerAway
from noetl.ports.link import ANYBODY, Caller, LinkKey

SIGNED, GREETING, UNKNOWN = b"\x01", b"\x02", b"\x03"
CALL, ASK, ANSWER = b"c", b"a", b"r"
"""What is signed; one is never taken for another."""
SALT, SESSION, NUMBER, MAC = 16, 16, 8, 32
WINDOW = 4096
"""Numbers that may come out of order."""
FRESH, STALE = 2.0, 10.0
"""Seconds after which a key is looked up again, and after which it is not used before that."""
MOST_KEYS, MOST_LOOKUPS, MOST_WAITING = 1000, 100, 10_000
MOST_SESSIONS = 100_000
MOST_HELD = 256 * 1024 * 1024
"""Bytes of messages that wait for their keys, which anybody can send who reaches the queue."""

FindKey = Callable[[str], Awaitable[LinkKey | None]]
Seal = Callable[[bytes], bytes]
Take = Callable[[bytes, Caller, Seal], None]
Says = Callable[[str], None]


def key_at(secret: bytes, server: str, salt: bytes) -> bytes:
    """What signs between one party and one server process."""
    return blake2b(
        salt + server.encode(), key=secret, digest_size=32, person=b"noetl link"
    ).digest()


def signature(key: bytes, what: bytes, request: bytes, payload: bytes) -> bytes:
    made = blake2b(what + request, key=key, digest_size=MAC)
    made.update(payload)
    return made.digest()


def plain(payload: bytes) -> bytes:
    """The seal of answers to what was not signed."""
    return payload


class BegunAnew(ServerAway):
    """The server has another salt by now: asked again, it answers."""


# ── the worker's half ────────────────────────────────────────────────────────────────────────


class LinkSigner:
    """Signs what one worker's connection asks, and looks at the answers."""

    def __init__(self, key: LinkKey, says: Says) -> None:
        name = key.name.encode()
        self._head = SIGNED + bytes([len(name)]) + name
        self._secret = key.secret
        self._says = says
        self._session = os.urandom(SESSION)
        self._numbers = count(1)
        self._servers: dict[str, tuple[bytes, bytes]] = {}
        """Server → its salt, and what signs there."""
        self._told: set[str] = set()

    def knows(self, server: str) -> bool:
        return server in self._servers

    def greeted(self, server: str, told: bytes) -> None:
        """Hear the salt of a server. A false one makes signatures that are good nowhere."""
        salt = told[1:]
        if told[:1] == GREETING and len(salt) == SALT:
            self._servers[server] = (salt, key_at(self._secret, server, salt))

    def signed(
        self, what: bytes, server: str, payload: bytes
    ) -> tuple[bytes, Callable[[bytes], bytes | ServerAway | None]]:
        """The request, and who opens its answer: None for what is not the answer."""
        salt, key = self._servers[server]
        request = self._session + next(self._numbers).to_bytes(NUMBER)
        made = signature(key, what, request, payload)

        def opened(told: bytes) -> bytes | ServerAway | None:
            answer = told[1 + MAC :]
            good = told[:1] == SIGNED and hmac.compare_digest(
                told[1 : 1 + MAC], signature(key, ANSWER, request, answer)
            )
            return answer if good else self._judge(server, told)

        return b"".join((self._head, salt, request, made, payload)), opened

    def _judge(self, server: str, told: bytes) -> ServerAway | None:
        if told[:1] == GREETING:
            self._servers.pop(server, None)
            return BegunAnew(f"server '{server}' has restarted")
        why = "arrived over NATS without a valid signature and was ignored"
        if told[:1] == UNKNOWN:
            why = "says that it does not know the key of this worker (NOETL_TOKEN or NOETL_KEY)"
        if why not in self._told:
            self._told.add(why)
            self._says(f"a message that claims to be an answer of server '{server}' {why}")
        return ServerAway(f"server '{server}' {why}") if told[:1] == UNKNOWN else None


# ── the server's half ────────────────────────────────────────────────────────────────────────


class SeenNumbers:
    """The numbers of a session that were taken (the window of RFC 4303)."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest = self._seen = 0

    def take(self, number: int) -> bool:
        """Whether it comes for the first time."""
        ahead = number - self._highest
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & (1 << WINDOW) - 1 if ahead < WINDOW else 1
            self._highest = number
            return True
        if -ahead >= WINDOW or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True


class KnownKey(NamedTuple):
    """A key as it was found last; None: there is no such key, or it is not good any more."""

    key: bytes | None
    caller: Caller
    at: float


class SignedRequest(NamedTuple):
    """A request before it was looked at closer."""

    name: str
    salt: bytes
    request: bytes
    """Session and number."""
    signature: bytes
    payload: bytes


def parsed(message: bytes) -> SignedRequest:
    """ValueError if it is none."""
    salt = 2 + message[1]
    request = salt + SALT
    made = request + SESSION + NUMBER
    payload = made + MAC
    if len(message) < payload:
        raise ValueError("a signed message is cut off")
    return SignedRequest(
        message[2:salt].decode(),
        message[salt:request],
        message[request:made],
        message[made:payload],
        message[payload:],
    )


class Verifier:
    """
    Looks at what comes to one server, in order: what came with a key that must be looked up first
    is kept until that is done, and what came after it with the same key, too.
    """

    def __init__(self, server: str, find: FindKey | None, *, demands: bool, refuses: Says) -> None:
        self._server = server
        self._find = find
        self._demands = demands
        self._refuses = refuses
        self._salt = os.urandom(SALT)
        self._known: dict[str, KnownKey] = {}
        self._looking: dict[str, list[tuple[Callable[[], None], int]]] = {}
        self._held = 0
        self._sessions: dict[tuple[str, bytes], SeenNumbers] = {}
        """By key as well: others hear a session's name, and could use its numbers up."""
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def greeting(self) -> bytes:
        return GREETING + self._salt

    def hear(self, message: bytes, what: bytes, take: Take, tell: Callable[[bytes], None]) -> bool:
        """
        `take` what is good, with who said it and what seals the answer; `tell` a word back where it
        is not. False: it is not signed and must be.
        """
        if message[:1] == GREETING:
            tell(self.greeting)
        elif message[:1] != SIGNED:
            if self._demands:
                self._refuses("unsigned")
                return False
            take(message, ANYBODY, plain)
        else:
            self._hear_signed(parsed(message), what, take, tell)
        return True

    def _hear_signed(
        self, asked: SignedRequest, what: bytes, take: Take, tell: Callable[[bytes], None]
    ) -> None:
        if asked.salt != self._salt:
            tell(self.greeting)
            return

        def look() -> None:
            found = self._known.get(asked.name)
            if found is None or found.key is None:
                self._refuses("unknown key")
                tell(UNKNOWN)
                return
            if self._is_good(found.key, what, asked):
                key = found.key

                def seal(payload: bytes) -> bytes:
                    return SIGNED + signature(key, ANSWER, asked.request, payload) + payload

                take(asked.payload, found.caller, seal)

        found = self._known.get(asked.name)
        age = STALE if found is None else time.monotonic() - found.at
        if age < STALE and not self._looking.get(asked.name):
            look()
        else:
            self._wait(asked.name, look, len(asked.payload))
        if age >= FRESH and asked.name not in self._looking:
            self._wait(asked.name, None)

    def _is_good(self, key: bytes, what: bytes, asked: SignedRequest) -> bool:
        made = signature(key, what, asked.request, asked.payload)
        if not hmac.compare_digest(made, asked.signature):
            self._refuses("forged")
            return False
        session = (asked.name, asked.request[:SESSION])
        seen = self._sessions.get(session)
        if seen is None:
            if len(self._sessions) >= MOST_SESSIONS:  # whoever is forgotten must greet again
                self._sessions.clear()
                self._salt = os.urandom(SALT)
                self._known.clear()
            seen = self._sessions[session] = SeenNumbers()
        if not seen.take(int.from_bytes(asked.request[SESSION:])):
            self._refuses("replayed")
            return False
        return True

    def _wait(self, name: str, look: Callable[[], None] | None, size: int = 0) -> None:
        waiting = self._looking.get(name)
        if waiting is None:
            if len(self._looking) >= MOST_LOOKUPS:
                self._refuses("unknown key")
                return
            waiting = self._looking[name] = []
            task = asyncio.get_running_loop().create_task(self._look_up(name))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if look is None:
            return
        if len(waiting) >= MOST_WAITING or self._held + size > MOST_HELD:
            self._refuses("too much at once")  # whoever sent it asks again
            return
        waiting.append((look, size))
        self._held += size

    async def _look_up(self, name: str) -> None:
        try:
            found = await self._find(name) if self._find is not None else None
            if len(self._known) >= MOST_KEYS:
                self._known.clear()
            key = None if found is None else key_at(found.secret, self._server, self._salt)
            caller = ANYBODY if found is None else found.caller
            self._known[name] = KnownKey(key, caller, time.monotonic())
        except Exception as fault:  # the store is away: whoever waits asks again
            self._refuses(f"not looked at: {type(fault).__name__}")
            self._taken_up(name)
            return
        for look in self._taken_up(name):
            try:
                look()
            except Exception:  # promise 7: rubbish ends nothing
                self._refuses("unreadable")

    def _taken_up(self, name: str) -> list[Callable[[], None]]:
        waiting = self._looking.pop(name, [])
        self._held -= sum(size for _, size in waiting)
        return [look for look, _ in waiting]
