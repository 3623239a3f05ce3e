"""
A log, read by the net: every event is either a fact from outside or a firing, and each is judged.

Facts from outside are outcomes of tools, signals, passing times and orders. The order of the log
says what came first. All else the net computes itself, and compares: rules, directives, writes,
arguments, rounds, verdicts, ends. After each decision nothing may be left that could have fired.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from tests.model.expressions import TemplateFault
from tests.model.loops import Loop, after_nested, may_write, see_nested, write
from tests.model.net import Net, Run, Token, must
from tests.model.pipelines import Differs, Directive, Pipeline, Tree, fault, same, shape
from tests.model.waiting import Mailbox

from noetl.messages import events as e

STOPPED = ("cancelled", "worker_lost")
"""What a run fails with that was told to end."""


class Reader:
    """The net beside the log of one execution."""

    def __init__(self, document: Tree, ctx: Tree | None = None) -> None:
        self.net = Net(document, ctx or {})
        self.mailbox = Mailbox()
        self.logged_ctx: Tree = dict(ctx or {})
        self.changed: set[str] = set()
        self.finished: str | None = None
        self.due_tokens: list[tuple[str | None, Token]] = []
        self.due_router: dict[str, tuple[str, list[int], Any]] = {}
        self.pipelines: dict[str, Pipeline] = {}
        """By prefix: the run's number, or an iteration's id."""
        self.iterations: dict[str, tuple[Loop, int]] = {}
        self.silent: set[str] = set()
        """Runs that ended after a stop: no arc of theirs fires."""
        self.was_stopped = False
        self.dropped: list[str] = []
        self.absorbed: list[str] = []
        self.seen: set[str] = set()

    def read(self, rows: list[list[e.Event]]) -> None:
        for row in rows:
            for event in row:
                self.judge(event)
            self.settle()
        must(self.finished is not None, "the log has no end")

    def judge(self, event: e.Event) -> None:
        judge = JUDGES.get(type(event))
        if judge is None:
            return
        try:
            judge(self, event)
        except Differs as found:
            raise Differs(f"{found}\n  at {msgspec.json.encode(event).decode()[:600]}") from None

    def settle(self) -> None:
        """What must be true after a decision."""
        same("ctx", self.net.ctx, self.logged_ctx)
        must(not self.due_tokens, f"no token was made for {self.due_tokens}")
        must(not self.due_router, f"no router was asked: {self.due_router}")
        for name, token in self.net.tokens.items():
            if self.changed & self.net.asks(token.step):
                token.read |= self.changed
            limited = "limit" in self.net.steps[token.step].get("spec", {})
            if self.net.late(name):
                raise Differs(f"token {name} at {token.step} was not absorbed")
            if not limited and self.net.enabled(name):
                raise Differs(f"token {name} at {token.step} may run, and does not")
        self.changed = set()

    # ── tokens ──

    def started(self, event: e.WorkflowStarted) -> None:
        same("the entry step", self.net.entry, event.step)
        self.due_tokens = [(None, Token(event.step, {}, None, {}))]

    def created(self, event: e.TokenCreated) -> None:
        if event.step == self.net.final and event.parent_step_run_id is None:
            self.final_begins(event)
            return
        must(bool(self.due_tokens), "a token that no arc made")
        parent, token = self.due_tokens.pop(0)
        same("the run that made it", parent, event.parent_step_run_id)
        same("the step", token.step, event.step)
        same("its args", token.args, event.args)
        same("its rounds", token.rounds, event.rounds)
        self.net.place(event.token_id, token)

    def final_begins(self, event: e.TokenCreated) -> None:
        net = self.net
        must(net.quiet and not net.final_ran, "the final step begins before all is over")
        must(not net.tokens, "tokens are left when the final step begins")
        must(net.stopped != "cancel", "a final step after a cancel")
        same("the status it is told", net.status, event.args["status"])
        net.final_ran = True
        net.stopped = None
        net.place(event.token_id, Token(event.step, event.args, None, {}))

    def parked(self, event: e.TokenParked) -> None:
        self.seen.add(f"parked {event.reason}")
        group = self.net.group(event.token_id)
        if event.reason == "join":
            must(not self.net.complete(group), "it waits for a join that is complete")
        elif event.reason == "refused":
            allowed, _ = self.net.verdict(group)
            must(not allowed, "it is parked, and admission lets it pass")
        elif event.reason == "limit":
            must("limit" in self.net.steps[event.step].get("spec", {}), "there is no limit")
            must(self.net.verdict(group)[0], "it waits for its place, and admission refuses it")
            for name in group:
                self.net.tokens[name].admitted = True

    def evaluated(self, event: e.AdmitEvaluated) -> None:
        group = self.net.group(event.token_id)
        must(self.net.complete(group), "admission comes after the join")
        try:
            allowed, rule = self.net.verdict(group)
        except TemplateFault:
            same("the error of a guard", "template", (event.error or {"kind": None})["kind"])
            self.seen.add("admission fault")
            self.net.unhandled(event.step, fault("template"))
            self.net.tokens[event.token_id].broken = True
            return
        same("the verdict", (allowed, rule), (event.allow, event.rule))
        for name in group:
            self.net.tokens[name].verdict = allowed
            self.net.tokens[name].read = set()

    def absorb(self, event: e.TokenAbsorbed) -> None:
        must(self.net.late(event.token_id), "it is absorbed, and its round has not fired")
        self.absorbed.append(self.net.tokens.pop(event.token_id).step)
        self.seen.add("absorbed")

    def drop(self, event: e.TokenDropped) -> None:
        net, name = self.net, event.token_id
        token = net.tokens[name]
        if event.error is not None:
            same("the error", "limit", event.error["kind"])
            must(net.begun >= net.step_runs, "there were not that many step runs")
            net.unhandled(event.step, fault("limit"))
            self.seen.add("dropped limit")
        elif event.reason == "limit":
            must(net.begun >= net.step_runs, "there were not that many step runs")
        elif not net.stopped and not token.broken:
            self.may_drop(name)
        del net.tokens[name]
        self.dropped.append(token.step)

    def may_drop(self, name: str) -> None:
        net = self.net
        group = net.group(name)
        admit = net.admit(net.tokens[name].step) or {}
        if admit.get("on_deny") == "drop" and net.complete(group):
            allowed, _ = net.verdict(group)
            must(not allowed, "it is dropped, and admission lets it pass")
            self.seen.add("dropped at once")
            return
        must(net.quiet, "it is dropped while something may run")
        self.seen.add("dropped at the end")

    # ── step runs ──

    def scheduled(self, event: e.StepScheduled) -> None:
        net = self.net
        first = event.tokens[0]
        must(first in net.tokens, "its token is not there")
        group = net.group(first)
        same("its tokens", group, event.tokens)
        must(net.complete(group), "its join is not complete")
        must(net.enabled(first) or not net.stopped, "nothing new begins")
        must(net.tokens[first].admitted or net.verdict(group)[0], "admission refuses it")
        must(net.begun < net.step_runs or event.step == net.final, "there were enough step runs")
        must(not net.paused, "the execution is paused")
        self.within_limit(event.step)
        args = net.args_of(group)
        if event.args is not None:
            same("merged args", args, event.args)
        run = net.fire(event.step_run_id, group)
        if event.rounds is not None:
            same("rounds", run.rounds, event.rounds)
        if run.pipeline is not None:
            self.pipelines[event.step_run_id.partition(".")[0]] = run.pipeline

    def within_limit(self, step: str) -> None:
        limit = self.net.steps[step].get("spec", {}).get("limit")
        if limit is not None:
            running = [run for run in self.net.runs.values() if run.step == step]
            must(len(running) < limit["at_once"], f"{len(running)} of {step} run already")
            self.seen.add("limit")

    def loop_started(self, event: e.LoopStarted) -> None:
        loop = self.loop_of(event)
        must(loop.error is None, "the collection is none")
        same("the collection", loop.items, event.items)

    def enqueued(self, event: e.TokenEnqueued) -> None:
        must(event.step_run_id in self.net.runs, "a run that has ended is offered")
        loop = self.net.runs[event.step_run_id].loop
        if loop is not None and event.last:
            stopped = bool(loop.failed) and not loop.goes_on
            known = loop.offered | set(loop.open) | set(loop.ended)
            more = set(range(event.first, event.last)) - known
            must(not stopped or not more, "iterations are offered after one failed")
            loop.offered |= set(range(event.first, event.last))

    def loop_of(self, event: Any) -> Loop:
        """The loop of a step, or of the task run that an event names."""
        if event.parent_id is None:
            loop = self.net.runs[event.step_run_id].loop
        else:
            loop = self.nested(self.at(event.parent_id))
        assert loop is not None
        return loop

    def nested(self, pipeline: Pipeline) -> Loop:
        if pipeline.inner is None:
            task = pipeline.task
            pipeline.inner = Loop(task, task["tool"], pipeline.scope(), pipeline)
        return pipeline.inner

    def at(self, task_run_id: str) -> Pipeline:
        prefix, _, arrival = task_run_id.rpartition(".")
        must(prefix in self.pipelines, f"nothing runs at {prefix}")
        pipeline = self.pipelines[prefix]
        must(not pipeline.ended, f"{prefix} has ended")
        same("the task run", pipeline.arrivals, int(arrival))
        return pipeline

    def iteration_started(self, event: e.IterationStarted) -> None:
        loop = self.loop_of(event)
        pipeline = loop.begin(event.index, self.net.task_runs)
        self.pipelines[event.iteration_id] = pipeline
        self.iterations[event.iteration_id] = (loop, event.index)

    def iteration_ended(self, event: e.IterationDone | e.IterationFailed) -> None:
        loop, index = self.iterations[event.iteration_id]
        pipeline = loop.open[index]
        if isinstance(event, e.IterationFailed):
            self.same_end(pipeline, event.error, None)
        else:
            self.same_end(pipeline, None, event.result)
        loop.finish(index)

    def same_end(self, pipeline: Pipeline, error: Tree | None, result: Any) -> None:
        if error is not None and error["kind"] in STOPPED and self.net.stopped:
            pipeline.ended, pipeline.error = True, error
            return
        must(pipeline.ended, "its pipeline has not ended")
        same("the error", shape(pipeline.error), shape(error))
        if error is None:
            same("the result", pipeline.result, result)

    # ── tasks ──

    def task_done(self, event: e.TaskDone) -> None:
        pipeline = self.at(event.task_run_id)
        same("the task", pipeline.label, event.task)
        same("the attempt", pipeline.attempt, event.attempt)
        self.seen.add(f"kind {pipeline.task['kind']}")
        if pipeline.task["kind"] == "iterator":
            see_nested(pipeline, self.nested(pipeline))
        outcome = self.outcome_of(pipeline, event)
        directive = pipeline.decide(outcome)
        written = self.writes(pipeline, directive)
        if written is None:
            directive = Directive("fail", error=fault("ctx_conflict"), rule=event.rule)
            directive.set_iter = {}
            self.seen.add("conflict")
        self.same_directive(directive, event, conflict=written is None)
        self.seen.add(f"{directive.do} after {outcome['status']}")
        pipeline.follow(directive, outcome)

    def outcome_of(self, pipeline: Pipeline, event: e.TaskDone) -> Tree:
        given = {key: event.outcome.get(key) for key in ("status", "result", "error")}
        if given["error"] is not None and given["error"]["kind"] in STOPPED and self.net.stopped:
            return given
        outcome = pipeline.outcome(given)
        same("the status", outcome["status"], given["status"])
        same("the result", outcome["result"], given["result"])
        same("the error", shape(outcome["error"]), shape(given["error"]))
        return outcome

    def writes(self, pipeline: Pipeline, directive: Directive) -> Tree | None:
        """Write to ctx what a task wrote; None where that is refused."""
        writes: Tree = {}
        if pipeline.inner is not None and pipeline.inner.failure is None:
            writes |= after_nested(pipeline, pipeline.inner)
        writes |= directive.set_ctx
        if may_write(pipeline, writes, self.net.shared, self.net.ctx) is not None:
            return None
        self.changed |= set(write(pipeline, writes, self.net.shared, self.net.ctx))
        return writes

    def same_directive(self, directive: Directive, event: e.TaskDone, *, conflict: bool) -> None:
        same("the directive", directive.do, event.do)
        same("the delay", directive.delay, event.delay)
        if directive.error is not None:
            same(
                "the error",
                shape(directive.error),
                shape(event.error or event.outcome["error"] or fault("policy")),
            )
        if conflict:
            return
        same("the rule", directive.rule, event.rule)
        same("set_iter", directive.set_iter, event.set_iter)
        if directive.set_prev is not ...:
            same("set_prev", directive.set_prev, event.set_prev)

    def patched(self, event: e.CtxPatched) -> None:
        self.logged_ctx.update(event.patch)

    # ── waits ──

    def wait_started(self, event: e.WaitStarted) -> None:
        pipeline = self.at(event.task_run_id)
        same("what waits", "wait", pipeline.task["kind"])
        self.mailbox.begin(event, pipeline)

    def wait_done(self, event: e.WaitDone) -> None:
        self.at(event.task_run_id).came = self.mailbox.end(event)
        self.seen.add(f"wait {event.by}")

    def signal(self, event: e.SignalReceived) -> None:
        self.mailbox.signal(event)

    # ── ends ──

    def step_done(self, event: e.StepDone) -> None:
        run = self.ending(event.step_run_id)
        must(run.pipeline is not None, "a loop ends in loop.done")
        assert run.pipeline is not None
        self.same_end(run.pipeline, None, event.result)
        self.route(event.step_run_id, run, {"name": "step.done", "result": event.result})

    def step_failed(self, event: e.StepFailed) -> None:
        run = self.ending(event.step_run_id)
        self.mailbox.forget(event.step_run_id)
        told = event.error["kind"] in STOPPED and self.net.stopped
        error = event.error
        if run.pipeline is not None:
            self.same_end(run.pipeline, error, None)
        elif not told:
            assert run.loop is not None
            must(run.loop.error is not None or run.loop.over, "its iterations have not ended")
            same("the error", shape(run.loop.failure), shape(error))
        more: Tree = {}
        if run.loop is not None:
            self.fold(run.loop)
        if run.loop is not None and run.loop.error is None:
            more["loop"] = run.loop.summary
            self.same_summary(run.loop.summary, event.loop)
        self.route(event.step_run_id, run, {"name": "step.failed", "error": error, **more})

    def same_summary(self, summary: Tree, told: Tree | None) -> None:
        """Of a loop that was cut short: what never ended has no result, and may not be listed."""
        must(told is not None, "a loop that fails says what it came to")
        assert told is not None
        missing = [None] * (summary["total"] - len(told["results"]))
        same("the results", summary["results"], [*told["results"], *missing])
        for key in ("total", "done", "failed"):
            same(f"iterations {key}", summary[key], told[key])
        indexes = [[one["index"] for one in side["errors"]] for side in (summary, told)]
        same("the failed ones", *indexes)

    def loop_done(self, event: e.LoopDone) -> None:
        loop = self.loop_of(event)
        must(loop.over, "its iterations have not ended")
        if event.parent_id is not None:
            return
        must(loop.failure is None, "a loop that failed is done")
        summary = loop.summary
        same("done and failed", (summary["done"], summary["failed"]), (event.done, event.failed))
        same("the results", summary["results"], event.results)
        same("failed", loop.failed, [one["index"] for one in event.errors])
        self.fold(loop)
        self.seen.add("empty loop" if not loop.items else "loop")
        run = self.ending(event.step_run_id)
        given = {"name": "loop.done", "result": summary["results"], "loop": summary}
        self.route(event.step_run_id, run, given)

    def fold(self, loop: Loop) -> None:
        folded = loop.folded()
        self.net.ctx.update(folded)
        self.changed |= set(folded)

    def ending(self, run_id: str) -> Run:
        must(run_id in self.net.runs, "it has ended already")
        return self.net.runs[run_id]

    def route(self, run_id: str, run: Run, event: Tree) -> None:
        net = self.net
        del net.runs[run_id]
        event["step"] = run.step
        failed = event["name"] == "step.failed"
        if net.stopped:
            if failed:
                net.failures.append((run.step, event["error"]))
            self.silent.add(run_id)
            return
        arcs, error = net.route(run, event)
        if error is not None:
            self.seen.add("arc fault")
            net.unhandled(run.step, error)
        elif failed and not arcs:
            net.unhandled(run.step, event["error"])
        if failed and arcs:
            self.seen.add("failure handled")
        if "next" in net.steps[run.step]:
            self.due_router[run_id] = (event["name"], arcs, error)
        if not error and not net.stopped:
            self.due_tokens += [(run_id, token) for token in run.makes]

    def routed(self, event: e.NextEvaluated) -> None:
        if event.step_run_id in self.silent:
            same("arcs after a stop", [], event.arcs)
            return
        must(event.step_run_id in self.due_router, "no router has to be asked")
        name, arcs, error = self.due_router.pop(event.step_run_id)
        same("the event", name, event.on)
        same("its error", shape(error), shape(event.error))
        if error is None:
            same("the arcs", arcs, event.arcs)

    # ── orders and the end ──

    def paused(self, _: e.ExecutionPaused) -> None:
        self.net.paused = True
        self.seen.add("paused")

    def resumed(self, _: e.ExecutionResumed) -> None:
        self.net.paused = False

    def cancelled(self, event: e.ExecutionCancelled) -> None:
        self.seen.add(f"stopped by {event.by}")
        self.net.paused = False  # what is stopped is not paused any more
        self.was_stopped = True
        if event.by == "fail_fast":
            idle = not self.net.runs and self.net.final_ran
            must(self.net.stopped == "fail_fast" or idle, "nothing failed that could stop it")
        elif event.by == "cancel":
            self.net.stopped = self.net.stopped or "cancel"
        else:
            self.net.stopped = "timeout"
            self.net.failures.append(("", event.error or {}))

    def end(self, event: e.WorkflowFinished) -> None:
        net = self.net
        must(not net.runs, f"it ends while {[run.step for run in net.runs.values()]} run")
        must(not net.tokens, f"it ends while tokens are at {[t.step for t in net.tokens.values()]}")
        must(net.final is None or net.final_ran or net.stopped == "cancel", "no final step")
        same("the status", net.status, event.status)
        if net.failures and net.status == "failed":
            step, error = net.failures[0]
            if not self.was_stopped:  # else those count too that were told to end
                same("the failures", len(net.failures), event.failures)
            assert event.error is not None
            same("the first failure", shape(error), shape(event.error))
            same("its step", step, event.error.get("step", step))
        same("untaken signals", len(self.mailbox.kept), event.untaken)
        self.finished = event.status
        self.seen.add(f"status {event.status}")


JUDGES: dict[type[e.Event], Callable[[Reader, Any], None]] = {
    e.WorkflowStarted: Reader.started,
    e.TokenCreated: Reader.created,
    e.TokenParked: Reader.parked,
    e.AdmitEvaluated: Reader.evaluated,
    e.TokenAbsorbed: Reader.absorb,
    e.TokenDropped: Reader.drop,
    e.StepScheduled: Reader.scheduled,
    e.TokenEnqueued: Reader.enqueued,
    e.LoopStarted: Reader.loop_started,
    e.IterationStarted: Reader.iteration_started,
    e.IterationDone: Reader.iteration_ended,
    e.IterationFailed: Reader.iteration_ended,
    e.TaskDone: Reader.task_done,
    e.CtxPatched: Reader.patched,
    e.WaitStarted: Reader.wait_started,
    e.WaitDone: Reader.wait_done,
    e.SignalReceived: Reader.signal,
    e.StepDone: Reader.step_done,
    e.StepFailed: Reader.step_failed,
    e.LoopDone: Reader.loop_done,
    e.NextEvaluated: Reader.routed,
    e.ExecutionPaused: Reader.paused,
    e.ExecutionResumed: Reader.resumed,
    e.ExecutionCancelled: Reader.cancelled,
    e.WorkflowFinished: Reader.end,
}
