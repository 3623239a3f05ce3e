"""Executions that a task of another one starts and waits for (TOOL-1)."""

import asyncio
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from noetl.control.ending import result_of
from noetl.control.execution import Execution
from noetl.errors import TOO_DEEP, ServerRefused
from noetl.late import late
from noetl.playbook.plan import Pipeline, Plan, StepPlan, TaskPlan
from noetl.ports.result_store import EXECUTION_ID
from noetl.ports.session import ChildAsked
from noetl.server.active import ActiveExecution

if TYPE_CHECKING:
    from noetl.node.control_plane import ControlPlane

CHILD = late(r"[0-9r.]{1,120}-[1-9][0-9]{0,5}")
"""Task run and attempt, as the id of a child ends."""
DEEPEST = 20
"""
Children below each other: one that calls itself would fill the disk before anybody looks, and their
ids would grow beyond what an id may be.
"""


class Children:
    """Begins children where their parent is decided for, and so that no cancel misses one."""

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def begin(self, asked: ChildAsked) -> dict[str, Any]:
        """Its id derives from the task run: a task that runs again finds its child."""
        plane, execution_id = self._plane, asked.execution_id
        if task_of(execution_id, asked.parent_execution_id) != asked.parent_id:
            raise ServerRefused("the id of a child derives from its task", code="refused")
        parent = plane.server.find(asked.parent_execution_id)
        if parent is None or not plane.ownership.sure():
            raise ServerRefused("another server decides for the parent", code="moved")
        depth = depth_of(execution_id)
        if depth > DEEPEST or EXECUTION_ID.fullmatch(execution_id) is None:
            raise ServerRefused(
                f"'{asked.path}' would be child number {depth} in a row, of at most {DEEPEST}, or "
                f"fewer where their ids grow long: does it call itself without an end?",
                code=TOO_DEEP,
            )
        active = plane.server.find(execution_id)
        if active is None and await plane.storage.executions.find(execution_id) is not None:
            return await self._again(execution_id)
        if active is None and not parent.execution.stop:
            found = await plane.library.child(
                asked.path, asked.version, parent.plan.path, parent.folder
            )
            plan = await plane.library.plan_of(found.text, found.folder)
            active = await plane.start(
                plan,
                execution_id=execution_id,
                payload=asked.payload,
                version=found.version or plan.version,
                folder=found.folder,
                parent_execution_id=asked.parent_execution_id,
                parent_id=asked.parent_id,
                trace_id=parent.execution.trace_id or asked.parent_execution_id,
                # Its playbook was fetched, and its place asked for, meanwhile (TOOL-1, T25).
                wanted=lambda: not parent.execution.stop,
            )
        if active is None and not parent.execution.stop:  # another began it under this id
            return await self._again(execution_id)
        # Either the cancel of the parent found the child, or its child finds the cancel here.
        if parent.execution.stop and active is not None:
            await plane.ownership.cancel_child(execution_id)
        if active is None:
            raise ServerRefused("the parent is being stopped: nothing new starts", code="stopped")
        return summary(active.execution)

    async def _again(self, execution_id: str) -> dict[str, Any]:
        if not self._plane.ownership.adopts:
            return summary((await self._plane.take_up(execution_id)).execution)
        found = await self._plane.ownership.bring(execution_id)
        if isinstance(found, ActiveExecution):
            return summary(found.execution)
        execution, _ = await self._plane.state(execution_id)
        return summary(execution)

    async def run(
        self, asked: ChildAsked, *, wait: bool, stopping: Callable[[], bool]
    ) -> dict[str, Any]:
        """For a task of this process; whoever is cancelled cancels it and sees its end."""
        execution_id = asked.execution_id
        beginning = asyncio.ensure_future(self.begin(asked))
        try:
            begun = await asyncio.shield(beginning)
            active = self._plane.server.find(execution_id)
            if not wait or active is None:
                return begun
            await asyncio.shield(active.finished)
            return summary(active.execution)
        except asyncio.CancelledError:
            await asyncio.wait([beginning])
            active = self._plane.server.find(execution_id)
            if active is not None and not stopping():
                await self._plane.ownership.cancel_child(execution_id)
                await asyncio.wait([active.finished])
            raise


def task_of(execution_id: str, parent: str) -> str | None:
    """The task run that a child was asked for by, as its id says it; None: it is no such id."""
    start, _, attempt = execution_id.rpartition("-")
    task = start.removeprefix(f"{parent}-")
    return task if start != task and CHILD.fullmatch(f"{task}-{attempt}") else None


def depth_of(execution_id: str) -> int:
    """How many executions are above it: each adds its task run and attempt to the id."""
    depth = 0
    while (parts := execution_id.rsplit("-", 2))[1:] and CHILD.fullmatch("-".join(parts[1:])):
        execution_id, depth = parts[0], depth + 1
    return depth


def asks_for(plan: Plan, step: StepPlan, path: str) -> bool:
    """Whether a task of the step runs this playbook; one whose path is a template may run any."""
    paths = {task.child for task in tasks_of(step.pipeline, plan) if task.kind == "playbook"}
    return path in paths or None in paths


def tasks_of(pipeline: Pipeline, plan: Plan) -> Iterator[TaskPlan]:
    """Every task that a pipeline can come to, with those of its loops and of the workbook."""
    for task in pipeline.tasks:
        yield task
        if task.inner is not None:
            yield from tasks_of(task.inner.pipeline, plan)
        elif task.kind == "workbook":
            for lent in plan.workbook.values():
                yield lent
                if lent.inner is not None:
                    yield from lent.inner.pipeline.tasks


def summary(execution: Execution) -> dict[str, Any]:
    """What a parent sees of its child."""
    return {
        "execution_id": execution.execution_id,
        "status": execution.status,
        "ctx": execution.ctx,
        "result": result_of(execution.leaves),
        "error": execution.error,
    }
