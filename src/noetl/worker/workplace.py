"""What the worker lends to a tool for one call."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from noetl.control.dispatch import RunLeg
from noetl.errors import CredentialMissing
from noetl.playbook.plan import Plan
from noetl.ports.desk import Desk
from noetl.ports.event_log import Printed, PrintedLine
from noetl.ports.result_store import ResultStore
from noetl.tools.tool import Call


class Surround(msgspec.Struct, frozen=True, kw_only=True):
    """What the process around a worker gives it."""

    printed: Printed
    unlock: Callable[[Plan, str], Any]
    """Credential by name, for a plan's keychain; raises CredentialMissing."""
    broken: Callable[[RunLeg, BaseException], None]
    """A leg ended by an exception that is our own fault: say so, keep serving the others."""
    far_ahead: Callable[[], bool]
    """Whether too many decisions wait for their commit."""


class LegWorkplace:
    """See `tools.tool.Workplace`."""

    def __init__(self, surround: Surround, results: ResultStore, desk: Desk, plan: Plan) -> None:
        self._surround = surround
        self._results = results
        self.desk = desk
        self._plan = plan

    @property
    def results(self) -> ResultStore:
        return self._results

    def log(self, call: Call[Any], stream: str, text: str) -> None:
        self._surround.printed.keep(
            PrintedLine(
                execution_id=call.execution_id,
                step=call.step,
                task_run_id=call.task_run_id,
                attempt=call.attempt,
                at=int(time.time() * 1000),
                stream=stream,
                text=text,
            )
        )

    async def unlock(self, name: str) -> dict[str, Any]:
        found = self._surround.unlock(self._plan, name)
        if found is None:
            raise CredentialMissing(f"no credential '{name}' in the keychain")
        fields: dict[str, Any] = found
        return fields

    async def child(
        self,
        call: Call[Any],
        *,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        return await self.desk.child(
            parent_execution_id=call.execution_id,
            parent_id=call.task_run_id,
            execution_id=f"{call.execution_id}-{call.task_run_id}-{call.attempt}",
            folder=call.folder,
            path=path,
            version=version,
            payload=payload,
            wait=wait,
        )
