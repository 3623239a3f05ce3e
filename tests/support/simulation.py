"""
The control plane and its workers without a clock, a disk or an event loop.

Workers are the real pipelines, driven with answers made by chance; reports are cut anywhere,
repeated, and sent by workers that were given up; processes die and are rebuilt from the log.
After every decision the state is compared with what the log comes to.
"""

from collections import Counter
from collections.abc import Generator, Iterator
from random import Random
from typing import Any

from msgspec.structs import replace
from tests.support.petri import audit_joins

from noetl.control.decide import decide
from noetl.control.deciding import Needs
from noetl.control.dispatch import Command, command, open_parts
from noetl.control.evolve import evolve
from noetl.control.execution import Execution, Part, Run
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.codec import decode_events, encode_events
from noetl.messages.outcome import Outcome, failed, ok
from noetl.pipeline.asks import Breathe, CallTool, Pause, Settle
from noetl.pipeline.drive import End, Surroundings, run_pipeline
from noetl.pipeline.frame import Frame, Iteration
from noetl.playbook.plan import Plan
from noetl.server.replay import frozen, thawed

Key = tuple[str, int]


class Refused(Exception):
    """The server took nothing: this worker has lost its part."""


class World:
    """One execution, its log, and whoever works on it."""

    def __init__(self, plan: Plan, random: Random, *, faults: bool) -> None:
        self.plan = plan
        self.random = random
        self.faults = faults
        self.state = Execution(execution_id="x1")
        self.shadow = Execution(execution_id="x1")
        self.log: list[e.Event] = []
        self.runner: dict[Key, Hand] = {}
        self.zombies: list[Hand] = []
        self.sent: list[r.Report] = []
        self.term = 1
        self.now = 1_700_000_000_000
        self.stops = True
        """Whether it may be cancelled, or run out of time."""
        self.restart: dict[str, Any] | None = None
        """What the start of a restart carries (RST)."""

    # ── deciding, with every invariant that can be seen at once ──────────────────────────────

    def decide(self, given: r.Input) -> list[e.Event]:
        self.now += self.random.randrange(1000)
        events = self.decided(given)
        if not events:
            return []
        self.log += events
        written = decode_events(encode_events(events))
        assert written == events, "an event is what it was after it was written"
        self.shadow.now = self.now
        for event in written:
            evolve(self.shadow, event, self.plan)
        if self.random.random() < 0.2:
            self.shadow = thawed(frozen(self.shadow))
        self.check()
        self.hand_out()
        return events

    def decided(self, given: r.Input) -> list[e.Event]:
        events = decide(self.plan, self.state, given, at=self.now)
        assert not isinstance(events, Needs), "nothing here is large"
        return events

    def check(self) -> None:
        self.state.bodies.clear()
        self.shadow.bodies.clear()
        assert self.shadow == self.state, "the fold of the log is the live state"
        assert self.state.seq == len(self.log)
        held = self.state.status == "paused"
        assert self.state.finished == (self.state.quiet and not held), "finished means quiet"
        patched: dict[str, Any] = {}
        for event in self.log:
            if type(event) is e.CtxPatched:
                patched.update(event.patch)
            elif type(event) is e.ExecutionRestored:
                patched = dict(event.ctx)
        assert self.state.ctx == patched, "ctx is the fold of its patches"

    def hand_out(self) -> None:
        """Whoever has no worker gets one; a part that is gone leaves a zombie."""
        parts = {(run.step_run_id, part.part): (run, part) for run, part in open_parts(self.state)}
        for key in list(self.runner):
            if key not in parts:
                self.zombies.append(self.runner.pop(key))
        for key, (run, part) in parts.items():
            if key not in self.runner:
                self.runner[key] = self.hand(run, part)

    def hand(self, run: Run, part: Part) -> "Hand":
        epoch = max(self.term, part.epoch + 1)
        at = self.now
        return Hand(self, command(self.plan, self.state, run, part, epoch, at=at))

    # ── time passes ──────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        digest = self.plan.digest
        start = r.StartExecution(execution_id="x1", path="p", digest=digest)
        self.decide(start if self.restart is None else replace(start, **self.restart))
        for _ in range(3000):
            if self.state.finished:
                break
            self.turn()
        assert self.state.finished, "every execution comes to an end"
        self.end()

    def turn(self) -> None:
        if self.state.status == "paused" and (not self.runner or self.random.random() < 0.2):
            self.decide(r.ResumeExecution())
            return
        if self.faults and self.random.random() < 0.2:
            self.fault()
            return
        if self.runner:
            self.pick(list(self.runner.values())).turn()

    def pick(self, choices: list[Any]) -> Any:
        return choices[self.random.randrange(len(choices))]

    def fault(self) -> None:
        self.pick(
            [self.lose, self.lose, self.crash, self.repeat, self.wake, self.pause, self.stop]
        )()

    def lose(self) -> None:
        """A lease runs out; the worker does not know yet."""
        for key, hand in list(self.runner.items()):
            run = self.state.runs[key[0]]
            part = run.parts[key[1]]
            epoch = hand.command.epoch
            if part.worker is None or part.epoch != epoch or self.random.random() < 0.5:
                continue  # nobody holds a recorded lease on it
            self.zombies.append(self.runner.pop(key))
            self.decide(r.LeaseLost(step_run_id=key[0], part=key[1], epoch=epoch))
            return

    def crash(self) -> None:
        """The server dies: what is known is what the log says."""
        self.state = thawed(frozen(self.shadow))
        self.term += 1 + max((part.epoch for _, part in open_parts(self.state)), default=0)
        self.zombies += self.runner.values()
        self.runner.clear()
        self.hand_out()

    def repeat(self) -> None:
        """A report comes again, whatever became of it."""
        if self.sent:
            before = self.state.seq
            again = self.pick(self.sent)
            assert self.decided(again) == [], "a report is taken once"
            assert self.state.seq == before

    def wake(self) -> None:
        """A worker that was given up works on, and reports to deaf ears."""
        if self.zombies:
            before = self.state.seq
            self.pick(self.zombies).turn()
            assert self.state.seq == before, "what a lost owner reports is refused"

    def pause(self) -> None:
        self.decide(r.PauseExecution())

    def stop(self) -> None:
        """Rarely: a cancel, or the end of the time; whoever runs is told by a lost lease."""
        if not self.stops or self.random.random() < 0.9:
            return
        self.decide(self.pick([r.CancelExecution(), r.TimeIsUp(seconds=1)]))

    # ── the end ──────────────────────────────────────────────────────────────────────────────

    def end(self) -> None:
        last = self.state.seq
        for report in self.sent:
            assert self.decided(report) == []
        for order in (r.CancelExecution(), r.PauseExecution(), r.TimeIsUp(seconds=1)):
            assert self.decided(order) == []
        assert self.state.seq == last, "a terminal state never changes"
        audit(self.log)
        if self.restart is None:  # else the log begins in the middle of the net
            audit_joins(self.log, self.plan)


class Hand:
    """A worker at one part: it runs pipelines and keeps what it has not reported."""

    def __init__(self, world: World, command: Command) -> None:
        self.world = world
        self.command = command
        self.plan = world.plan.steps[command.step]
        self.news: list[e.Event] = []
        self.reported = 0
        self.lost = False
        self.ids: dict[str, Any] = {"step": command.step, "step_run_id": command.step_run_id}
        self.prefix = command.step_run_id.partition(".")[0]
        self.ctx = command.ctx
        self.failed = command.iterations is not None and command.iterations.failed
        if not command.resumed:
            self.news.append(e.StepStarted(**self.ids))
        self.todo: Iterator[int | None] = iter([None] if self.plan.loop is None else self.pending())
        self.open: dict[int | None, tuple[Generator[Any, Any, End], Any, dict[str, Any]]] = {}
        self.over = False

    def pending(self) -> list[int]:
        share, loop = self.command.iterations, self.plan.loop
        assert share is not None
        assert loop is not None
        if share.failed and loop.exec == "local" and loop.on_failure == "stop":
            return sorted(share.active)
        return [index for index in range(share.first, share.last) if index not in share.ended]

    # ── one turn ─────────────────────────────────────────────────────────────────────────────

    def turn(self) -> None:
        try:
            self.work()
            if self.news and self.world.random.random() < 0.6:
                self.report(self.world.random.randint(1, len(self.news)))
        except Refused:
            self.lost = True

    def work(self) -> None:
        """Begin another pipeline, or let one go on; at the end report all."""
        if self.lost:
            raise Refused
        if self.room():
            index = next(self.todo, "none")
            if index != "none":
                self.begin(index)  # type: ignore[arg-type]
                return
        if self.open:
            self.go_on(self.world.pick(list(self.open)))
        elif not self.over and self.local:
            self.over = True
            total = self.command.iterations.total if self.command.iterations else 0
            self.news.append(e.LoopDone(**self.ids, total=total, done=0))
        elif self.news:
            self.report(len(self.news))

    @property
    def local(self) -> bool:
        return self.plan.loop is not None and self.plan.loop.exec == "local"

    def room(self) -> bool:
        loop = self.plan.loop
        if loop is None:
            return True
        if self.failed and loop.on_failure == "stop" and loop.exec == "local":
            return False
        return loop.exec == "distributed" or len(self.open) < loop.in_flight

    def begin(self, index: int | None) -> None:
        frame, scope, prefix = self.command.frame or Frame(), self.scope(), self.prefix
        settles, reduced = False, frozenset[str]()
        if index is not None:
            share, loop = self.command.iterations, self.plan.loop
            assert share is not None
            assert loop is not None
            prefix = f"{self.prefix}.{index + 1}"
            begun = share.active.get(index)
            if begun is None:
                begun = Iteration(frame=Frame())
                self.news.append(
                    e.IterationStarted(
                        **self.ids, index=index, iteration_id=prefix, part=self.command.part
                    )
                )
            frame = begun.frame
            scope["iter"] = {
                loop.iterator: share.items[index - share.offset],
                "index": index,
                **frame.iter,
            }
            scope["ctx"] = {**self.ctx, **begun.ctx}
            settles, reduced = loop.mode == "parallel", frozenset(loop.reduce)
        else:
            scope["iter"] = frame.iter
        around = Surroundings(
            plan=self.world.plan,
            step=self.command.step,
            step_run_id=self.command.step_run_id,
            worker=f"w{self.command.epoch}",
            trace_id="x1",
            now=lambda: 1.0,
            chance=lambda: 0.5,
            fit=lambda values: values,
            settles=settles,
            reduced=reduced,
            part=self.command.part,
        )
        driven = run_pipeline(self.plan.pipeline, frame, scope, prefix, around, self.news)
        self.open[index] = (driven, None, scope)
        self.go_on(index)

    def scope(self) -> dict[str, Any]:
        command = self.command
        return {
            "workload": command.workload,
            "ctx": self.ctx,
            "args": command.args,
            "iter": {},
            "execution_id": "x1",
        }

    def go_on(self, index: int | None) -> None:
        driven, answer, scope = self.open[index]
        try:
            ask = driven.send(answer)
        except StopIteration as stop:
            del self.open[index]
            self.finish(index, stop.value, scope)
        else:
            self.open[index] = (driven, self.answered(ask), scope)

    def answered(self, ask: Any) -> Any:
        match ask:
            case CallTool():
                return outcome_by(self.world.random)
            case Pause() | Breathe():
                return None
            case Settle(done=done):
                for event in self.report(len(self.news)):
                    if (
                        isinstance(event, e.TaskDone)
                        and event.task_run_id == done.task_run_id
                        and event.attempt == done.attempt
                    ):
                        return event
        raise AssertionError(f"nobody answers {ask}")

    def finish(self, index: int | None, end: End, scope: dict[str, Any]) -> None:
        if index is None:
            if end.error is not None:
                self.news.append(e.StepFailed(**self.ids, error=end.error))
            else:
                self.news.append(e.StepDone(**self.ids, result=end.result))
            return
        if self.plan.loop is not None and self.plan.loop.mode == "sequential":
            self.ctx = scope["ctx"]
        ids = {**self.ids, "index": index, "iteration_id": f"{self.prefix}.{index + 1}"}
        ids["part"] = self.command.part
        if end.error is not None:
            self.failed = True
            self.news.append(e.IterationFailed(**ids, error=end.error))
        else:
            self.news.append(e.IterationDone(**ids, result=end.result))

    def report(self, count: int) -> list[e.Event]:
        """Send the first `count` events; sometimes the same report comes twice at once."""
        events, self.news[:count] = self.news[:count], []
        report = r.Report(
            step_run_id=self.command.step_run_id,
            part=self.command.part,
            epoch=self.command.epoch,
            worker=f"w{self.command.epoch}",
            events=events,
            after=self.reported,
        )
        self.reported += count
        # Epochs before the present owner's are refused at its door (`Server.take`).
        taken = self.world.decide(report) if report.epoch >= self.world.term else []
        if not taken:
            raise Refused
        self.world.sent.append(report)
        if self.world.random.random() < 0.1:
            self.world.repeat()
        return taken


def outcome_by(random: Random) -> Outcome:
    if random.random() < 0.25:
        return failed("http", "no luck", retryable=True)
    return ok(random.choice([0, 1, 2, 2]))


def audit(log: list[e.Event]) -> None:
    """What must be true of every whole log (the oracle of fault tests)."""
    names = [type(event) for event in log]
    assert names[-2:] == [e.WorkflowFinished, e.PlaybookProcessed]
    assert names.count(e.WorkflowFinished) == 1
    made, gone = [], []
    runs, ends = [], []
    outcomes = []
    for event in log:
        match event:
            case e.TokenCreated():
                made.append(event.token_id)
            case e.TokenDropped() | e.TokenAbsorbed():
                gone.append(event.token_id)
            case e.StepScheduled():
                gone += event.tokens
                runs.append(event.step_run_id)
            case e.StepRestored():
                runs.append(event.step_run_id)
            case e.TaskDone():
                outcomes.append((event.task_run_id, event.attempt))
            case e.StepDone() | e.StepFailed() | e.LoopDone(parent_id=None):
                ends.append(event.step_run_id)
    assert Counter(made) == Counter(gone), "a token is consumed, dropped or absorbed exactly once"
    assert len(set(made)) == len(made)
    assert Counter(runs) == Counter(ends), "a step run ends in exactly one terminal event"
    assert len(set(outcomes)) == len(outcomes), "one accepted outcome per task run and attempt"
