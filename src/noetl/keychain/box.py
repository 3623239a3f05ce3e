"""AES-GCM: what is sealed with a key can be opened with it, and only as what it was sealed as."""

import hashlib
import hmac
import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from noetl.errors import CredentialUnreadable

NONCE = 12
LENGTH = 32
"""Bytes of a key: AES-256."""


class Key:
    """A key and its id, which tells nothing about it."""

    __slots__ = ("_bytes", "_cipher", "id")

    def __init__(self, key: bytes) -> None:
        if len(key) != LENGTH:
            raise ValueError(f"a key has {LENGTH} bytes, not {len(key)}")
        self._bytes = key
        self._cipher = AESGCM(key)
        self.id = hashlib.sha256(b"noetl key id\0" + key).hexdigest()[:12]

    def seal(self, plain: bytes, about: bytes) -> bytes:
        """The text encrypted; `about` is bound to it and needed to open it again."""
        nonce = os.urandom(NONCE)
        return nonce + self._cipher.encrypt(nonce, plain, about)

    def open(self, sealed: bytes, about: bytes) -> bytes:
        """The text; CredentialUnreadable if it was changed, or sealed as something else."""
        try:
            return self._cipher.decrypt(sealed[:NONCE], sealed[NONCE:], about)
        except (InvalidTag, ValueError):
            raise CredentialUnreadable(
                f"what was sealed with key {self.id} was changed, or belongs to something else"
            ) from None

    def name_of(self, plain: bytes) -> str:
        """A name for a text that only the holder of the key can connect with it."""
        return hmac.digest(self._bytes, b"noetl name\0" + plain, "sha256").hex()[:24]

    def derived(self, purpose: bytes) -> bytes:
        """A key for a purpose, from which this one does not follow."""
        return hmac.digest(self._bytes, b"noetl derived\0" + purpose, "sha256")

    def __repr__(self) -> str:
        return f"Key({self.id})"


def new_key() -> bytes:
    """The bytes of a key that nobody has yet."""
    return os.urandom(LENGTH)
