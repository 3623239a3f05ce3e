"""
The net of the reference model: tokens, joins, admission, routing and the end (NEXT, ADM).

It says which transitions are enabled and what each of them leads to. Which enabled one comes
first, and which task ends first, is nobody's rule: that is told by whoever drives it.
"""

from tests.model.expressions import TemplateFault, holds, reads, render
from tests.model.loops import Loop
from tests.model.pipelines import Differs, Error, Pipeline, Tree, fault

Round = tuple[int, int]
"""How often the ancestry has passed the join, and the number from the source within that."""


class Token:
    """Permission and payload for one run of a step."""

    def __init__(self, step: str, args: Tree, source: str | None, rounds: dict[str, int]) -> None:
        self.step, self.args, self.source, self.rounds = step, args, source, rounds
        self.event: Tree | None = None
        self.round: Round = (0, 0)
        self.verdict: bool | None = None
        self.admitted = False
        """Whether it waits for its place under a limit, with the verdict that let it wait."""
        self.broken = False
        """Whether a guard of its step could not be evaluated."""
        self.read: set[str] = set()
        """Keys of ctx that changed since it was asked."""


class Run:
    """One run of a step."""

    def __init__(self, step: str, args: Tree, rounds: dict[str, int], names: Tree) -> None:
        self.step, self.args, self.rounds, self.names = step, args, rounds, names
        self.pipeline: Pipeline | None = None
        self.loop: Loop | None = None
        self.makes: list[Token] = []


class Net:
    """One execution."""

    def __init__(self, document: Tree, ctx: Tree) -> None:
        spec = document.get("executor", {}).get("spec", {})
        policy = spec.get("policy", {})
        self.steps: dict[str, Tree] = {step["step"]: step for step in document["workflow"]}
        self.workload: Tree = document.get("workload", {})
        self.shared: dict[str, str] = policy.get("reduce", {})
        self.limits: Tree = policy.get("limits", {})
        self.fail_fast: bool = policy.get("fail_fast", False)
        self.final: str | None = spec.get("final_step")
        names = list(self.steps)
        self.entry: str = spec.get("entry_step") or ("start" if "start" in names else names[0])
        self.ctx = dict(ctx)
        self.tokens: dict[str, Token] = {}
        self.runs: dict[str, Run] = {}
        self.begun = 0
        self.arrived: dict[tuple[str, int, str], int] = {}
        self.fired: set[tuple[str, Round]] = set()
        self.failures: list[tuple[str, Error]] = []
        self.stopped: str | None = None
        self.paused = False
        self.final_ran = False
        self.history: list[tuple[str, Tree]] = []
        """Step and args of each run, in the order in which they began."""

    # ── tokens ──

    def place(self, token_id: str, token: Token) -> None:
        self.tokens[token_id] = token
        if self.join(token.step) and token.source is not None:
            passes = token.rounds.get(token.step, 0)
            key = (token.step, passes, token.source)
            self.arrived[key] = self.arrived.get(key, 0) + 1
            token.round = (passes, self.arrived[key])

    def join(self, step: str) -> Tree | None:
        found: Tree | None = self.steps[step].get("spec", {}).get("join")
        return found

    def group(self, token_id: str) -> list[str]:
        """The tokens that would go with this one, in the order of `from` (NEXT-7)."""
        token = self.tokens[token_id]
        join = self.join(token.step)
        if join is None:
            return [token_id]
        there = {
            one.source: name
            for name, one in self.tokens.items()
            if one.step == token.step and one.round == token.round
        }
        return [there[source] for source in join["from"] if source in there]

    def late(self, token_id: str) -> bool:
        """Whether its round has fired without it."""
        token = self.tokens[token_id]
        return self.join(token.step) is not None and (token.step, token.round) in self.fired

    def complete(self, group: list[str]) -> bool:
        join = self.join(self.tokens[group[0]].step)
        if join is None:
            return True
        mode = join.get("mode", "all")
        words = {"all": len(join["from"]), "any": 1}
        return len(group) >= (words[mode] if mode in words else int(mode))

    def args_of(self, group: list[str]) -> Tree:
        tokens = [self.tokens[name] for name in group]
        if self.join(tokens[0].step) is None:
            return tokens[0].args
        merged: Tree = {}
        for token in tokens:
            merged.update(token.args)
        return {**merged, "from": {str(token.source): token.args for token in tokens}}

    # ── admission ──

    def admit(self, step: str) -> Tree | None:
        found: Tree | None = self.steps[step].get("spec", {}).get("policy", {}).get("admit")
        return found

    def verdict(self, group: list[str]) -> tuple[bool, int | None]:
        """Whether the step may run, and by which rule (ADM-1)."""
        first = self.tokens[group[0]]
        admit = self.admit(first.step)
        if admit is None:
            return True, None
        names = {"ctx": self.ctx, "workload": self.workload, "args": self.args_of(group)}
        if first.event is not None:
            names["event"] = first.event
        found: tuple[bool, int | None] = (True, None)
        for number, rule in enumerate(admit["rules"]):
            if "when" in rule and not holds(rule["when"], names):
                continue
            then = rule["then"] if "when" in rule else rule["else"]["then"]
            if admit.get("mode", "exclusive") == "exclusive":
                return then["allow"], number
            if not then["allow"]:
                return False, number
            if found[1] is None:
                found = (True, number)
        return found

    def asks(self, step: str) -> set[str]:
        """The keys of ctx that the rules of a step read (ADM-3)."""
        rules = (self.admit(step) or {}).get("rules", [])
        return {key for rule in rules for key in reads(rule.get("when"))}

    def enabled(self, token_id: str) -> bool:
        """Whether its step may run now."""
        group = self.group(token_id)
        if self.stopped or self.paused or self.late(token_id) or not self.complete(group):
            return False
        token = self.tokens[token_id]
        if token.verdict is False and not token.read:
            return False  # refused, and nothing that it reads has changed
        try:
            return self.verdict(group)[0]
        except TemplateFault:
            return False

    # ── firing ──

    def fire(self, run_id: str, group: list[str]) -> Run:
        tokens = [self.tokens[name] for name in group]
        step, args = tokens[0].step, self.args_of(group)
        rounds = dict(tokens[0].rounds)
        for token in tokens[1:]:
            for name, passes in token.rounds.items():
                rounds[name] = max(passes, rounds.get(name, 0))
        if self.join(step) is not None:
            rounds[step] = rounds.get(step, 0) + 1
            self.fired.add((step, tokens[0].round))
        for name in group:
            del self.tokens[name]
        names: Tree = {"workload": self.workload, "args": args, "ctx": dict(self.ctx), "iter": {}}
        names["execution_id"] = "x1"
        run = Run(step, args, rounds, names)
        self.runs[run_id] = run
        self.begun += 1
        self.history.append((step, args))
        self.open(run)
        return run

    def open(self, run: Run) -> None:
        step = self.steps[run.step]
        tasks = step.get("tool", [])
        if "loop" in step:
            run.loop = Loop(step["loop"], tasks, run.names, None)
        else:
            run.pipeline = Pipeline(tasks, run.names, [], self.task_runs)

    @property
    def task_runs(self) -> int:
        return int(self.limits.get("max_task_runs", 100_000))

    @property
    def step_runs(self) -> int:
        return int(self.limits.get("max_step_runs", 100_000))

    # ── routing ──

    def route(self, run: Run, event: Tree) -> tuple[list[int], Error | None]:
        """The arcs that fire on a terminal event (NEXT-1 to NEXT-3); makes their tokens."""
        router = self.steps[run.step].get("next")
        arcs: list[Tree] = (router or {}).get("arcs", [])
        spec = (router or {}).get("spec", {})
        names: Tree = {"ctx": self.ctx, "workload": self.workload, "args": run.args, "event": event}
        names["execution_id"] = "x1"
        failed = event["name"] == "step.failed"
        literal = spec.get("policy", {}).get("on_failure") == "all"
        chosen: list[int] = []
        made: list[Token] = []
        try:
            for number, arc in enumerate(arcs):
                if failed and "when" not in arc and not literal:
                    continue
                if not holds(arc.get("when", True), names):
                    continue
                chosen.append(number)
                if spec.get("mode", "exclusive") == "exclusive":
                    break
            for number in chosen:
                made.append(self.token(arcs[number], run, names, event))
        except TemplateFault:
            return chosen, fault("template")
        run.makes = made
        return chosen, None

    def token(self, arc: Tree, run: Run, names: Tree, event: Tree) -> Token:
        args = render(arc.get("args", {}), names)
        token = Token(arc["step"], args, run.step, dict(run.rounds))
        token.event = event
        return token

    def unhandled(self, step: str, error: Error) -> None:
        """A failure that no arc took (NEXT-5)."""
        self.failures.append((step, error))
        if self.fail_fast and self.stopped is None and step != self.final:
            self.stopped = "fail_fast"

    # ── the end ──

    @property
    def quiet(self) -> bool:
        """Nothing runs and nothing may (NEXT-6)."""
        return not self.runs and not any(self.enabled(name) for name in self.tokens)

    @property
    def status(self) -> str:
        if self.stopped == "cancel":
            return "cancelled"
        return "failed" if self.failures else "completed"


def must(fact: bool, words: str) -> None:
    if not fact:
        raise Differs(words)
