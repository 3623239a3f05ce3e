"""
The target: whatever comes over the queue, a server takes what a key of its own signed, and once.

A message may be refused, left out or unreadable; nothing else may come of it (decision 0049).
"""

import asyncio
from contextlib import suppress

from noetl.adapters.nats.signing import (
    ASK,
    CALL,
    GREETING,
    SALT,
    SIGNED,
    UNKNOWN,
    LinkSigner,
    Seal,
    Verifier,
)
from noetl.ports.link import Caller, LinkKey

SERVER = "s1"
PAYLOAD = b'{"worker":"w-aaaaaaaa","pool":"default","version":"1"}'
SALTED = b"s" * SALT
KEYS = {
    key.name: key
    for key in (
        LinkKey("t:one", b"1" * 32, Caller("aaaaaaaa", "default")),
        LinkKey("t:two", b"2" * 32, Caller("bbbbbbbb", "secure")),
    )
}
STRANGER = LinkKey("t:three", b"3" * 32, Caller("cccccccc", "secure"))
THIEF = LinkKey("t:two", b"1" * 32, Caller("aaaaaaaa", "default"))


def said(key: LinkKey, what: bytes = CALL, server: str = SERVER, salt: bytes = SALTED) -> bytes:
    signer = LinkSigner(key, lambda _: None)
    signer.greeted(server, GREETING + salt)
    return signer.signed(what, server, PAYLOAD)[0]


GOOD = {said(key): key.caller for key in KEYS.values()}
BAD = (
    said(STRANGER),
    said(THIEF),  # one pool's key under the name of another's
    said(KEYS["t:one"], ASK),  # a question that is sent as a call
    said(KEYS["t:one"], server="s2"),
    said(KEYS["t:one"], salt=b"o" * SALT),  # to a server before this one
    *(message[:-1] for message in GOOD),
    *(message[:40] for message in GOOD),
    *(message + b" " for message in GOOD),
    *(message[:70] + bytes([message[70] ^ 1]) + message[71:] for message in GOOD),
    *(SIGNED, UNKNOWN, GREETING, GREETING + SALTED, PAYLOAD, SIGNED + PAYLOAD, b""),
)
CORPUS = tuple(b"\x02" + message for message in (*GOOD, *BAD))

LOOP = asyncio.new_event_loop()


async def heard(message: bytes) -> list[tuple[bytes, Caller]]:
    """What a server that asks for signatures takes of a message that comes twice."""
    refused: list[str] = []

    async def find(name: str) -> LinkKey | None:
        return KEYS.get(name)

    verifier = Verifier(SERVER, find, demands=True, refuses=refused.append)
    verifier._salt = SALTED
    taken: list[tuple[bytes, Caller]] = []

    def take(payload: bytes, by: Caller, seal: Seal) -> None:
        del seal
        taken.append((payload, by))

    for _ in range(2):
        with suppress(ValueError, LookupError):  # unreadable: the line goes on to the next
            verifier.hear(message, CALL, take, lambda _: None)
    while verifier._tasks:
        await asyncio.wait(verifier._tasks)
    return taken


def check_signed(message: bytes) -> None:
    found = LOOP.run_until_complete(heard(message))
    due = [(PAYLOAD, GOOD[message])] if message in GOOD else []
    if found != due:
        raise AssertionError(f"a server took {found} of what it should have taken as {due}")
