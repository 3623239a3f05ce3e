"""What is known of a step and its tasks before they run, so that nobody asks each time."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from noetl.playbook.model import Task

if TYPE_CHECKING:
    from noetl.playbook.plan import StepPlan, Workbook


def asks_nothing(step: "StepPlan") -> bool:
    before = (step.join, step.admission, step.limit, step.loop)
    return bool(step.pipeline.tasks) and before == (None, None, None, None)


def may_run_inline(step: "StepPlan") -> bool:
    tasks = step.pipeline.tasks
    return step.loop is None and bool(tasks) and all(task.kind == "noop" for task in tasks)


def is_idle(step: "StepPlan", most: int) -> bool:
    tasks = step.pipeline.tasks
    plain = may_run_inline(step) and len(tasks) <= most
    return plain and not any(task.choose or task.cache for task in tasks)


def is_looked_behind(steps: Mapping[str, "StepPlan"], name: str) -> bool:
    loop, router = steps[name].loop, steps[name].router
    arcs = () if router is None else router.after_success
    return any(arc.touches or steps[arc.step].touches for arc in arcs) or bool(loop and loop.reduce)


def may_wait(tasks: tuple[Task, ...], workbook: "Workbook") -> bool:
    """Whether a pipeline may wait: then each iteration that does is taken up by whoever is free."""
    lent = any(task.kind == "wait" for task in workbook.tasks.values())
    return any(
        task.kind == "wait"
        or (task.kind == "workbook" and lent)
        or (task.inner is not None and may_wait(task.inner.tasks, workbook))
        for task in tasks
    )


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
