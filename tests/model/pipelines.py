"""
One pipeline of the reference model: a program counter, and what each outcome makes of it (TASK).

A pipeline belongs to a step run or to an iteration. It never chooses when it goes on: it is told
that a task came to an outcome, and says what must follow.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.model.expressions import TemplateFault, holds, render

if TYPE_CHECKING:
    from tests.model.loops import Loop

Tree = dict[str, Any]
Error = dict[str, Any]


class Differs(AssertionError):
    """The engine did what the specification does not say."""


def same(what: str, model: Any, engine: Any) -> None:
    if model != engine:
        raise Differs(f"{what}: the model has {model!r}, the engine {engine!r}")


def fault(kind: str, **more: Any) -> Error:
    return {"kind": kind, **more}


def shape(error: Mapping[str, Any] | None) -> Any:
    """What two errors are compared by: kind, index, cause, and words that a template gave."""
    if error is None:
        return None
    kept = {"kind": error["kind"]}
    if error.get("index") is not None:
        kept["index"] = error["index"]
    if error["kind"] == "policy" and str(error.get("message", "")).startswith("said "):
        kept["message"] = error["message"]
    if error.get("cause") is not None:
        kept["cause"] = shape(error["cause"])
    return kept


class Directive:
    """What follows an outcome: what `task.done` records of it."""

    def __init__(self, do: str, **more: Any) -> None:
        self.do = do
        self.rule: int | None = more.get("rule")
        self.to: str | None = more.get("to")
        self.delay: float = more.get("delay", 0.0)
        self.error: Error | None = more.get("error")
        self.set_ctx: Tree = more.get("set_ctx", {})
        self.set_iter: Tree = more.get("set_iter", {})
        self.set_prev: Any = more.get("set_prev", ...)


class Pipeline:
    """Where a step run, or one iteration, stands."""

    def __init__(
        self, tasks: list[Tree], names: Tree, place: "list[tuple[Loop, int]]", limit: int
    ) -> None:
        self.tasks = [next(iter(task.items())) for task in tasks]
        self.names = names
        """workload, args, execution_id, ctx (its own view), iter."""
        self.place = place
        """The loops around it from the outside in, and its index in each."""
        self.limit = limit
        self.pc = 0
        self.arrivals = 0
        self.attempt = 1
        self.prev: Any = None
        self.inner: Loop | None = None
        self.awaits: list[Tree] | None = None
        self.came: Tree | None = None
        self.ended = False
        self.result: Any = None
        self.error: Error | None = None
        self.arrive(0)

    # ── where it stands ──

    @property
    def label(self) -> str:
        return self.tasks[self.pc][0]

    @property
    def task(self) -> Tree:
        found: Tree = self.tasks[self.pc][1]
        return found

    def scope(self, **more: Any) -> Tree:
        own = {"_prev": self.prev, "_task": self.label, "_attempt": self.attempt}
        return {**self.names, **own, **more}

    def arrive(self, pc: int) -> None:
        self.pc, self.attempt, self.inner, self.awaits, self.came = pc, 1, None, None, None
        if pc >= len(self.tasks):
            self.end(self.prev)
            return
        self.arrivals += 1
        if self.arrivals > self.limit:
            self.fail(fault("limit"))

    def end(self, result: Any) -> None:
        self.ended, self.result = True, result

    def fail(self, error: Error) -> None:
        self.ended, self.error, self.result = True, error, self.prev

    # ── what a task comes to ──

    def inputs(self) -> Tree:
        """What its tool is called with; a fault here is its outcome (TPL-3)."""
        kept = {key: self.task[key] for key in ("body", "value") if key in self.task}
        found: Tree = render(kept, self.scope())
        return found

    def outcome(self, given: Tree) -> Tree:
        """The outcome by the specification: of a tool what it gave, of the rest what follows."""
        kind = self.task["kind"]
        if kind == "noop":
            return {"status": "ok", "result": self.prev, "error": None}
        if kind == "iterator":
            assert self.inner is not None
            return self.inner.outcome()
        if kind == "wait":
            return self.waited()
        try:
            inputs = self.inputs()
        except TemplateFault:
            return {"status": "error", "result": None, "error": fault("template")}
        if kind == "transform":
            return {"status": "ok", "result": inputs["value"], "error": None}
        return given

    def waited(self) -> Tree:
        if self.came is None:
            raise Differs(f"{self.label} goes on, and nothing came that it waits for")
        return self.came

    # ── what follows ──

    def decide(self, outcome: Tree) -> Directive:
        """The rule that decides (TASK-2, TASK-3)."""
        policy = self.task.get("spec", {}).get("policy", {})
        rules = policy.get("rules")
        if rules is None:
            return self.by_default(outcome)
        try:
            return self.by_rules(rules, outcome)
        except TemplateFault:
            return Directive("fail", error=fault("template"))

    def by_default(self, outcome: Tree) -> Directive:
        if outcome["status"] == "ok":
            return Directive("continue")
        return Directive("fail", error=outcome["error"])

    def by_rules(self, rules: list[Tree], outcome: Tree) -> Directive:
        given_up: tuple[int, Tree] | None = None
        for number, rule in enumerate(rules):
            seen = {**outcome, "exhausted": True} if given_up else outcome
            if "else" in rule and given_up:
                continue
            if "when" in rule and not holds(rule["when"], self.scope(outcome=seen)):
                continue
            then = rule["then"] if "when" in rule else rule["else"]["then"]
            if then["do"] == "retry" and self.attempt >= then["attempts"]:
                given_up = (number, then)
                continue
            return self.directive(then, number, seen, exhausted=given_up is not None)
        if given_up is not None:
            number, then = given_up
            return self.directive({**then, "do": "fail"}, number, outcome, exhausted=True)
        return Directive("continue")

    def directive(self, then: Tree, number: int, outcome: Tree, *, exhausted: bool) -> Directive:
        scope = self.scope(outcome=outcome)
        sets: Tree = {
            key: render(then[key], scope)
            for key in ("set_iter", "set_ctx", "set_prev")
            if key in then
        }
        more: Tree = {"rule": number, "to": then.get("to"), **sets}
        if then["do"] == "fail":
            more["error"] = self.failure(then, outcome, scope, exhausted=exhausted)
        if then["do"] in ("retry", "jump"):
            more["delay"] = self.pause(then, scope)
        return Directive(then["do"], **more)

    def failure(self, then: Tree, outcome: Tree, scope: Tree, *, exhausted: bool) -> Error:
        error: Error | None = outcome["error"]
        if exhausted:
            error = fault("retry_exhausted", cause=error)
        if "message" in then:
            return fault("policy", message=str(render(then["message"], scope)), cause=error)
        return error or fault("policy")

    def pause(self, then: Tree, scope: Tree) -> float:
        """TASK-3: how long it waits."""
        delay = render(then.get("delay", 0), scope)
        if then["do"] == "retry":
            by = {"linear": self.attempt, "exponential": 2 ** (self.attempt - 1)}
            delay *= by.get(then.get("backoff", "none"), 1)
        return float(min(delay, then.get("max_delay", delay)))

    def follow(self, directive: Directive, outcome: Tree) -> None:
        """Apply what was decided; what it writes to ctx was written before."""
        self.names["iter"].update(directive.set_iter)
        if directive.do == "retry":
            if directive.set_prev is not ...:
                self.prev = directive.set_prev
            self.attempt += 1
            self.inner, self.awaits, self.came = None, None, None
            return
        if directive.do == "fail":
            assert directive.error is not None
            self.fail(directive.error)
            return
        self.prev = outcome["result"] if directive.set_prev is ... else directive.set_prev
        if directive.do == "break":
            self.end(self.prev)
        elif directive.do == "jump":
            self.arrive([label for label, _ in self.tasks].index(str(directive.to)))
        else:
            self.arrive(self.pc + 1)
