"""How a value leaves the server: as JSON, with every secret that the process knows masked."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, cast

import msgspec
from litestar import Response

from noetl.masking import KNOWN
from noetl.messages.codec import encode_shown
from noetl.messages.names import FIELDS
from noetl.messages.outcome import ERROR_KINDS
from noetl.ports.large import off_loop

T = TypeVar("T")
NEVER_KEPT = {"cache-control": "no-store"}
"""What is true now may not be in a minute, and some of it is nobody else's business."""


def answered(
    value: T, *, status: int = 200, headers: Mapping[str, str] | None = None, fixed: bool = False
) -> Response[T]:
    """The answer that holds this value; a `fixed` one is a document of ours without data in it."""
    return Response(
        # Encoded here, once: the framework sends bytes as they are.
        cast(T, encode_shown(value) if fixed else shown(value)),
        status_code=status,
        media_type="application/json",
        headers=NEVER_KEPT if headers is None else {**NEVER_KEPT, **headers},
    )


async def answered_aside(value: T) -> Response[T]:
    """The same for what may be large: secrets are looked for while others have their turns."""
    text = encode_shown(value)
    told = await off_loop(len(text), without_secrets, text) if KNOWN else text
    return Response(
        cast(T, told), status_code=200, media_type="application/json", headers=NEVER_KEPT
    )


def shown(value: Any) -> bytes:
    """The JSON of a value for readers (KEY-2)."""
    text = encode_shown(value)
    return without_secrets(text) if KNOWN else text


def without_secrets(text: bytes) -> bytes:
    if not KNOWN.found_in(text):
        return text
    return encode_shown(masked(msgspec.json.decode(text)))


# ── what masking leaves as it is ─────────────────────────────────────────────────────────────

OWN = frozenset(
    {
        *("status", "name", "entity", "source", "kind", "code", "role", "step", "task", "do"),
        *("stream", "timestamp", "digest", "checksum", "key", "next", "store", "mode", "exec"),
    }
)
"""Values of ours, beside ids and times: words that programs go by, and what they ask with."""
FOREIGN = frozenset({*FIELDS, "labels", "text", "original", "prev", "iter"})
"""Where the data of users and of the world begins; nothing below is ours."""
KEPT = {"outcome": {"status", "meta"}, "error": {"kind"}}
"""Foreign, but with these words of ours right below."""


@cache
def words() -> frozenset[str]:
    """Every key of our own answers: a secret that is the same word does not break them."""
    known = {*ERROR_KINDS, "meta", "kind", "message", "retryable", "cause", "index"}
    ahead: list[type[msgspec.Struct]] = [msgspec.Struct]
    while ahead:
        found = [one for one in ahead.pop().__subclasses__() if one.__module__.startswith("noetl.")]
        known.update(field for one in found for field in one.__struct_fields__)
        ahead += found
    return frozenset(known)


def masked(value: Any) -> Any:
    """Our own part of an answer: its keys, numbers, ids, times and words stay."""
    if isinstance(value, dict):
        return {
            key if key in words() else KNOWN.masked(key): _field(key, below)
            for key, below in value.items()
        }
    if isinstance(value, list):
        return [masked(below) for below in value]
    return KNOWN.masked(value) if isinstance(value, str) else value


def _field(key: str, value: Any) -> Any:
    if (key in OWN or key.endswith(("_id", "_at"))) and isinstance(value, str):
        return value
    if key not in FOREIGN:
        return masked(value)
    cleaned = KNOWN.cleaned(value, words())
    if key in KEPT and isinstance(value, dict):
        cleaned |= {word: value[word] for word in KEPT[key] & value.keys()}
    return cleaned
