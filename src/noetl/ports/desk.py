"""What a worker asks of the server: to take its reports and to start children."""

from typing import Any, NamedTuple, Protocol

from noetl.control.dispatch import Command
from noetl.messages.events import Event
from noetl.messages.requests import Report
from noetl.ports.commit import Commit


class Taken(NamedTuple):
    """The answer to a report: what was recorded (nothing: it was refused), and when it is safe."""

    events: list[Event]
    committed: Commit


class Desk(Protocol):
    """The server as a worker sees it."""

    @property
    def immediate(self) -> bool:
        """Whether `take` answers with what was recorded; else that comes with the commit."""

    def hand_back(self, command: Command) -> None:
        """Give up a part that waits long; its report is committed (TASK-8)."""

    def take(self, execution_id: str, report: Report) -> Taken:
        """Decide on a report; the answer comes at once, the commit later."""

    async def child(
        self,
        *,
        execution_id: str,
        parent_execution_id: str,
        parent_id: str,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        """Run a playbook as a child (TOOL-1): `{execution_id, status, ctx, result, error}`."""
