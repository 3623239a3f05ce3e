"""
Server and worker of one process: the protocol between the planes without a wire.

To the server it is the runner of parts, to the worker the session with its server. What is said is
what `ports.link` says; nothing is encoded, and a report is decided when `report` returns.
"""

from typing import Any

from noetl.control.dispatch import Command
from noetl.control.execution import Execution, Part, Run
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.outcome import CacheHit
from noetl.node.children import Children
from noetl.playbook.plan import Plan
from noetl.ports.commit import Commit
from noetl.ports.session import ChildAsked, Taken
from noetl.server.active import ActiveExecution
from noetl.server.server import Server, take_turn
from noetl.server.timers import moved_by_pauses
from noetl.worker.through import run_through
from noetl.worker.worker import Worker, error_of


class DirectSession:
    """Runner for the server, Session for the worker."""

    worker: Worker

    def __init__(self, server: Server, children: Children, name: str) -> None:
        self.name = name
        self._server = server
        self._children = children

    # ── runner of the server ─────────────────────────────────────────────────────────────────

    def begin(self, command: Command, plan: Plan, folder: str | None) -> None:
        active = self._server.find(command.execution_id)
        if active is None or not active.careful or not plan.steps[command.step].pipeline.effect:
            self.worker.begin(command, plan, folder)
            return
        # A process died with this execution before: if this one does too, the log knows of what.
        claim = r.PartClaimed(
            step_run_id=command.step_run_id,
            part=command.part,
            epoch=command.epoch,
            worker=self.name,
        )

        def claimed(commit: Commit) -> None:
            if commit.exception() is None:
                self.worker.begin(command, plan, folder)

        self._server.receive(active, claim).committed.add_done_callback(claimed)

    def run_through(self, plan: Plan, execution: Execution, run: Run) -> list[e.Event] | None:
        return run_through(plan, execution, run, self.name)

    def keeps(self, active: ActiveExecution, run: Run, part: Part) -> bool:
        """Nothing outlives the process: what it ran before is run by it anew."""
        del active, run, part
        return False

    async def cancel(self, execution_id: str, step_run_id: str | None = None) -> None:
        await self.worker.cancel(execution_id, step_run_id)

    async def forget(self, scratch: str) -> None:
        await self.worker.forget(scratch)

    # ── session of the worker ────────────────────────────────────────────────────────────────

    def report(self, execution_id: str, report: r.Report) -> Taken:
        return self._server.take(execution_id, report)

    def report_turn(self, execution_id: str, reports: list[r.Report]) -> list[Taken]:
        return take_turn(self._server, execution_id, reports)

    def hand_back(self, command: Command) -> None:
        """A process that is its own worker waits itself."""

    def far_ahead(self) -> bool:
        return not self._server.runs_ahead

    def broken(self, command: Command, fault: BaseException) -> None:
        active = self._server.find(command.execution_id)
        if active is not None:
            error = error_of(fault)
            self._server.handout.fail_part(active, command, command.part, command.epoch, error)

    async def kept(self, command: Command, task: str, key: str) -> CacheHit | None:
        active = self._server.find(command.execution_id)
        return None if active is None else await self._server.aside.cache.find(active, task, key)

    async def moved(self, command: Command, task_run_id: str) -> int:
        active = self._server.find(command.execution_id)
        if active is None:
            return 0
        return await moved_by_pauses(active, command.step_run_id, task_run_id) or 0

    async def child(self, command: Command, asked: ChildAsked, *, wait: bool) -> dict[str, Any]:
        del command
        return await self._children.run(asked, wait=wait, stopping=lambda: self.worker.stopping)
