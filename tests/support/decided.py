"""A small execution that is decided by hand: no server, no worker, no time but the given one."""

from typing import Any

import msgspec
from tests.support.scenario import scenario
from tests.support.steps import Tree

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.dispatch import Command, command
from noetl.control.execution import Execution, Part, Run
from noetl.messages import events as e
from noetl.messages import requests as r


class ByHand:
    """One execution whose inputs the test makes up."""

    def __init__(self, *steps: Tree, rules: int = 2, at: int = 1000, **roots: Any) -> None:
        self.plan = scenario(*steps, **roots).plan
        self.execution = Execution(execution_id="x1")
        self.at = at
        start = r.StartExecution(execution_id="x1", path="p", digest=self.plan.digest)
        self.give(msgspec.structs.replace(start, rules=rules))

    def give(self, given: r.Input, **more: Any) -> list[e.Event]:
        events = decide(self.plan, self.execution, given, at=self.at, **more)
        assert not isinstance(events, Needs)
        return events

    @property
    def run(self) -> Run:
        (run,) = self.execution.runs.values()
        return run

    @property
    def part(self) -> Part:
        return self.run.parts[0]

    def command(self) -> Command:
        part = self.part
        return command(self.plan, self.execution, self.run, part, part.epoch + 1, at=self.at)

    def claim(self, worker: str = "w1") -> None:
        epoch = self.part.epoch + 1
        self.give(
            r.PartClaimed(step_run_id=self.run.step_run_id, part=0, epoch=epoch, worker=worker)
        )

    def lose(self, **how: Any) -> list[e.Event]:
        lost = r.LeaseLost(step_run_id=self.run.step_run_id, part=0, epoch=self.part.epoch, **how)
        return self.give(lost)

    def report(self, *events: e.Event, **more: Any) -> list[e.Event]:
        part = self.part
        return self.give(self.made(*events, part=part), **more)

    def made(self, *events: e.Event, part: Part) -> r.Report:
        return r.Report(
            step_run_id=self.run.step_run_id,
            part=0,
            epoch=part.epoch,
            worker=part.worker or "",
            events=list(events),
            after=None,
        )

    def done(self, task: str = "ask", result: Any = None) -> e.TaskDone:
        """A task that was recorded while its pipeline goes on."""
        return e.TaskDone(
            **self.run.ids,
            task_run_id=f"{self.run.step_run_id.partition('.')[0]}.1",
            task=task,
            outcome={"status": "ok", "result": result, "error": None},
        )
