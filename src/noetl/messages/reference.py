"""A pointer to a value that is kept outside the log (RES-1)."""

from typing import Any


class Reference:
    """
    Where a large value lies. `size` is the length of its JSON in bytes, `checksum` its sha256.

    A plain class and no msgspec struct on purpose: the encoder then stops at it, so that the
    codec learns which values are references, and data that merely looks like one stays data.
    """

    __slots__ = ("checksum", "key", "range", "schema_hint", "size", "store")

    def __init__(
        self,
        store: str,
        key: str,
        size: int,
        checksum: str,
        range: str | None = None,
        schema_hint: str | None = None,
    ) -> None:
        self.store = store
        self.key = key
        self.size = size
        self.checksum = checksum
        self.range = range
        self.schema_hint = schema_hint

    def fields(self) -> dict[str, Any]:
        """The reference as the log shows it below `$ref`."""
        named = {name: getattr(self, name) for name in ("store", "key", "size", "checksum")}
        for name in ("range", "schema_hint"):
            if getattr(self, name) is not None:
                named[name] = getattr(self, name)
        return named

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((self.store, self.key))

    def __repr__(self) -> str:
        return f"Reference({self.store}:{self.key}, {self.size} bytes)"
