"""Which approval is meant, who may answer it, and does the answer fit its form? (WAIT-5)"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from noetl.control.execution import Execution
from noetl.control.waits_held import pending
from noetl.errors import NoetlError
from noetl.kinds.awaited import ANSWERING, FIELD_TYPES, TOKEN
from noetl.messages.places import place_of
from noetl.pipeline.frame import TaskWait
from noetl.playbook.suggest import did_you_mean

SHOWN = 5
"""Waits, or fields, that a refusal names."""


class AnswerRefused(NoetlError):
    """An answer that no approval takes; the message says why."""


Asking = tuple[TaskWait, dict[str, Any]]
"""A wait and the arm of it that asks a person; of `any` several arms may."""


def approvals(execution: Execution) -> list[Asking]:
    """Everything that waits for a person."""
    return [
        (wait, arm) for wait in pending(execution) for arm in wait.awaits if arm["by"] == "approval"
    ]


def approval_for(execution: Execution, asked: str | None) -> Asking:
    """The approval of a step, an iteration or an arm, or the only one; raises AnswerRefused."""
    waiting = approvals(execution)
    found = [one for one in waiting if asked is None or asked in names_of(*one)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise AnswerRefused(nothing_waits(execution, asked))
    names = names_among(waiting)
    named = ", ".join(names[key_of(*one)] for one in found[:SHOWN])
    more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    raise AnswerRefused(f"{len(found):,} approvals wait; name one of them: {named}{more}")


def key_of(wait: TaskWait, arm: Mapping[str, Any]) -> tuple[str, str]:
    return wait.task_run_id, arm.get("label", "")


def names_of(wait: TaskWait, arm: Mapping[str, Any]) -> tuple[str, ...]:
    """What a person may call an approval, the shortest first; the last is of no other."""
    places = (
        wait.step,
        place_of(wait.step, wait.task_run_id),
        place_of(wait.step, wait.task_run_id, run=True),
    )
    tasks = (*(f"{place}.{wait.task}" for place in places), wait.task_run_id)
    label = arm.get("label")
    if not label:
        return *places, *tasks
    return *places, *tasks, *(f"{name}.{label}" for name in (*places, *tasks))


def names_among(asking: Sequence[Asking]) -> dict[tuple[str, str], str]:
    """Task run and label → the shortest name that means no other of these approvals."""
    taken = Counter(name for one in asking for name in set(names_of(*one)))
    return {
        key_of(*one): next((name for name in every if taken[name] == 1), every[-1])
        for one in asking
        for every in (names_of(*one),)
    }


def label_of(asked: str | None, place: str) -> bool:
    """Whether it names a question of `any`, or the task, at this place."""
    return asked is not None and asked.startswith(f"{place}.")


def nothing_waits(execution: Execution, asked: str | None) -> str:
    """A second answer names the first; a name that nothing has is likely misspelt."""
    said = [
        f"that of '{place}' was {how}"
        for place, how in execution.answers.items()
        if asked in (None, place) or place.startswith(f"{asked}:") or label_of(asked, place)
    ]
    where = "" if asked is None else f" at '{asked}'"
    message = f"no approval waits{where}"
    if said:
        return f"{message}: {'; '.join(said[-SHOWN:])}"
    others = approvals(execution)
    names = list(names_among(others).values())
    if not names:
        return message + awaited_instead(execution)
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    listed = f"waiting for an answer: {', '.join(names[:SHOWN])}{more}"
    hint = did_you_mean(asked or "", [*names, *(wait.step for wait, _ in others)], "")
    return f"{message}; {listed}; {hint}" if hint else f"{message}; {listed}"


def awaited_instead(execution: Execution) -> str:
    """Somebody who answers a wait for a signal is told what it waits for."""
    signals = {
        f"'{place_of(wait.step, wait.task_run_id)}' waits for signal '{arm['name']}'": None
        for wait in pending(execution)
        for arm in wait.awaits
        if arm["by"] == "signal"
    }
    if not signals:
        return ""
    return f"; {', '.join(list(signals)[:SHOWN])}: send it with `noetl signal`"


def refuse_stranger(arm: Mapping[str, Any], known_as: tuple[str, ...] | None) -> None:
    """`known_as`: role and name of a token; None: whoever it is may do everything here."""
    roles = arm.get("roles")
    if roles and known_as is not None and not any(names(one, *known_as) for one in roles):
        raise AnswerRefused(
            f"'{arm['title']}' may be answered by {', '.join(roles)}, not by "
            f"{' or '.join(known_as)}"
        )


def names(entry: str, role: str, name: str = "") -> bool:
    """A role is never meant for a token that is called like it."""
    if entry in ANSWERING:
        return entry == role
    return bool(name) and entry.removeprefix(TOKEN) == name


def filled_in(
    arm: Mapping[str, Any], given: Mapping[str, Any], *, approved: bool
) -> dict[str, Any]:
    """The fields of the form, all faults told at once; a rejection may leave them out."""
    form: Mapping[str, Any] = arm.get("form", {})
    strange = [name for name in given if name not in form]
    faults = [
        f"the form has no field '{name:.80}'; "
        + did_you_mean(name, form, f"it has: {', '.join(form) or 'none'}")
        for name in strange[:SHOWN]  # each is compared with all that there are
    ]
    if len(strange) > SHOWN:
        faults.append(f"nor has it {len(strange) - SHOWN:,} others that were given")
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
        raise AnswerRefused(f"{'; '.join(faults)}; `noetl waiting` shows the whole answer")
    return found


def misfit(name: str, field: Mapping[str, Any], value: Any) -> str | None:
    expected = FIELD_TYPES.get(field["type"], object)  # one that was masked fits everything
    boolean = isinstance(value, bool) and field["type"] != "boolean"
    if boolean or not isinstance(value, expected):
        return f"the field '{name}' is {value!r:.80}, expected {field['type']}"
    choices = field.get("choices")
    if choices and value not in choices:
        listed = ", ".join(map(str, choices))
        hint = did_you_mean(str(value), map(str, choices), "")
        said = f"the field '{name}' is {value!r:.80}, expected one of: {listed}"
        return f"{said}; {hint}" if hint else said
    return None
