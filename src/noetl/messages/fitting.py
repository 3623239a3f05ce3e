"""
What fits into an event, and what becomes of the rest? The one place that decides it (EVT-4, RES-1).

An event holds values in the fields that `messages.names` lists. A large one is kept outside the
log the first time it is recorded (decision 0042), and what stays is at most `max_payload_bytes` in
all, whoever makes the event. A body's key is its hash: equal bodies are one.
"""

from collections.abc import MutableMapping
from typing import Any, TypeVar

import msgspec

from noetl.errors import NoetlError
from noetl.messages import events as e
from noetl.messages.codec import encode, encode_events, encode_shown, reference_to
from noetl.messages.depth import TOO_DEEP, is_deep
from noetl.messages.reference import Reference
from noetl.messages.written import HOLDS, Measured, Slot, WrittenValues, hint_of, slots_of

INLINE = 131_072
"""Bytes of JSON: a larger value is never in the log."""

POINTER = 400
"""Bytes that a reference takes, about: a smaller value is not worth one."""

ENVELOPE = 4096
"""Bytes that an event may have beside its values, and one reference or two too many."""

READABLE = 1000
"""Characters of an error's message that stay in the log when the error is too large for it."""

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
    return len(text) <= limit and not is_deep(text)


def fits(measured: Measured, limit: int) -> bool:
    """The same of one that was measured."""
    return measured.size <= limit and not is_deep(measured.text)


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
        measured: Measured | None = None,
    ) -> E:
        """
        The event, its largest values moved out until the rest of them fits. `strict` raises
        EventTooLarge where thousands of small ones do not, because a reference is larger than each,
        and EventTooDeep.

        `keep` are keys of `set_ctx` that go only where they must: reducers look into them.
        `measured` is what the event is, where that is known.
        """
        if type(event) not in HOLDS:
            return event
        known = WrittenValues() if self._known is None else self._known
        try:
            measured = measured or known.measured(event)
        except RecursionError:
            raise EventTooDeep from None
        if strict and is_deep(measured.text):
            raise EventTooDeep
        if measured.size <= self._inline:
            return event
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
        checksum = None if self._known is None else self._known.checksum(value)
        hint = hint_of(value)
        reference = reference_to(self._store, self._execution_id, body, hint, checksum)
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


def _length(sized: tuple[bytes, Slot]) -> int:
    return len(sized[0])
