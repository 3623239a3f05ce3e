"""A pointer to a value that is kept outside the log (RES-1)."""

import msgspec


class Reference(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a large value lies. `size` is the length of its JSON in bytes, `checksum` its sha256."""

    store: str
    key: str
    size: int
    checksum: str
    range: str | None = None
    schema_hint: str | None = None
