"""Routes of restarts, and of what became different by them (RST)."""

from litestar import Response
from litestar.params import FromPath, JSONBody

from noetl.api import types as t
from noetl.api.answers import answered, answered_aside
from noetl.api.context import ApiContext, Asking, sender_of
from noetl.api.executions import Key, known, started
from noetl.node.restarts import RestartPlan
from noetl.server.views.differences import Differences


class RestartsRoutes:
    """Answers for whoever runs something again."""

    def __init__(self, context: ApiContext) -> None:
        self._plane = context.plane
        self._questions = context.questions

    async def restart(
        self,
        request: Asking,
        execution_id: FromPath[str],
        data: JSONBody[t.RestartRequest | None] = None,
        key: Key = None,
    ) -> Response[t.StartedExecution]:
        """Begin a new execution that takes over what an ended one recorded (RST)."""
        asked = data or t.RestartRequest()
        row = await self._plane.restarts.restart(
            known(execution_id),
            chosen=asked.chosen,
            version=asked.version,
            payload=asked.payload,
            key=key,
            sender=sender_of(request)[0],
        )
        begun = await started(self._plane, row, asked.payload)
        where = {"location": f"/api/executions/{begun.execution_id}"}
        return answered(begun, status=201, headers=where)

    async def restart_plan(
        self, execution_id: FromPath[str], data: JSONBody[t.RestartPlanRequest | None] = None
    ) -> Response[RestartPlan]:
        """What a restart would run again and what it would take over; nothing begins (RST-1)."""
        asked = data or t.RestartPlanRequest()
        return await answered_aside(
            await self._plane.restarts.plan(known(execution_id), asked.chosen)
        )

    async def differences(
        self, execution_id: FromPath[str], other: FromPath[str]
    ) -> Response[Differences]:
        """Where two executions parted, task by task."""
        return await answered_aside(
            await self._questions.differences(known(execution_id), known(other))
        )
