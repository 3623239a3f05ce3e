"""
Keys of recorded secrets on their way to a worker that does not share the servers' key (KEY-3).

The worker draws a pair of keys and sends the public half; what comes back opens with the other half
alone, so that whoever listens on the way learns nothing. Whom it is given to is the server's care.
"""

import base64
import binascii
from hashlib import blake2b

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from noetl.errors import CredentialUnreadable
from noetl.keychain.box import Key

PUBLIC = 32
ABOUT = b"handed key"


def handed(public: str, plain: bytes) -> str:
    """The text for whoever has drawn this public half."""
    try:
        theirs = X25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
    except (binascii.Error, ValueError):
        raise CredentialUnreadable("the public half of a key is none") from None
    mine = X25519PrivateKey.generate()
    half = mine.public_key().public_bytes_raw()
    sealed = _between(mine, theirs, half).seal(plain, ABOUT)
    return base64.b64encode(half + sealed).decode()


class OpenHand:
    """The worker's half."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self.public = base64.b64encode(self._private.public_key().public_bytes_raw()).decode()

    def take(self, text: str) -> bytes:
        """What was handed; CredentialUnreadable if it was meant for another."""
        told = base64.b64decode(text)
        half = told[:PUBLIC]
        theirs = X25519PublicKey.from_public_bytes(half)
        return _between(self._private, theirs, half).open(told[PUBLIC:], ABOUT)


def _between(mine: X25519PrivateKey, theirs: X25519PublicKey, half: bytes) -> Key:
    agreed = mine.exchange(theirs)
    return Key(blake2b(agreed + half, digest_size=32, person=b"noetl handed").digest())
