"""How a value leaves the server: as JSON, with every secret that the process knows masked."""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from litestar import Response

from noetl.masking import KNOWN
from noetl.messages.codec import encode_shown

T = TypeVar("T")
NEVER_KEPT = {"cache-control": "no-store"}
"""What is true now may not be in a minute, and some of it is nobody else's business."""


def answered(
    value: T, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response[T]:
    """The answer that holds this value."""
    return Response(
        # Encoded here, once: the framework sends bytes as they are.
        cast(T, shown(value)),
        status_code=status,
        media_type="application/json",
        headers=NEVER_KEPT if headers is None else {**NEVER_KEPT, **headers},
    )


def shown(value: Any) -> bytes:
    """The JSON of a value for readers (KEY-2)."""
    text = encode_shown(value)
    return KNOWN.masked_json(text) if KNOWN and KNOWN.found_in(text) else text
