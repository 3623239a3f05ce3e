"""
What fits into an event, and what becomes of the rest? The one place that decides it (EVT-4, RES-1).

An event holds values in the fields that `messages.names` lists. A large one is kept outside the
log the first time it is recorded (decision 0042), and what stays is at most `max_payload_bytes` in
all, whoever makes the event. A body's key is its hash: equal bodies are one.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from noetl.errors import NoetlError
from noetl.messages import events as e
from noetl.messages.codec import encode, encode_events, encode_shown, is_plain, reference_to
from noetl.messages.depth import TOO_DEEP, is_deep
from noetl.messages.names import HELD
from noetl.messages.reference import Reference

INLINE = 131_072
"""Bytes of JSON: a larger value is never in the log."""

POINTER = 400
"""Bytes that a reference takes, about: a smaller value is not worth one."""

ENVELOPE = 4096
"""Bytes that an event may have beside its values, and one reference or two too many."""

WORTH = 16_384
"""Bytes of a value that is not written down twice in one decision."""

READABLE = 1000
"""Characters of an error's message that stay in the log when the error is too large for it."""

HOLDS: dict[type[e.Event], dict[str, str]] = {
    kind: {field: holds.moves for field, holds in held.items() if holds.moves != "stays"}
    for kind, held in HELD.items()
    if any(holds.moves != "stays" for holds in held.values())
}
"""Where an event holds values: one that moves as a whole, a mapping of such, or an error."""

E = TypeVar("E", bound=e.Event)


class Unfitting(NoetlError):
    """An event that no log can take: told once, with the true reason."""


class EventTooLarge(Unfitting):
    """An event above the limit that nothing makes smaller."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"an event of {size:,} bytes is above the limit of {limit:,} "
            "(executor.spec.policy.limits.max_payload_bytes)"
        )


class EventTooDeep(Unfitting):
    """An event with a value in it that not everybody can walk through."""

    def __init__(self) -> None:
        super().__init__(TOO_DEEP)


def refuse_large(event: e.Event, limit: int) -> None:
    """EVT-4: what is larger than the limit belongs into the result store."""
    size = len(encode_events([event]))
    if size > limit + ENVELOPE:
        raise EventTooLarge(size, limit)


def text_of(event: e.Event, *, strict: bool, text: bytes | None = None) -> bytes:
    """The event written down, unless `text` is it already; `strict` raises EventTooDeep (EVT-4)."""
    if text is None:
        try:
            text = encode_shown(event)
        except RecursionError:
            raise EventTooDeep from None
    if strict and is_deep(text):
        raise EventTooDeep
    return text


class Slot(msgspec.Struct, frozen=True):
    """One value that may be moved: a field, or one key of it."""

    field: str
    key: str | None
    value: Any
    is_error: bool


def slots_of(event: e.Event) -> Iterator[Slot]:
    for field, how in HOLDS.get(type(event), {}).items():
        value = getattr(event, field)
        if how != "each":
            yield Slot(field, None, value, how == "error")
            continue
        outcome = field == "outcome"
        for key, below in (value or {}).items():
            yield Slot(field, key, below, outcome and key == "error")


def is_small(event: e.Event, limit: int) -> bool:
    """
    Whether nothing of the event need be moved, or refused.

    To write an event down takes a fifth of the time of looking through it, so it is just written.
    """
    if type(event) not in HOLDS:
        return True
    try:
        text = encode_shown(event)
    except RecursionError:
        return False
    return fits(text, limit)


def fits(text: bytes, limit: int) -> bool:
    """The same of an event that is written down."""
    return len(text) <= limit and not is_deep(text)


class Remembered(NamedTuple):
    """A large value as it was written down."""

    value: Any
    """It is kept, so that no other value gets its place in memory."""
    body: bytes
    hint: str | None
    is_plain: bool
    """Whether nothing in it looks like a reference: then it is written alike wherever it is."""


class WrittenValues:
    """
    The large values of one decision, each written down once: what comes with a request is in its
    first event and, the same value, in `workload` (decision 0095).
    """

    def __init__(self) -> None:
        self._known: dict[int, Remembered] = {}
        self._references: dict[int, Reference] = {}

    def body(self, value: Any) -> bytes:
        known = self._known.get(id(value))
        if known is not None:
            return known.body
        body = written(value)
        if len(body) > WORTH:
            self._known[id(value)] = Remembered(value, body, hint_of(value), is_plain(body))
        return body

    def reference(self, value: Any, store: str, execution_id: str, body: bytes) -> Reference:
        """The body is hashed once, too."""
        known = self._known.get(id(value))
        if known is None:
            return reference_to(store, execution_id, body, hint_of(value))
        found = self._references.get(id(value))
        if found is None:
            found = reference_to(store, execution_id, body, known.hint)
            self._references[id(value)] = found
        return found

    def text(self, event: e.Event) -> bytes:
        """The event as `encode_shown` writes it."""
        return encode_shown(self._lightened(event) if self._known else event)

    def _lightened(self, event: e.Event) -> e.Event:
        """The same with what was written down in the place of the values."""
        light: dict[str, Any] = {}
        for slot in slots_of(event):
            known = self._known.get(id(slot.value))
            if known is None or not known.is_plain:
                continue
            body = msgspec.Raw(known.body)
            if slot.key is None:
                light[slot.field] = body
            else:
                before = light.get(slot.field) or dict(getattr(event, slot.field))
                light[slot.field] = {**before, slot.key: body}
        return msgspec.structs.replace(event, **light) if light else event


class Fitting:
    """Moves values of events out of the log, into bodies that must be stored before the event."""

    def __init__(
        self,
        store: str,
        execution_id: str,
        largest: int,
        made: MutableMapping[str, bytes],
        values: MutableMapping[str, Any] | None = None,
        known: WrittenValues | None = None,
    ) -> None:
        self._store = store
        self._execution_id = execution_id
        self._largest = largest
        self._inline = min(INLINE, largest)
        self.made = made
        """Key → body, of all that was moved."""
        self._values = values
        """Key → value of the same, for whoever reads on."""
        self._known = known

    def event(
        self,
        event: E,
        keep: frozenset[str] = frozenset(),
        *,
        strict: bool = True,
        text: bytes | None = None,
    ) -> E:
        """
        The event, its largest values moved out until the rest of them fits. `strict` raises
        EventTooLarge where thousands of small ones do not, because a reference is larger than each,
        and EventTooDeep.

        `keep` are keys of `set_ctx` that go only where they must: reducers look into them. `text`
        is the event as it was written down.
        """
        if type(event) not in HOLDS:
            return event
        if len(text_of(event, strict=strict, text=text)) <= self._inline:
            return event
        known = WrittenValues() if self._known is None else self._known
        slots = [(known.body(slot.value), slot) for slot in slots_of(event)]
        total = sum(len(body) + len(slot.key or "") + 4 for body, slot in slots)
        moved: dict[str, Any] = {}
        for body, slot in sorted(slots, key=_length, reverse=True):
            size = len(body)
            if total <= self._largest and slot.field == "set_ctx" and slot.key in keep:
                continue
            if size <= self._inline and (total <= self._largest or size <= POINTER):
                break
            value = self._shortened(slot.value) if slot.is_error else self.refer(slot.value, body)
            total += len(encode(value)) - size
            if slot.key is None:
                moved[slot.field] = value
            else:
                before = moved.get(slot.field) or dict(getattr(event, slot.field))
                moved[slot.field] = {**before, slot.key: value}
        fitted = msgspec.structs.replace(event, **moved) if moved else event
        if strict and total > self._largest:
            refuse_large(fitted, self._largest)
        return fitted

    def refer(self, value: Any, body: bytes | None = None) -> Any:
        """The reference to a value, which lies outside from now on."""
        if isinstance(value, Reference) and value.sealed is None:
            return value
        body = encode(value) if body is None else body
        known = WrittenValues() if self._known is None else self._known
        reference = known.reference(value, self._store, self._execution_id, body)
        self.made[reference.key] = body
        if self._values is not None:
            self._values[reference.key] = value
        return reference

    def _shortened(self, error: Any) -> Any:
        """An error keeps its kind and a message that can be read; what else is long moves out."""
        if not isinstance(error, dict):
            return error
        kept = dict(error)
        for key, value in error.items():
            if key == "message" and len(value) > READABLE:
                kept[key] = f"{value[:READABLE]}… ({len(value)} characters)"
            elif key == "cause" and isinstance(value, dict):
                kept[key] = self._shortened(value)
            elif key not in ("kind", "message", "retryable") and len(encode(value)) > READABLE:
                kept[key] = self.refer(value)
        return kept


def written(value: Any) -> bytes:
    return b"" if value is None or value is msgspec.UNSET else encode(value)


def _length(sized: tuple[bytes, Slot]) -> int:
    return len(sized[0])


def hint_of(value: Any) -> str | None:
    """RES-1 `schema_hint`: what kind of value lies behind a reference."""
    if isinstance(value, list):
        return f"list[{len(value)}]"
    return "object" if isinstance(value, dict) else None
