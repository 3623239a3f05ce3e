"""Can a wait ever end as it is written, and do its keys belong together? (WAIT-1)"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from noetl.expression.syntax import is_template
from noetl.kinds.awaited import ANSWERING, TOKEN, arm
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
        for key, partners in TAKES.items():
            if key in task.inputs and not any(name in task.inputs for name in partners):
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
    told = not label and "seconds" in given  # its type is checked with the inputs of the kind
    if not told and not holds_template(given):
        try:
            arm(label, msgspec.convert(given, WaitInputs, strict=False), ())
        except (ValueError, msgspec.ValidationError) as fault:
            reader.report("wrong-value", at, f"the wait cannot be begun: {fault}", SHAPES)
    asked = given.get("approval")
    roles = asked.get("roles") if isinstance(asked, Mapping) else None
    for one in roles if isinstance(roles, list) else ():
        if isinstance(one, str) and one not in ANSWERING and not one.startswith(TOKEN):
            _report_role(reader, at, one)


def _report_role(reader: Reader, at: At, name: str) -> None:
    if not is_template(name):
        known = listed(map(repr, ANSWERING))
        reader.report(
            "unknown-role",
            at,
            f"'{name}' in 'roles' is not a role that may answer: {known}",
            f"if a token is called so, write {TOKEN}{name}",
        )


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
