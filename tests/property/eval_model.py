"""Random playbooks that the eval dialect can express, written in both languages."""

from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

Language = Literal["eval", "canonical"]
Tree = dict[str, Any]
NAMES = ("start", "fetch", "store-all", "tell")
VARIABLES = ("page", "rows", "mark")
REDUCERS = ("sum", "max", "append", "last")
# By language: expressions that mean the same.
CONDITIONS: tuple[dict[Language, str], ...] = (
    {"eval": "outcome.status == 'success'", "canonical": "outcome.status == 'ok'"},
    {"eval": "'success' != outcome.status", "canonical": "'ok' != outcome.status"},
    {"eval": "outcome.http.status in [429, 503]", "canonical": "outcome.http.status in [429, 503]"},
    {
        "eval": "outcome.py.exception == 'success'",
        "canonical": "outcome.py.exception_type == 'success'",
    },
    {
        "eval": "token.args.get('more') and _attempt < 3",
        "canonical": "args.get('more') and _attempt < 3",
    },
)
ERROR = "{{ outcome.status == 'error' }}"


class Writes(msgspec.Struct, frozen=True):
    """What a rule writes: variables of the step, shared ones, `ctx`, `iter`, `_prev`."""

    variables: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    ctx: bool = False
    iter: bool = False
    prev: bool = False


class Rule(msgspec.Struct, frozen=True):
    """`condition` is a number of CONDITIONS, or None for `else`."""

    condition: int | None
    do: str
    backoff: bool
    writes: Writes


class Task(msgspec.Struct, frozen=True):
    """`reads` are variables among its inputs; no `rules` is no policy."""

    reads: tuple[str, ...]
    rules: tuple[Rule, ...]
    knobs: bool


class Arc(msgspec.Struct, frozen=True):
    """`guard`: none, on the event, or on a variable of the step."""

    target: str
    guard: str | None
    reads: tuple[str, ...]


class Step(msgspec.Struct, frozen=True):
    """`loop` is its mode."""

    name: str
    guarded: bool
    loop: str | None
    tasks: tuple[Task, ...]
    mode: str | None
    arcs: tuple[Arc, ...]

    @property
    def after(self) -> set[str]:
        """Variables that an arc reads."""
        guards = {arc.guard for arc in self.arcs if arc.guard in VARIABLES}
        return {name for arc in self.arcs for name in arc.reads} | {str(name) for name in guards}

    @property
    def shared(self) -> set[str]:
        return {name for task in self.tasks for rule in task.rules for name in rule.writes.shared}

    @property
    def written(self) -> set[str]:
        """Variables that a rule writes: nothing else could define them (VAL-5)."""
        rules = [rule for task in self.tasks for rule in task.rules]
        return self.shared | {name for rule in rules for name in rule.writes.variables}

    def spelled(self, variable: str, language: Language) -> str:
        """How templates of the step name one of its variables (decision 0037)."""
        if language == "eval":
            return f"vars.{variable}"
        if self.kept(variable):
            return f"ctx.{self.key(variable)}"
        return f"iter.{variable}"

    def kept(self, variable: str) -> bool:
        return self.loop == "sequential" or variable in self.after or variable in self.shared

    def key(self, variable: str) -> str:
        return f"{self.name.replace('-', '_')}_{variable}"


# ── chance ──

few = st.lists(st.sampled_from(VARIABLES), max_size=2, unique=True).map(tuple)


@st.composite
def rules(
    draw: st.DrawFn, labels: list[str], own: tuple[str, ...], shared: tuple[str, ...]
) -> tuple[Rule, ...]:
    made: list[Rule] = []
    last = draw(st.sampled_from(["else", "error", "none"]))
    count = draw(st.integers(0 if last != "none" else 1, 3))
    for number in range(count + (last == "else")):
        condition = None if number == count else draw(st.integers(0, len(CONDITIONS) - 1))
        writes = Writes(
            variables=tuple(name for name in own if draw(st.booleans())),
            shared=tuple(name for name in shared if draw(st.booleans())),
            ctx=draw(st.booleans()),
            iter=draw(st.booleans()),
            prev=draw(st.booleans()),
        )
        do = draw(st.sampled_from(["continue", "retry", "jump", "break", "fail"]))
        made.append(
            Rule(
                condition, f"jump {labels[0]}" if do == "jump" else do, draw(st.booleans()), writes
            )
        )
    return tuple(made)


@st.composite
def steps(draw: st.DrawFn, name: str) -> Step:
    loop = draw(st.sampled_from([None, "sequential", "parallel"]))
    arcs = tuple(
        Arc(
            draw(st.sampled_from(NAMES)),
            draw(st.sampled_from([None, "event", *(VARIABLES if loop != "parallel" else ())])),
            draw(few) if loop != "parallel" else (),
        )
        for _ in range(draw(st.integers(0, 2)))
    )
    shared = draw(few) if loop else ()
    own = tuple(name for name in draw(few) if name not in shared)
    readable = tuple(name for name in VARIABLES if name not in shared)
    labels = [f"task_{number}" for number in range(draw(st.integers(0 if arcs else 1, 3)))]
    tasks = tuple(
        Task(
            tuple(name for name in readable if draw(st.booleans())),
            draw(rules(labels, own, shared)) if draw(st.booleans()) else (),
            draw(st.booleans()),
        )
        for _ in labels
    )
    mode = draw(st.sampled_from([None, "exclusive", "inclusive"])) if arcs else None
    # One step always shows the dialect: a list of arcs alone could be of either.
    guarded = name == NAMES[0] or draw(st.booleans())
    return Step(name, guarded, loop, tasks, mode, arcs)


@st.composite
def playbooks(draw: st.DrawFn) -> tuple[Step, ...]:
    return tuple(draw(steps(name)) for name in NAMES)


# ── writing ──


def written(model: tuple[Step, ...], language: Language) -> Tree:
    """The whole document."""
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "random", "path": "tests/random"},
        "workload": {"go": True},
        "workflow": [step_tree(step, language) for step in model],
    }


def step_tree(step: Step, language: Language) -> Tree:
    tree: Tree = {"step": step.name}
    spec: Tree = {}
    guard = "{{ token.args.get('go') or workload.go }}"
    if step.guarded and language == "eval":
        tree["when"] = guard
    elif step.guarded:
        allow = {"when": guard.replace("token.args", "args"), "then": {"allow": True}}
        spec["policy"] = {"admit": {"rules": [allow, {"else": {"then": {"allow": False}}}]}}
    if step.mode is not None and language == "eval":
        spec["next_mode"] = step.mode
    if spec:
        tree["spec"] = spec
    if step.loop:
        tree["loop"] = loop_tree(step, language)
    if step.tasks:
        tree["tool"] = [
            {f"task_{number}": task_tree(step, task, language)}
            for number, task in enumerate(step.tasks)
        ]
    if step.arcs:
        arcs = [arc_tree(step, arc, language) for arc in step.arcs]
        router: Tree = {"spec": {"mode": step.mode}} if step.mode else {}
        tree["next"] = arcs if language == "eval" else {**router, "arcs": arcs}
    return tree


def loop_tree(step: Step, language: Language) -> Tree:
    spec: Tree = {"mode": step.loop}
    if step.shared and language == "canonical":
        spec["policy"] = {"reduce": {step.key(name): reducer(name) for name in step.shared}}
    return {"in": "{{ workload.rows }}", "iterator": "row", "spec": spec}


def reducer(variable: str) -> str:
    return REDUCERS[VARIABLES.index(variable)]


def task_tree(step: Step, task: Task, language: Language) -> Tree:
    reads = {
        name: f"{{{{ {step.spelled(name, language)} }}}}"
        for name in task.reads
        if name in step.written
    }
    tree: Tree = {"kind": "python", "code": "result = 1"}
    if reads:
        tree["args"] = reads
    spec: Tree = {"timeout": {"connect": 5}, "client_retries": 1} if task.knobs else {}
    if task.rules:
        entries = [rule_tree(step, rule, language) for rule in task.rules]
        if language == "eval":
            tree["eval"] = entries
        else:
            covered = any(rule.condition is None for rule in task.rules)
            last = [] if covered else [{"when": ERROR, "then": {"do": "fail"}}]
            spec["policy"] = {"rules": entries + last}
    if spec:
        tree["spec"] = spec
    return tree


def rule_tree(step: Step, rule: Rule, language: Language) -> Tree:
    then = then_tree(step, rule, language)
    if rule.condition is None:
        return {"else": then if language == "eval" else {"then": then}}
    guard = f"{{{{ {CONDITIONS[rule.condition][language]} }}}}"
    return {"expr": guard, **then} if language == "eval" else {"when": guard, "then": then}


def then_tree(step: Step, rule: Rule, language: Language) -> Tree:
    do, _, target = rule.do.partition(" ")
    then: Tree = {"do": do}
    if target:
        then["to"] = target
    if do == "retry":
        then["attempts"] = 3
    if rule.backoff:
        then["backoff"] = "fixed" if language == "eval" else "none"
    writes: dict[str, Tree] = {"iter": {}, "ctx": {}}
    if rule.writes.iter:
        writes["iter"]["own"] = "{{ outcome.result }}"
    if rule.writes.ctx:
        writes["ctx"]["own"] = 1
    value = "{{ outcome.result }}"
    if language == "eval":
        if rule.writes.variables:
            then["set_vars"] = dict.fromkeys(rule.writes.variables, value)
        if rule.writes.shared:
            then["set_shared"] = {name: {reducer(name): value} for name in rule.writes.shared}
    else:
        for name in rule.writes.variables:
            kept = step.kept(name)
            writes["ctx" if kept else "iter"][step.key(name) if kept else name] = value
        writes["ctx"] |= {step.key(name): value for name in rule.writes.shared}
    then |= {f"set_{scope}": keys for scope, keys in writes.items() if keys}
    if rule.writes.prev:
        then["set_prev"] = [1, value]
    return then


def arc_tree(step: Step, arc: Arc, language: Language) -> Tree:
    tree: Tree = {"step": arc.target}
    if arc.guard == "event":
        tree["when"] = "{{ event.name == 'step.failed' }}"
    elif arc.guard is not None:
        tree["when"] = f"{{{{ {step.spelled(arc.guard, language)} == 1 }}}}"
    if arc.reads:
        tree["args"] = {name: f"{{{{ {step.spelled(name, language)} }}}}" for name in arc.reads}
    return tree
