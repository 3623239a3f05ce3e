"""Can a wait ever end as it is written, and do its keys belong together? (WAIT-1)"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from noetl.expression.syntax import is_template
from noetl.kinds.awaited import ANSWERING, FIELD_TYPES, MOST_FIELDS, TOKEN, arm, form_field
from noetl.kinds.flow import WaitInputs
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Playbook, Task
from noetl.playbook.reader import At, Reader
from noetl.playbook.suggest import listed

AWAITED = ("seconds", "until", "signal", "approval")
TAKES = {"when": ("signal",), "timeout": ("signal", "approval", "any")}
"""Key → those that it goes with."""


def check_waits(reader: Reader, playbook: Playbook) -> None:
    for task in tasks_of(playbook):
        if task.kind != "wait":
            continue
        begun = any(name in task.inputs for name in (*AWAITED, "any"))  # else that is told
        for key, partners in TAKES.items():
            if begun and key in task.inputs and not any(name in task.inputs for name in partners):
                _report_lonely(reader, reader.input_at(task.place.path, key), key, partners)
        for label, given, at, guard_at in arms_of(reader, task):
            if guard_at is not None:
                reader.guard(guard_at)
            _check_arm(reader, label, given, at)


def arms_of(reader: Reader, task: Task) -> Iterator[tuple[str, dict[str, Any], At, At | None]]:
    """What can end a wait, itself or each label of `any`: where it stands, and its guard."""
    below = task.inputs.get("any")
    if not isinstance(below, Mapping):
        name = next((name for name in AWAITED if name in task.inputs), None)
        if name is not None:
            known = (*AWAITED, "when")  # others are told with the inputs of the kind
            inputs = {key: value for key, value in task.inputs.items() if key in known}
            guard = reader.input_at(task.place.path, "when") if "when" in inputs else None
            yield "", inputs, reader.input_at(task.place.path, name), guard
        return
    entries = reader.entries(reader.input_at(task.place.path, "any"))
    for label, given in below.items():
        if isinstance(given, Mapping) and label in entries:
            yield label, dict(given), entries[label], reader.entries(entries[label]).get("when")


def _check_arm(reader: Reader, label: str, given: dict[str, Any], at: At) -> None:
    named = [key for key in AWAITED if key in given]
    strange = [key for key in given if key not in (*AWAITED, "when")]
    if not label and len(named) != 1:
        return  # told of the task as a whole
    if strange or len(named) != 1:
        said = f"has {listed(map(repr, strange or named))}" if strange or named else "is empty"
        reader.report(
            "input-choice",
            at,
            f"'{label}' of 'any' {said}, expected exactly one of {listed(map(repr, AWAITED))}",
            f"write {label}: {{ signal: … }}, or another one of them",
        )
        return
    if label and "when" in given and "signal" not in given:
        _report_lonely(reader, reader.entries(at)["when"], "when", TAKES["when"])
    given.pop("when", None)
    asked = given.get("approval")
    if isinstance(asked, Mapping):
        _check_approval(reader, reader.entries(at)["approval"] if label else at)
        return
    told = not label and "seconds" in given  # its type is checked with the inputs of the kind
    if not told and not holds_template(given):
        try:
            arm(label, msgspec.convert(given, WaitInputs, strict=False), ())
        except (ValueError, msgspec.ValidationError) as fault:
            reader.report("wrong-value", at, f"the wait cannot be begun: {fault}", SHAPES)


def _check_approval(reader: Reader, at: At) -> None:
    """Each part where it stands; what a template gives is checked when the wait begins."""
    given = reader.entries(at)
    for key, entry in given.items():
        if key not in ASKED:
            hint = reader.suggest(key, ASKED, f"keys: {', '.join(ASKED)}")
            said = f"an approval has no key '{key}'"
            reader.report_node(APPROVAL, entry.anchor, entry.path, said, hint)
    if "title" not in given:
        reader.report(APPROVAL, at, "an approval lacks 'title'", "add 'title': what is asked")
    elif not isinstance(reader.value(given["title"]), str):
        reader.report(APPROVAL, given["title"], "'title' is not text", "write what is asked")
    if "form" in given:
        _check_form(reader, given["form"])
    if "roles" in given:
        _check_roles(reader, given["roles"])


def _check_form(reader: Reader, at: At) -> None:
    fields = reader.value(at)
    if not isinstance(fields, Mapping):
        if not is_template(fields):
            reader.report(APPROVAL, at, "'form' is not a mapping of fields", FIELD)
        return
    if len(fields) > MOST_FIELDS:
        said = f"a form has at most {MOST_FIELDS} fields, got {len(fields)}"
        reader.report(APPROVAL, at, said, "ask for less, or ask several times")
    for name, entry in reader.entries(at).items():
        value = reader.value(entry)
        if holds_template(value):
            continue
        try:
            form_field(name, value)
        except ValueError as fault:
            type_ = value.get("type") if isinstance(value, Mapping) else value
            known = isinstance(type_, str) and type_ not in FIELD_TYPES
            hint = reader.suggest(str(type_), FIELD_TYPES, FIELD) if known else FIELD
            reader.report(APPROVAL, entry, str(fault), hint)


def _check_roles(reader: Reader, at: At) -> None:
    roles = reader.value(at)
    if isinstance(roles, list) and roles:
        for one in reader.elements(at):
            name = reader.value(one)
            if not isinstance(name, str):
                reader.report(APPROVAL, one, "a role is not text", ROLES)
            elif name not in ANSWERING and not name.startswith(TOKEN):
                _report_role(reader, one, name)
    elif not is_template(roles):
        said = "'roles' is not a list" if roles else "'roles' is empty: nobody could answer"
        reader.report(APPROVAL, at, said, ROLES)


def _report_role(reader: Reader, at: At, name: str) -> None:
    if not is_template(name):
        known = listed(map(repr, ANSWERING))
        reader.report(
            "unknown-role",
            at,
            f"'{name}' in 'roles' is not a role that may answer: {known}",
            f"if a token is called so, write {TOKEN}{name}",
        )


APPROVAL = "approval-shape"
ASKED = ("title", "form", "roles")
"""Keys of an approval."""
FIELD = "write a field as `limit: number`, or `account: { type: string, choices: [main, travel] }`"
ROLES = f"write a list of {listed(ANSWERING)}, or of tokens as {TOKEN}NAME; or leave it out"
SHAPES = (
    "seconds: 90 · until: 2026-01-31T09:00:00Z · signal: NAME · "
    "approval: { title: …, form: { amount: number }, roles: [approver] }"
)


def _report_lonely(reader: Reader, at: At, key: str, partners: tuple[str, ...]) -> None:
    with_ = listed(map(repr, partners))
    reader.report("input-choice", at, f"'{key}' goes with {with_} alone", f"take '{key}' out")


def holds_template(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(holds_template, value.values()))
    if isinstance(value, list):
        return any(map(holds_template, value))
    return is_template(value)
