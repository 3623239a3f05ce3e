"""Signing with an nkey: the seed of a user as NATS writes it, and what a server is shown of it."""

import base64
import binascii

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from noetl.tools.refusal import Refusal

USER = 20 << 3
"""The first byte of a user's public key, and a part of the first two of his seed."""
SEED = 18 << 3
LENGTH = 36
"""Bytes of a seed: two of prefix, 32 of key, two of checksum."""


class Nkey:
    """A user's key pair."""

    def __init__(self, seed: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(raw_of(seed))

    @property
    def public(self) -> str:
        """How the server knows the user."""
        raw = self._key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        body = bytes([USER]) + raw
        return base64.b32encode(body + checksum(body)).decode().rstrip("=")

    def sign(self, nonce: str) -> bytes:
        """What proves to the server that the key is there."""
        return base64.b64encode(self._key.sign(nonce.encode()))


def raw_of(seed: str) -> bytes:
    """The 32 bytes of the key; nothing of the seed is in a message."""
    text = seed.strip()
    try:
        body = base64.b32decode(text + "=" * (-len(text) % 8))
    except (binascii.Error, ValueError):
        body = b""
    whole = len(body) == LENGTH and checksum(body[:-2]) == body[-2:]
    if not whole or body[0] & 0xF8 != SEED or (body[0] & 7) << 5 | body[1] >> 3 != USER:
        raise Refusal("auth", "the credential's nkey is no seed of a user; expected text from 'SU'")
    return body[2:-2]


def checksum(body: bytes) -> bytes:
    """CRC-16 (XMODEM), in the order of little endian."""
    return binascii.crc_hqx(body, 0).to_bytes(2, "little")
