"""Which approval is meant, who may answer it, and does the answer fit its form? (WAIT-5)"""

from collections.abc import Iterable, Mapping
from typing import Any

from noetl.control.execution import Execution
from noetl.control.waits_held import pending
from noetl.errors import NoetlError
from noetl.kinds.awaited import FIELD_TYPES
from noetl.pipeline.frame import TaskWait

SHOWN = 5
"""Waits that a refusal names."""


class AnswerRefused(NoetlError):
    """An answer that no approval takes; the message says why."""


def approvals(execution: Execution) -> list[tuple[TaskWait, dict[str, Any]]]:
    """Everything that waits for a person."""
    return [
        (wait, arm) for wait in pending(execution) for arm in wait.awaits if arm["by"] == "approval"
    ]


def approval_for(execution: Execution, asked: str | None) -> tuple[TaskWait, dict[str, Any]]:
    """The approval of a step or a task run, or the only one there is; raises AnswerRefused."""
    waiting = approvals(execution)
    found = [
        (wait, arm)
        for wait, arm in waiting
        if asked is None or asked in (wait.step, wait.task_run_id, f"{wait.step}.{wait.task}")
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise AnswerRefused(nothing_waits(execution, asked, [wait for wait, _ in waiting]))
    named = ", ".join(f"{wait.task_run_id} (step '{wait.step}')" for wait, _ in found[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    raise AnswerRefused(f"{len(found):,} approvals wait; name one of them: {named}{more}")


def nothing_waits(execution: Execution, asked: str | None, others: list[TaskWait]) -> str:
    """A second answer names the first."""
    answered = execution.answers if asked is None else {asked: execution.answers.get(asked)}
    said = [f"that of step '{step}' was {how}" for step, how in answered.items() if how]
    where = "" if asked is None else f" at '{asked}'"
    message = f"no approval waits{where}"
    if said:
        message = f"{message}: {'; '.join(said[-SHOWN:])}"
    elif others:
        steps = ", ".join(sorted({wait.step for wait in others})[:SHOWN])
        message = f"{message}; steps that wait for an answer: {steps}"
    return message


def refuse_stranger(arm: Mapping[str, Any], known_as: Iterable[str] | None) -> None:
    """`roles` names roles and tokens; None: whoever it is may do everything here."""
    roles = arm.get("roles")
    if roles and known_as is not None and not set(roles) & set(known_as):
        raise AnswerRefused(
            f"'{arm['title']}' may be answered by {', '.join(roles)}, not by "
            f"{' or '.join(known_as)}"
        )


def filled_in(
    arm: Mapping[str, Any], given: Mapping[str, Any], *, approved: bool
) -> dict[str, Any]:
    """The fields of the form, all faults told at once; a rejection may leave them out."""
    form: Mapping[str, Any] = arm.get("form", {})
    faults = [
        f"the form has no field '{name}'; it has: {', '.join(form) or 'none'}"
        for name in given
        if name not in form
    ]
    found: dict[str, Any] = {}
    for name, field in form.items():
        if name in given:
            fault = misfit(name, field, given[name])
            if fault is not None:
                faults.append(fault)
            found[name] = given[name]
        elif "default" in field:
            found[name] = field["default"]
        elif field.get("required", True) and approved:
            faults.append(f"the field '{name}' ({field['type']}) is missing")
    if faults:
        raise AnswerRefused("; ".join(faults))
    return found


def misfit(name: str, field: Mapping[str, Any], value: Any) -> str | None:
    expected = FIELD_TYPES[field["type"]]
    boolean = isinstance(value, bool) and field["type"] != "boolean"
    if boolean or not isinstance(value, expected):
        return f"the field '{name}' is {value!r:.80}, expected {field['type']}"
    choices = field.get("choices")
    if choices and value not in choices:
        return f"the field '{name}' is {value!r:.80}, expected one of {choices}"
    return None
