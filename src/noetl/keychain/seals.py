"""Recorded values that hold a secret: encrypted for the log, opened on a worker (KEY-3)."""

import base64
from typing import Any

import msgspec

from noetl.errors import BodyLost, NoetlError
from noetl.keychain.fields import FORMS
from noetl.keychain.store import Store
from noetl.masking import KNOWN, Masking
from noetl.messages.codec import decode, encode
from noetl.messages.reference import Reference, secret
from noetl.ports.large import off_loop

ROOM = 1000
"""Sealed values that are remembered, so that one that is recorded often is encrypted once."""
ABOUT = b"recorded value "


class Seals:
    """Seals and opens recorded values with the key of the home's log (decision 0032)."""

    def __init__(self, store: Store, masking: Masking = KNOWN) -> None:
        self._store = store
        self._masking = masking
        self._sealed: dict[bytes, Reference] = {}

    async def make_ready(self) -> None:
        """Whoever unlocks a secret may have to record it: a key that is wrong shows here."""
        if not self.ready:
            await self._store.log_key()

    @property
    def ready(self) -> bool:
        return self._store.has_log_key

    def seal(self, value: Any) -> Reference:
        """What stands in the log instead of the value. `make_ready` comes first."""
        plain = encode(value)
        if plain not in self._sealed:
            if len(self._sealed) >= ROOM:
                self._sealed.clear()
            self._sealed[plain] = self._new(plain)
        return self._sealed[plain]

    def _new(self, plain: bytes) -> Reference:
        key = self._store.known_log_key
        name = key.name_of(plain)
        # Whoever opens it must mask the secrets in it, not only the whole.
        content = msgspec.json.encode([self._masking.all_in(plain), plain.decode()])
        text = base64.b64encode(key.seal(content, ABOUT + name.encode())).decode()
        return secret(name, f"{key.id}:{text}")

    async def open(self, reference: Reference) -> Any:
        """The value; raises BodyLost with what must be done."""
        try:
            assert reference.sealed is not None, "only a secret is opened"
            key_id, _, text = reference.sealed.partition(":")
            key = await self._store.log_key_of(key_id)
            content = key.open(base64.b64decode(text), ABOUT + reference.key.encode())
        except (NoetlError, ValueError) as wrong:
            raise BodyLost(f"the recorded secret {reference.key} cannot be read: {wrong}") from None
        await self.make_ready()
        secrets, plain = msgspec.json.decode(content)
        if not self._masking.knows(secrets):
            size = sum(map(len, secrets)) * FORMS
            await off_loop(size, self._masking.add_many, secrets)
        return decode(plain.encode())
