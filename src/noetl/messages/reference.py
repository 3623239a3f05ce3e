"""What stands in the log in a value's place: it lies elsewhere (RES-1), or is a secret (KEY-3)."""

from types import NoneType
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


LARGEST = 2**53
TEXTS = ("store", "key", "checksum")
MAY_BE = ("range", "schema_hint")
FIELDS = frozenset((*TEXTS, *MAY_BE, "size"))


def reference_of(fields: Any) -> Reference | None:
    """
    The reference that these fields are; None where they are none. Whoever reports a value, or
    stores one, may write anything there, and all who meet a reference go by its fields.
    """
    if not isinstance(fields, dict) or not FIELDS.issuperset(fields):
        return None
    size = fields.get("size")
    if type(size) is not int or not 0 <= size <= LARGEST:
        return None
    if not all(type(fields.get(name)) is str for name in TEXTS):
        return None
    if not all(type(fields.get(name)) in (str, NoneType) for name in MAY_BE):
        return None
    return Reference(**fields)


SEALED = "secret"
"""The store of values that are kept in the log itself, encrypted."""


def secret_of(fields: Any) -> Reference | None:
    """The secret that these fields are; None where they are none."""
    if not isinstance(fields, dict) or fields.keys() != {"id", "sealed"}:
        return None
    return secret(**fields) if all(type(one) is str for one in fields.values()) else None


def secret(id: str, sealed: str) -> Reference:
    """The encrypted value `sealed`; equal ids mean equal values."""
    return Reference(SEALED, id, len(sealed), "", sealed=sealed)
