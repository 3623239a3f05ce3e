"""
Messages ⇄ JSON. Every value that leaves the process goes through here.

A reference is written `{"$ref": {…}}`, a secret `{"$secret": {…}}`. Data of a user may look the
same and stays data (RES-1): then, and only then, the paths of the true ones stand beside it under
`$refs`.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

import msgspec

from noetl.errors import LogDamaged
from noetl.messages.events import AnyEvent, Event
from noetl.messages.iterations import EventHint
from noetl.messages.reference import Reference, reference_of, secret_of

REF = "$ref"
SECRET = "$secret"
REFS = "$refs"
VALUE = "$value"
WITH_REFERENCES = " with references"
_REF_BYTES = b'"$ref"'
_SECRET_BYTES = b'"$secret"'
T = TypeVar("T")
Path = tuple[str | int, ...]


def _written(value: object) -> dict[str, Any]:
    if isinstance(value, Reference):
        return {REF if value.sealed is None else SECRET: value.fields()}
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")


_hints = msgspec.json.Decoder(list[EventHint])
_encoder = msgspec.json.Encoder(enc_hook=_written)
encode_shown: Callable[[Any], bytes] = _encoder.encode
"""The JSON for readers, who never turn it back: no marks, whatever looks like a reference."""


def _may_refer(text: bytes) -> bool:
    """Whether something in it looks like a reference. Most texts have no `$`: one quick look."""
    return b"$" in text and (_REF_BYTES in text or _SECRET_BYTES in text)


def is_plain(text: bytes) -> bool:
    """Whether nothing in it looks like a reference."""
    return not _may_refer(text)


@cache
def _events() -> "msgspec.json.Decoder[list[AnyEvent]]":
    """Built with the first events that are read: a new execution only writes."""
    return msgspec.json.Decoder(list[AnyEvent])


def encode(value: Any) -> bytes:
    """The JSON of a value."""
    text = _encoder.encode(value)
    if not _may_refer(text):
        return text
    plain = _plain(value)
    true, lookalikes = _references(plain)
    if not lookalikes and not _is_marked(plain):
        return text
    return _encoder.encode({REFS: [list(path) for path in true], VALUE: plain})


def decode(text: bytes, type: type[T] | Any = Any) -> Any:
    """The value of a JSON text; references come back as references."""
    if not _may_refer(text):
        return msgspec.json.decode(text, type=type)
    value = msgspec.json.decode(text)
    value = _revive_at(value[VALUE], value[REFS]) if _is_marked(value) else _revive(value)
    return value if type is Any else msgspec.convert(value, type, str_keys=True)


def encode_events(events: Sequence[Event]) -> bytes:
    """The events of one decision, as one JSON array."""
    text = _encoder.encode(events)
    if not _may_refer(text):
        return text
    return _encoder.encode([_marked(event) for event in events])


def decode_events(text: bytes) -> list[Event]:
    """The events of one decision."""
    if not _may_refer(text):
        return _events().decode(text)  # type: ignore[return-value]
    raw = [_unmarked(event) for event in msgspec.json.decode(text)]
    events: list[Event] = msgspec.convert(raw, list[AnyEvent])
    return events


def recorded_events(execution_id: str, first: int, text: bytes) -> list[Event]:
    """The events of one row of the log, of which `first` is the first; raises LogDamaged."""
    try:
        return decode_events(text)
    except (msgspec.DecodeError, ValueError, TypeError, LookupError) as wrong:
        raise _damaged(execution_id, first, wrong) from None


def recorded_mappings(execution_id: str, first: int, text: bytes) -> list[dict[str, Any]]:
    """The same as they stand there, for those who only show them."""
    try:
        found = msgspec.json.decode(text, type=list[dict[str, Any]])
    except (msgspec.DecodeError, ValueError) as wrong:
        raise _damaged(execution_id, first, wrong) from None
    for event in found:
        if not isinstance(event.get("name"), str):
            raise _damaged(execution_id, first, "an event has no name")
    return found


def recorded_hints(execution_id: str, first: int, text: bytes) -> list[EventHint]:
    """Where they happened, and no more: of a long loop nobody reads the rest."""
    try:
        return _hints.decode(text)
    except (msgspec.DecodeError, ValueError) as wrong:
        raise _damaged(execution_id, first, wrong) from None


def _damaged(execution_id: str, first: int, wrong: object) -> LogDamaged:
    return LogDamaged(
        f"the log of execution {execution_id} is damaged at seq {first}: {wrong}; the others are "
        "not harmed. Check the home with `noetl doctor`, and restore it from a backup"
    )


def reference_to(
    store: str,
    execution_id: str,
    body: bytes,
    hint: str | None = None,
    checksum: str | None = None,
) -> Reference:
    """
    The reference to a body that `encode` wrote: a function of the body, so that replay makes the
    same one. Its hint says whether `$ref` in the body means something: in a body that came from
    the world it never does (RES-1). `checksum` is the hash, where it is known.
    """
    checksum = checksum or hashlib.sha256(body).hexdigest()
    if _may_refer(body):
        hint = f"{hint or 'value'}{WITH_REFERENCES}"
    return Reference(store, f"{execution_id}/{checksum}", len(body), checksum, schema_hint=hint)


def decode_body(body: bytes, reference: Reference) -> Any:
    """The value of a stored body."""
    if (reference.schema_hint or "").endswith(WITH_REFERENCES):
        return decode(body)
    return msgspec.json.decode(body)


def _kept(value: object) -> Any:
    return value


def _plain(value: Any) -> Any:
    """The value as JSON has it, keys being text, but for its references."""
    return msgspec.to_builtins(value, builtin_types=(Reference,), enc_hook=_kept, str_keys=True)


def _is_marked(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {REFS, VALUE}


def _marked(event: Event) -> Any:
    plain = _plain(event)
    true, lookalikes = _references(plain)
    if lookalikes:
        plain[REFS] = [list(path) for path in true]
    return plain


def _unmarked(raw: dict[str, Any]) -> dict[str, Any]:
    if REFS in raw:
        return dict(_revive_at(raw, raw.pop(REFS)))
    return dict(_revive(raw))


def _references(value: Any) -> tuple[list[Path], bool]:
    """The paths of true references, and whether anything else looks like one."""
    true: list[Path] = []
    lookalikes = False
    for path, found in _walk(value, ()):
        if isinstance(found, Reference):
            true.append(path)
        elif isinstance(found, dict) and (REF in found or SECRET in found):
            lookalikes = True
    return true, lookalikes


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _walk(below, (*path, key))
    elif isinstance(value, list | tuple):
        for index, below in enumerate(value):
            yield from _walk(below, (*path, index))


def _revive(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and (REF in value or SECRET in value):
            return _reference(value)
        return {key: _revive(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_revive(below) for below in value]
    return value


def _revive_at(value: Any, paths: Sequence[Sequence[str | int]]) -> Any:
    for path in paths:
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        if path:
            holder[path[-1]] = _reference(holder[path[-1]])
        else:
            value = _reference(value)
    return value


def _reference(value: dict[str, Any]) -> Any:
    """What a marked value stands for; one that is not of the right form is data."""
    found = reference_of(value.get(REF)) if REF in value else secret_of(value.get(SECRET))
    return value if found is None else found
