"""The guards of waits, which are no inputs: they see what has not come yet (WAIT-1)."""

from collections.abc import Mapping
from typing import Any

from noetl.playbook.model import Task


def guards_of(task: Task) -> list[tuple[str, bool | str]]:
    """WAIT-1: the guards of a wait, by label; that of a plain one has none."""
    if task.kind != "wait":
        return []
    arms = {"": task.inputs, **(task.inputs.get("any") or {})}
    return [
        (label, arm["when"])
        for label, arm in arms.items()
        if isinstance(arm, Mapping) and arm.get("when") is not None
    ]


def rendered_inputs(task: Task) -> dict[str, Any]:
    """The inputs but for guards, whose templates see what has not come yet."""
    if task.kind != "wait":
        return task.inputs
    plain = {key: value for key, value in task.inputs.items() if key != "when"}
    if isinstance(plain.get("any"), Mapping):
        plain["any"] = {
            label: {key: value for key, value in arm.items() if key != "when"}
            if isinstance(arm, Mapping)
            else arm
            for label, arm in plain["any"].items()
        }
    return plain
