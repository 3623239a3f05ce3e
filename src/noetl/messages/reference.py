"""What stands in the log in a value's place: it lies elsewhere (RES-1), or is a secret (KEY-3)."""

from typing import Any


class Reference:
    """
    Where a large value lies. `size` is the length of its JSON in bytes, `checksum` its sha256.

    A plain class and no msgspec struct on purpose: the encoder then stops at it, so that the
    codec learns which values are references, and data that merely looks like one stays data.

    A secret is one whose value is here and encrypted (`sealed`): templates meet it as they meet
    any reference, workers open it where they would load a body, and the server has no key.
    """

    __slots__ = ("checksum", "key", "range", "schema_hint", "sealed", "size", "store")

    def __init__(
        self,
        store: str,
        key: str,
        size: int,
        checksum: str,
        range: str | None = None,
        schema_hint: str | None = None,
        sealed: str | None = None,
    ) -> None:
        self.store = store
        self.key = key
        self.size = size
        self.checksum = checksum
        self.range = range
        self.schema_hint = schema_hint
        self.sealed = sealed

    def fields(self) -> dict[str, Any]:
        """The reference as the log shows it below `$ref`, a secret below `$secret`."""
        if self.sealed is not None:
            return {"id": self.key, "sealed": self.sealed}
        named = {name: getattr(self, name) for name in ("store", "key", "size", "checksum")}
        for name in ("range", "schema_hint"):
            if getattr(self, name) is not None:
                named[name] = getattr(self, name)
        return named

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Reference) or self.key != other.key:
            return False
        if self.sealed is not None:  # the same value may have been encrypted twice
            return other.sealed is not None
        return self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((self.store, self.key))

    def __repr__(self) -> str:
        if self.sealed is not None:
            return f"Secret({self.key})"
        return f"Reference({self.store}:{self.key}, {self.size} bytes)"


SEALED = "secret"
"""The store of values that are kept in the log itself, encrypted."""


def secret(id: str, sealed: str) -> Reference:
    """The encrypted value `sealed`; equal ids mean equal values."""
    return Reference(SEALED, id, len(sealed), "", sealed=sealed)
