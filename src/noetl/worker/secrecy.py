"""What a part records of values that hold a secret: sealed if it is data, masked if it is words."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from noetl.masking import KNOWN, NUMBERS
from noetl.messages.codec import encode, encode_events
from noetl.messages.events import Event
from noetl.messages.names import HELD
from noetl.messages.reference import Reference


class Sealing(Protocol):
    """Encrypts recorded values, and opens them again (KEY-3)."""

    @property
    def ready(self) -> bool:
        """Whether a credential was ever unlocked: nothing else is worth opening again."""

    def seal(self, value: Any) -> Reference: ...

    async def open(self, reference: Reference) -> Any:
        """The value; raises BodyLost."""


E = TypeVar("E", bound=Event)

RECORDED = {"status", "result", "error"}


class Secrecy:
    """Keeps the secrets of one part out of its reports."""

    def __init__(self, sealing: Sealing, bodies: dict[str, Any]) -> None:
        self._sealing = sealing
        self._bodies = bodies

    def fit(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of an outcome, or the writes to ctx or iter, as they may be recorded."""
        if not KNOWN.found_in(encode(values)):
            return values
        if values.keys() == RECORDED:
            return {
                "status": values["status"],
                "result": self.sealed(values["result"]),
                "error": masked_error(values["error"]),
            }
        return self._mapping(values)

    def report(self, events: Sequence[Event]) -> list[Event]:
        """The events as they may leave the worker."""
        if not KNOWN.found_in(encode_events(events)):
            return list(events)
        return [self.event(event) for event in events]

    def sealed(self, value: Any) -> Any:
        """The value, every part of it that holds a secret encrypted."""
        if isinstance(value, str):
            return self._seal(value) if KNOWN.holds(value) else value
        if type(value) in NUMBERS:
            return self._seal(value) if KNOWN.holds(str(value)) else value
        if isinstance(value, dict):
            if any(KNOWN.holds(key) for key in value if isinstance(key, str)):
                return self._seal(value)  # a key cannot be encrypted alone
            return self._mapping(value)
        if isinstance(value, list | tuple):
            return [self.sealed(below) for below in value]
        return value

    def _mapping(self, values: dict[str, Any]) -> dict[str, Any]:
        return {key: self.sealed(below) for key, below in values.items()}

    def _seal(self, value: Any) -> Any:
        if not self._sealing.ready:
            return KNOWN.cleaned(value)
        reference = self._sealing.seal(value)
        self._bodies[reference.key] = value
        return reference

    def event(self, event: E) -> E:
        """The event, its data sealed and its words masked where they hold a secret."""
        if not KNOWN.found_in(encode_events([event])):
            return event
        changes: dict[str, Any] = {}
        for field, holds in HELD[type(event)].items():
            value = getattr(event, field)
            if not value or value is msgspec.UNSET:
                continue
            if holds.secret == "outcome":
                changes[field] = self._outcome(value)
            elif holds.secret == "words":
                changes[field] = masked_error(value)
            elif holds.secret == "shown":
                changes[field] = KNOWN.cleaned(value)
            else:
                changes[field] = (
                    self._mapping(value) if holds.moves == "each" else self.sealed(value)
                )
        return msgspec.structs.replace(event, **changes) if changes else event

    def _outcome(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """OUT-1: the result is data; the error and the kind's own block are for people."""
        kept: dict[str, Any] = {key: outcome[key] for key in ("status", "meta") if key in outcome}
        rest = {key: masked_error(value) for key, value in outcome.items() if key not in kept}
        return {**rest, **kept, "result": self.sealed(outcome.get("result"))}


def masked_error(value: Any) -> Any:
    """
    An error, or a kind's own block, without secrets. Its keys are words of ours and stay, for
    policies ask for them; so does its kind.
    """
    if isinstance(value, dict):
        return {key: _masked_field(key, below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [masked_error(below) for below in value]
    return KNOWN.cleaned(value)


def _masked_field(key: str, value: Any) -> Any:
    if key in ("kind", "retryable", "index"):
        return value
    return masked_error(value) if key in ("cause", "errors") else KNOWN.cleaned(value)
