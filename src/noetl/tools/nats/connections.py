"""Connections to NATS servers: one for each server and credential, shared by all calls."""

import asyncio
import base64
import binascii
import math
import ssl
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from nats.aio.client import Client
from nats.errors import ConnectionClosedError, NoServersError

from noetl.kinds.messaging import NatsInputs
from noetl.tools.refusal import Refusal
from noetl.tools.tool import ToolCall, Workplace
from noetl.tools.urls import checked_url

T = TypeVar("T")

CONNECT = 10.0
"""Seconds for a connection, where the task names none."""
CLOSING = 0.5
"""Seconds for a goodbye."""
SCHEMES = ("nats", "tls", "ws", "wss")
KNOWN = {name: name for name in ("user", "password", "token", "nkey", "ca")} | {"username": "user"}
"""Fields of a credential, and what they are here."""


class Address(msgspec.Struct, frozen=True):
    """Where to connect, and as whom; equal ones share a connection."""

    url: str
    fields: tuple[tuple[str, str], ...] = ()


class Guarded(Client):
    """The library's client, which by itself goes on in the clear where a server offers no TLS."""

    wants_tls = False

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        await super()._process_info(info, initial_connection)
        if not (initial_connection and self.wants_tls):
            return
        if not (info.get("tls_required") or info.get("tls_available")):
            says = "the NATS server offers no TLS, which the url or 'ca' of the credential asks for"
            raise Refusal("connection", says)
        info["tls_required"] = True


class Connection:
    """A connected client, and what the server complained about meanwhile."""

    def __init__(self) -> None:
        self.client = Guarded()
        self.complaints: list[Exception] = []
        self._lost = asyncio.Event()
        self._begun = False

    async def open(self, address: Address, seconds: float) -> None:
        """Connect once: whether another try makes sense is the policy's to say."""
        fields = dict(address.fields)
        more: dict[str, Any] = {
            name: fields[name] for name in ("user", "password", "token") if name in fields
        }
        if "nkey" in fields:
            key = Ed25519PrivateKey.from_private_bytes(raw_of(fields["nkey"]))
            more["signature_cb"] = lambda nonce: base64.b64encode(key.sign(nonce.encode()))
            # The library fills this in from a seed by a package of its own; ours signs already.
            self.client._public_nkey = public_of(key)
        if "ca" in fields:
            more["tls"] = trusting(fields["ca"])
        self.client.wants_tls = "ca" in fields or address.url.startswith("tls:")
        self._begun = True
        try:
            await self.client.connect(
                address.url,
                allow_reconnect=False,
                max_reconnect_attempts=1,  # the least; 0 means for ever
                reconnect_time_wait=0,
                connect_timeout=math.ceil(seconds),
                error_cb=self._complain,
                closed_cb=self._lose,
                name="noetl",
                **more,
            )
        except NoServersError:  # which hides the reason
            raise self.complaints[-1] from None

    async def _complain(self, fault: Exception) -> None:
        self.complaints = [*self.complaints[-20:], fault]

    async def _lose(self) -> None:
        self._lost.set()

    async def while_alive(self, work: Awaitable[T]) -> T:
        """The library lets some operations wait for a server that is gone; this does not."""
        working: asyncio.Future[T] = asyncio.ensure_future(work)
        losing = asyncio.ensure_future(self._lost.wait())
        either: set[asyncio.Future[Any]] = {working, losing}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ConnectionClosedError
            return working.result()
        finally:
            for one in either:
                one.cancel()
            await asyncio.gather(*either, return_exceptions=True)

    async def close(self) -> None:
        """Bounded: after a handshake that failed the library waits for an end that never comes."""
        if not self._begun:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING):
                await self.client.close()


def trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca)
    except (ssl.SSLError, ValueError):
        says = "the credential's ca is not a certificate; expected text in PEM"
        raise Refusal("auth", says) from None


class NatsConnections:
    """Opened when first needed; one that was lost is opened anew by the next call."""

    def __init__(self) -> None:
        self._open: dict[tuple[Any, ...], Connection] = {}
        self._locks: dict[tuple[Any, ...], asyncio.Lock] = {}

    async def find(self, address: Address, seconds: float) -> Connection:
        """A live connection; raises what the library raises."""
        place = (asyncio.get_running_loop(), address)
        async with self._locks.setdefault(place, asyncio.Lock()):
            found = self._open.get(place)
            if found is not None and found.client.is_connected:
                return found
            if found is not None:
                await found.close()
            fresh = Connection()
            try:
                async with asyncio.timeout(seconds):
                    await fresh.open(address, seconds)
            except BaseException:
                await fresh.close()
                raise
            self._open[place] = fresh
            return fresh

    async def close(self) -> None:
        while self._open:
            _, connection = self._open.popitem()
            await connection.close()


async def address_of(call: ToolCall[NatsInputs], workplace: Workplace) -> Address:
    """KEY-1: the url of the task, or that of its credential."""
    name = call.inputs.auth
    credential: Mapping[str, Any] = {} if name is None else await workplace.unlock(name)
    url = call.inputs.url or credential.get("url") or credential.get("servers")
    if url is None and credential.get("host"):
        url = f"nats://{credential['host']}:{credential.get('port', 4222)}"
    if not isinstance(url, str):
        raise Refusal("input", "nats needs 'url', or 'auth' with a credential that has one")
    fields = {
        ours: str(credential[theirs])
        for theirs, ours in KNOWN.items()
        if credential.get(theirs) is not None
    }
    if name is not None and not fields and credential.get("value"):
        fields["token"] = str(credential["value"])
    whole = checked_url(url if "://" in url else f"nats://{url}", "url", SCHEMES)
    return Address(whole, tuple(sorted(fields.items())))


USER = 20 << 3
"""The first byte of a user's public key, and a part of the first two of his seed."""
SEED = 18 << 3
LENGTH = 36
"""Bytes of a seed: two of prefix, 32 of key, two of checksum."""


def public_of(key: Ed25519PrivateKey) -> str:
    """How the server knows the user."""
    body = bytes([USER]) + key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return base64.b32encode(body + checksum(body)).decode().rstrip("=")


def raw_of(seed: str) -> bytes:
    """The 32 bytes of the key; nothing of the seed is in a message."""
    text = seed.strip()
    try:
        body = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        body = b""
    whole = len(body) == LENGTH and checksum(body[:-2]) == body[-2:]
    if not whole or body[0] & 0xF8 != SEED or (body[0] & 7) << 5 | body[1] >> 3 != USER:
        raise Refusal("auth", "the credential's nkey is not a user seed; expected text from 'SU'")
    return body[2:-2]


def checksum(body: bytes) -> bytes:
    """CRC-16 (XMODEM), in the order of little endian."""
    return binascii.crc_hqx(body, 0).to_bytes(2, "little")
