"""What a wait waits for: its inputs as `wait.started` records them (WAIT-1)."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from noetl.kinds.flow import LONGEST, WaitInputs
from noetl.kinds.misfit import misfit_words
from noetl.messages.clipping import beginning

FIELD_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
}
"""What a field of a form may hold, by the name that a document uses."""
MOST_FIELDS = 100
ANSWERING = ("approver", "operator", "author", "admin")
"""Roles of the API that may answer (WAIT-5)."""
TOKEN = "token:"
"""What begins the name of a token among `roles`."""


class FormField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field of a form; a bare type stands for `{type: …}`."""

    type: str = "string"
    title: str = ""
    required: bool = True
    default: Any = None
    choices: list[Any] = []


class Approval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person is asked."""

    title: str
    form: dict[str, Any] = {}
    roles: list[str] | None = None
    """Roles of the API, and tokens as `token:NAME`; None: whoever may answer at all."""


def awaited(
    inputs: Mapping[str, Any], guards: Collection[str]
) -> tuple[list[dict[str, Any]], float | None]:
    """What can end the wait, one entry each, and its `timeout`; raises ValueError."""
    try:
        given = msgspec.convert(inputs, WaitInputs, strict=False)
        _refuse_long(given.seconds, given.timeout)
        if given.any is None:
            return [arm("", given, guards)], given.timeout
        if not given.any:
            raise ValueError("`any` has no label")
        arms = {
            label: msgspec.convert(one, WaitInputs, strict=False)
            for label, one in given.any.items()
        }
    except msgspec.ValidationError as fault:
        raise ValueError(misfit_words(fault)) from None
    for label, one in arms.items():
        _refuse_long(one.seconds)
        if one.any is not None or one.timeout is not None:
            raise ValueError(f"`{label}` of `any` has an `any` or a `timeout` of its own")
    return [arm(label, one, guards) for label, one in arms.items()], given.timeout


def _refuse_long(*times: float | None) -> None:
    for seconds in times:
        if seconds is not None and not seconds <= LONGEST:
            raise ValueError(f"{seconds:g} s is too long: at most {LONGEST:g} s, a hundred years")


def arm(label: str, given: WaitInputs, guards: Collection[str]) -> dict[str, Any]:
    """One thing that is awaited, as `wait.started` has it; its guard stays in the plan."""
    named = {"label": label} if label else {}
    guarded = {"guarded": True} if label in guards else {}
    match given:
        case WaitInputs(seconds=float() | int() as seconds):
            return {"by": "timer", **named, "seconds": float(seconds)}
        case WaitInputs(until=str() as until):
            return {"by": "timer", **named, "due": moment(until)}
        case WaitInputs(signal=str() as name) if name:
            return {"by": "signal", **named, "name": name, **guarded}
        case WaitInputs(approval=str() as title) if title:
            return {"by": "approval", **named, "title": title}
        case WaitInputs(approval=dict() as asked):
            approval = _fitting(asked, Approval, "`approval`")
            if "roles" in asked and not approval.roles:  # a template may come to nothing at all
                raise ValueError("`roles` is empty: nobody could answer")
            more = {"form": form_of(approval), "roles": approval.roles}
            shown = {key: value for key, value in more.items() if value}
            return {"by": "approval", **named, "title": approval.title, **shown}
    where = f" in `{label}`" if label else ""
    raise ValueError(f"expected one of seconds, until, signal, approval{where}")


T = TypeVar("T")


def _fitting(given: Any, type_: type[T], name: str) -> T:
    """The value as its type; raises ValueError, which begins with its name."""
    try:
        return msgspec.convert(given, type_, strict=False)
    except msgspec.ValidationError as fault:
        raise ValueError(f"{name}: {misfit_words(fault)}") from None


def form_of(approval: Approval) -> dict[str, Any]:
    """The fields as they are recorded; raises ValueError."""
    if len(approval.form) > MOST_FIELDS:
        raise ValueError(f"a form has at most {MOST_FIELDS} fields, got {len(approval.form)}")
    return {name: form_field(name, one) for name, one in approval.form.items()}


def form_field(name: str, given: Any) -> dict[str, Any]:
    """A field as it is recorded: what is usual is left out."""
    if name in RESERVED:
        raise ValueError(f"a form cannot have a field '{name}': the answer has one of its own")
    field = _fitting(
        {"type": given} if isinstance(given, str) else given, FormField, f"field '{name}'"
    )
    if field.type not in FIELD_TYPES:
        known = ", ".join(FIELD_TYPES)
        raise ValueError(f"field '{name}' has type '{field.type}', expected one of {known}")
    fields = {key: getattr(field, key) for key in FormField.__struct_fields__}
    usual = FormField(type=field.type)
    return {
        key: value for key, value in fields.items() if key == "type" or value != getattr(usual, key)
    }


RESERVED = frozenset({"approved", "by", "at", "reason"})
"""WAIT-5: what every answer has."""


def moment(text: str) -> int:
    """An RFC 3339 time in ms since 1970; one without an offset is UTC. Raises ValueError."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"`until` is not a time: {beginning(text, 80)!r},"
            " expected one such as 2026-01-31T09:00:00Z"
        ) from None
    aware = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
