"""Does an execution wait for people? Its row says so: `noetl waiting` reads no others (WAIT-7)."""

from noetl.control.approvals import approvals
from noetl.control.execution import Execution
from noetl.messages import events as e

ENDS = (e.StepDone, e.StepFailed, e.LoopDone)


class AskedPeople:
    """The open questions of one execution; the state can always make them again."""

    def __init__(self, execution: Execution) -> None:
        self._open: dict[str, set[str]] = {}
        """Step run → the task runs of it that ask."""
        for wait, _ in approvals(execution):
            self._open.setdefault(wait.step_run_id, set()).add(wait.task_run_id)

    def __bool__(self) -> bool:
        return bool(self._open)

    def follow(self, events: list[e.Event]) -> bool:
        """What a decision began and ceased to ask; whether the first was asked, or the last."""
        before = bool(self._open)
        for event in events:
            if isinstance(event, e.WaitStarted):
                if any(arm["by"] == "approval" for arm in event.awaits):
                    self._open.setdefault(event.step_run_id, set()).add(event.task_run_id)
            elif isinstance(event, e.WaitDone):
                self._close(event.step_run_id, event.task_run_id)
            elif isinstance(event, ENDS) and getattr(event, "parent_id", None) is None:
                self._open.pop(event.step_run_id, None)
        return bool(self._open) != before

    def _close(self, step_run_id: str, task_run_id: str) -> None:
        asking = self._open.get(step_run_id, set())
        asking.discard(task_run_id)
        if not asking:
            self._open.pop(step_run_id, None)
