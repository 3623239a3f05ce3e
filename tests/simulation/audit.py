"""
What must hold after every committed decision, and of every effect: the promises, as facts.

It sees the log as the database does: each decision when it is written, whoever wrote it.
"""

import hashlib
from collections import defaultdict
from functools import lru_cache
from typing import Any

from tests.simulation.loop import SimulatedLoop

from noetl.adapters.memory.event_log import MemoryEventLog
from noetl.adapters.memory.tables import MemoryTables
from noetl.control.dispatch import Command
from noetl.control.evolve import evolve
from noetl.control.execution import Execution
from noetl.messages import events as e
from noetl.messages.codec import decode, decode_events
from noetl.playbook.load import Loaded, load
from noetl.playbook.neighbours import ALONE
from noetl.playbook.plan import Plan
from noetl.ports.event_log import Decision
from noetl.ports.link import Answer
from noetl.server.active import ActiveExecution
from noetl.server.library import plan_from
from noetl.server.verify import Differs, compare_folds
from noetl.tools.tool import ToolCall

LINES = 60
"""Of the trace, at the end of a failure."""


class Violation(AssertionError):
    """A promise was broken."""

    trace = ""
    """The last lines of what happened."""


planned = lru_cache(maxsize=256)(plan_from)
"""Each text is read once, whichever node asks."""
_read = lru_cache(maxsize=256)(load)


def read_once(source: str, *given: Any, **named: Any) -> Loaded:
    """`load`; a text without errors is the same whoever reads it, unless beside others."""
    found = _read(source)
    alone = "neighbours" not in named or named["neighbours"] is ALONE
    return found if alone and found.playbook is not None else load(source, *given, **named)


class Story:
    """What the log of one execution has said so far."""

    def __init__(self, execution_id: str, plan: Plan) -> None:
        self.plan = plan
        self.state = Execution(execution_id=execution_id)
        self.folds = True
        """Whether `state` is kept: a restart begins with what lies outside the log."""
        self.ended: str | None = None
        self.ordered: set[str] = set()
        """Step runs of which a part was ordered, durably."""
        self.outcomes: dict[tuple[str, int], int] = {}
        """Task run and attempt → the epoch in which the outcome was recorded."""
        self.owners: dict[tuple[str, int, int], str] = {}
        self.granted: dict[tuple[str, int, int], str] = {}
        """Step run, part and epoch → the worker that got the lease."""
        self.epochs: dict[tuple[str, int], int] = {}
        self.running: dict[str, str] = {}
        """Step runs that have not ended → their step."""


class Auditor:
    """Reads along; raises Violation."""

    def __init__(self, loop: SimulatedLoop, tables: MemoryTables) -> None:
        self._loop = loop
        self._tables = tables
        self.stories: dict[str, Story] = {}
        self.under: dict[str, set[str]] = defaultdict(set)
        """Playbook → its executions that run."""
        self.trace: list[str] = []
        self.digest = hashlib.sha1(usedforsecurity=False)
        self.effects = self.decisions = 0
        self.zombies = 0
        """Effects of workers that had lost their lease."""
        self.acted: dict[str, float] = {}
        """Execution → when something of it was decided or called last."""
        self.broken: Violation | None = None

    def say(self, what: str) -> None:
        line = f"{self._loop.now:10.4f} {what}"
        self.trace.append(line)
        self.digest.update(line.encode())

    def check(self, holds: bool, what: str) -> None:
        """The world stops at the first; servers would take it for a fault of theirs."""
        if not holds and self.broken is None:
            self.broken = Violation(what)
            self.say(f"VIOLATION {what}")
            self._loop.stop()

    # ── decisions ────────────────────────────────────────────────────────────────────────────

    def committed(self, me: str, decision: Decision) -> None:
        self.decisions += 1
        self.acted[decision.execution_id] = self._loop.now
        events = decode_events(decision.events)
        name = decision.execution_id
        names = ",".join(type(event).__name__ for event in events)
        self.say(f"{me} commits {name[-6:]} {decision.expected + 1}-{decision.last} {names}")
        story = self.stories.get(name)
        if story is None:
            text, _ = self._tables.playbooks[events[0].digest]  # type: ignore[attr-defined]
            story = self.stories[name] = Story(name, planned(text))
            above = self.stories.get(getattr(events[0], "parent_execution_id", None) or "")
            self.check(
                above is None or above.ended != "cancelled",
                f"{name} began after its parent was cancelled (TOOL-1)",
            )
        self.check(story.state.seq == decision.expected or not story.folds, f"{name}: a gap")
        self.check(decision.last == decision.expected + len(events), f"{name}: wrong seq")
        self.check(story.ended is None, f"{name}: {names} after its end ({story.ended})")
        story.state.now = decision.at
        for event in events:
            self._read(name, story, event)
            if isinstance(event, e.ExecutionRestored):
                story.folds = False
            if story.folds:
                evolve(story.state, event, story.plan)
        story.state.bodies.clear()

    def _read(self, name: str, story: Story, event: e.Event) -> None:
        match event:
            case e.WorkflowStarted():
                self._begin(name, story)
            case e.WorkflowFinished():
                self.check(story.ended is None, f"{name}: a second end")
                story.ended = event.status
                self.under[story.plan.path].discard(name)
            case e.TokenEnqueued():
                story.ordered.add(event.step_run_id.partition(".")[0])
            case e.TokenClaimed():
                part = (event.step_run_id, event.part)
                owner = story.owners.setdefault((*part, event.epoch), event.worker)
                self.check(owner == event.worker, f"{name}: two owners of {part} at {event.epoch}")
                self.check(event.epoch >= story.epochs.get(part, 0), f"{name}: an older epoch")
                story.epochs[part] = event.epoch
            case e.TaskDone():
                key = (event.task_run_id, event.attempt)
                self.check(key not in story.outcomes, f"{name}: {key} accepted twice")
                story.outcomes[key] = max(
                    (epoch for (run, _), epoch in story.epochs.items() if run == event.step_run_id),
                    default=0,
                )
            case e.StepScheduled():
                self._enter(name, story, event)
            case e.StepDone() | e.StepFailed() | e.LoopDone(parent_id=None):
                story.running.pop(event.step_run_id, None)
            case _:
                pass

    def _begin(self, name: str, story: Story) -> None:
        limit, path = story.plan.limit, story.plan.path
        self.under[path].add(name)
        if limit is not None and limit.spec.at_once is not None:
            running = len(self.under[path])
            self.check(
                running <= limit.spec.at_once,
                f"{path}: {running} run, at_once is {limit.spec.at_once}",
            )

    def _enter(self, name: str, story: Story, event: e.StepScheduled) -> None:
        story.running[event.step_run_id] = event.step
        limit = story.plan.steps[event.step].limit
        if limit is not None and limit.spec.at_once is not None:
            running = sum(
                step == event.step
                for other in self.stories.values()
                if other.plan.path == story.plan.path
                for step in other.running.values()
            )
            most = limit.spec.at_once
            self.check(running <= most, f"{name}: {running} runs of {event.step}, at_once {most}")

    # ── leases ───────────────────────────────────────────────────────────────────────────────

    def granted(self, server: str, worker: str, answer: Answer) -> None:
        """A stale owner grants nothing (T22), and no lease is granted twice (EVT-3)."""
        for grant in answer.grants:
            command = decode(bytes(grant.command), Command)
            part = (command.step_run_id, command.part)
            said = f"{command.execution_id}: {server} grants {part} in epoch {command.epoch}"
            story = self.stories.get(command.execution_id)
            known = 0 if story is None else story.epochs.get(part, 0)
            self.check(known < command.epoch, f"{said}, the log stands at {known}")
            if story is not None:
                owner = story.granted.setdefault((*part, command.epoch), worker)
                self.check(owner == worker, f"{said} to {worker}, and to {owner} before")

    # ── effects ──────────────────────────────────────────────────────────────────────────────

    def effect(self, call: ToolCall[Any], command: Command, worker: str) -> None:
        self.effects += 1
        self.acted[call.execution_id] = self._loop.now
        name, key = call.execution_id, (call.task_run_id, call.attempt)
        self.say(f"{worker} calls {name[-6:]} {key[0]}/{key[1]} epoch {command.epoch}")
        story = self.stories.get(name)
        ordered = story is not None and call.task_run_id.partition(".")[0] in story.ordered
        self.check(ordered, f"{name}: {key} ran before its order was durable (promise 8)")
        recorded = None if story is None else story.outcomes.get(key)
        if recorded is not None:
            self.zombies += command.epoch < recorded
            self.check(
                command.epoch < recorded,
                f"{name}: {key} is recorded (epoch {recorded}) and ran again (promise 4)",
            )

    # ── states ───────────────────────────────────────────────────────────────────────────────

    def compare(self, server: str, active: ActiveExecution) -> None:
        """What a server believes, where it has nothing under way, is what the log comes to."""
        story = self.stories.get(active.execution_id)
        live = active.execution
        if story is None or not story.folds or active.inputs or active.uncommitted:
            return
        if live.seq != story.state.seq:
            return  # another server has gone on: it will be told
        try:
            compare_folds(story.state, live, f"server {server}")
        except Differs as difference:
            self.check(False, f"{active.execution_id}: {difference}")

    def last_lines(self) -> str:
        return "\n".join(self.trace[-LINES:])


class AuditedLog(MemoryEventLog):
    """The table of decisions, with the auditor beside it."""

    def __init__(self, tables: MemoryTables, me: str, auditor: Auditor) -> None:
        super().__init__(tables, me)
        self._auditor = auditor

    def _write(self, decision: Decision) -> None:
        super()._write(decision)
        self._auditor.committed(self._me, decision)
