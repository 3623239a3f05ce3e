"""Random playbooks that the case dialect can express, written in both languages."""

from typing import Any, Literal

import msgspec
from hypothesis import strategies as st

Language = Literal["case", "canonical"]
Tree = dict[str, Any]
NAMES = ("start", "fetch", "store", "tell")
VARIABLES = ("mail", "count")
# Guards of a case, and what is left of each: the guard of an arc; None where it needs none.
GUARDS: tuple[tuple[str, str | None], ...] = (
    ("event.name == 'step.exit'", None),
    ("event.name == 'step.exit' and response is defined", None),
    ("event.name == 'call.error'", "event.name == 'step.failed'"),
    ("event.name == 'call.done' and vars.count > 1", "event.name == 'step.done' and ctx.count > 1"),
    ("workload.go and result.n == 1", "workload.go and event.result{u}.n == 1"),
    ("event.name != 'call.error' and fetch.n", "event.name != 'step.failed' and ctx.fetch.n"),
    ("response.data.n in [1, 2]", "event.result{u}.n in [1, 2]"),
)
READS_FETCH = 5
"""The guard that reads the result of a step by its name."""
# Conditions of a retry, with what becomes of each, and whether only an error can meet it.
RETRIES: tuple[tuple[str, str, bool], ...] = (
    ("status_code >= 500", "outcome.http.status >= 500", True),
    ("status_code in [429, 503]", "outcome.http.status in [429, 503]", True),
    ("not success", "not (outcome.status == 'ok')", True),
    ("error and attempt < 3", "outcome.error.message and _attempt < 3", True),
    ("result.n < max_attempts", "outcome.result{u}.n < 4", False),
    ("data.n is defined", "outcome.result{u}.n is defined", False),
)
ATTEMPTS = 4
IS_ERROR = "{{ outcome.status == 'error' }}"
FAIL: Tree = {"when": IS_ERROR, "then": {"do": "fail"}}


class Retry(msgspec.Struct, frozen=True):
    """`when` and `stop` are numbers of RETRIES."""

    when: int | None
    stop: int | None
    delay: float | None
    growth: int | None


class Sink(msgspec.Struct, frozen=True):
    """A sink on a database; `guarded` by the result."""

    kind: Literal["postgres", "duckdb"]
    guarded: bool


class Case(msgspec.Struct, frozen=True):
    """`guard` is a number of GUARDS."""

    guard: int
    target: str
    passes: bool


class Step(msgspec.Struct, frozen=True):
    """`cases` None: the step has only `next`."""

    name: str
    kind: Literal["python", "http"]
    empty: bool
    loop: Literal["sequential", "parallel", "async"] | None
    retry: Retry | None
    variables: tuple[str, ...]
    sink: Sink | None
    cases: tuple[Case, ...] | None
    after: tuple[str, ...]
    reads: bool
    """Whether its task reads variables, results and the names of its loop."""

    @property
    def unwrapped(self) -> str:
        return ".data" if self.kind == "http" else ""


# ── chance ──

retries = st.builds(
    Retry,
    when=st.none() | st.integers(0, len(RETRIES) - 1),
    stop=st.none() | st.integers(0, len(RETRIES) - 1),
    delay=st.sampled_from([None, 0.5, 2]),
    growth=st.sampled_from([None, 1, 2]),
)
sinks = st.builds(Sink, kind=st.sampled_from(["postgres", "duckdb"]), guarded=st.booleans())
cases = st.lists(
    st.builds(
        Case,
        guard=st.integers(0, len(GUARDS) - 1),
        target=st.sampled_from(NAMES),
        passes=st.booleans(),
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@st.composite
def steps(draw: st.DrawFn, name: str) -> Step:
    branches = draw(st.none() | cases)
    most = 2 if branches is None else 1
    after = draw(st.lists(st.sampled_from(NAMES), max_size=most, unique=True))
    return Step(
        name=name,
        kind=draw(st.sampled_from(["python", "http"])),
        empty=draw(st.booleans()),
        loop=None if name == "fetch" else draw(st.sampled_from([None, "sequential", "async"])),
        retry=draw(st.none() | retries),
        variables=(),
        sink=draw(st.none() | sinks),
        cases=branches,
        after=tuple(after),
        reads=draw(st.booleans()),
    )


@st.composite
def playbooks(draw: st.DrawFn) -> tuple[Step, ...]:
    made = [draw(steps(name)) for name in NAMES]
    few = st.lists(st.sampled_from(VARIABLES), max_size=2, unique=True).map(tuple)
    return tuple(
        msgspec.structs.replace(one, variables=draw(few) if one.loop is None else ())
        for one in made
    )


# ── writing ──


def written(model: tuple[Step, ...], language: Language) -> Tree:
    """The whole document."""
    named = any(
        one.reads or any(case.guard == READS_FETCH for case in one.cases or ()) for one in model
    )
    step_tree = older_step if language == "case" else canonical_step
    return {
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": {"name": "random", "path": "tests/random"},
        "workload": {"go": True, "rows": [1]},
        "workflow": [step_tree(step, named=named) for step in model],
    }


def task_of(step: Step, language: Language) -> Tree:
    older = language == "case"
    values: Tree = {"plain": "{{ workload.go }}"}
    if step.reads:
        values["mail"] = "{{ vars.mail }}" if older else "{{ ctx.mail }}"
        values["n"] = "{{ fetch.n | default(0) }}" if older else "{{ ctx.fetch.n | default(0) }}"
    if step.loop and step.reads:
        values["row"] = "{{ row.id }}" if older else "{{ iter.row.id }}"
        values["at"] = "no {{ loop_index }}" if older else "no {{ iter.index }}"
    if step.kind == "http":
        return {"kind": "http", "url": "http://127.0.0.1:9/", "params": values}
    return {"kind": "python", "args": values, "code": "result = {'n': 1}"}


def older_step(step: Step, *, named: bool) -> Tree:
    del named
    empty: Tree = {"auth": {}, "libs": {}} if step.kind == "python" else {"auth": {}}
    tree: Tree = {"step": step.name}
    if step.loop:
        tree["loop"] = {"in": "{{ workload.rows }}", "iterator": "row", "mode": step.loop}
    tree["tool"] = {**task_of(step, "case"), **(empty if step.empty else {})}
    if step.retry:
        tree["retry"] = older_retry(step.retry)
    if step.variables:
        tree["vars"] = {name: f"{{{{ result.{name} }}}}" for name in step.variables}
    if step.cases is not None:
        tree["case"] = [older_case(case) for case in step.cases]
    if step.after:
        tree["next"] = [{"step": name} for name in step.after]
    if step.sink:
        tree["sink"] = {
            "tool": {"kind": step.sink.kind},
            "table": "rows_of_it",
            "args": {"n": "{{ result.n }}", "ok": "{{ this.status }}"},
        }
        if step.sink.guarded:
            tree["sink"]["when"] = "{{ result.n > 0 }}"
    return tree


def older_retry(retry: Retry) -> Tree:
    tree: Tree = {"max_attempts": ATTEMPTS}
    named = {"initial_delay": retry.delay, "backoff_multiplier": retry.growth}
    tree |= {key: value for key, value in named.items() if value is not None}
    for key, number in (("retry_when", retry.when), ("stop_when", retry.stop)):
        if number is not None:
            tree[key] = f"{{{{ {RETRIES[number][0]} }}}}"
    return tree


def older_case(case: Case) -> Tree:
    target: Tree = {"step": case.target}
    if case.passes:
        target["args"] = {"got": "{{ result }}"}
    return {"when": f"{{{{ {GUARDS[case.guard][0]} }}}}", "then": {"next": [target]}}


def canonical_step(step: Step, *, named: bool) -> Tree:
    tree: Tree = {"step": step.name}
    if step.loop:
        mode = "parallel" if step.loop == "async" else step.loop
        tree["loop"] = {"in": "{{ workload.rows }}", "iterator": "row", "spec": {"mode": mode}}
    task = task_of(step, "canonical")
    rules = rules_of(step, keeps=named and step.name == "fetch")
    if rules:
        task["spec"] = {"policy": {"rules": rules}}
    tree["tool"] = [{step.name: task}, *canonical_sink(step)]
    arcs = [canonical_arc(step, case) for case in step.cases or ()]
    arcs += [{"step": name} for name in step.after]
    if arcs:
        inclusive = step.cases is None and len(arcs) > 1
        tree["next"] = {"arcs": arcs, **({"spec": {"mode": "inclusive"}} if inclusive else {})}
    return tree


def rules_of(step: Step, *, keeps: bool) -> list[Tree]:
    rules = [canonical_retry(step, step.retry)] if step.retry else []
    writes = {name: f"{{{{ outcome.result{step.unwrapped}.{name} }}}}" for name in step.variables}
    if keeps:
        writes["fetch"] = f"{{{{ outcome.result{step.unwrapped} }}}}"
    if (rules or writes) and not any(rule["when"] == IS_ERROR for rule in rules):
        rules.append(FAIL)
    return [*rules, {"else": {"then": {"set_ctx": writes}}}] if writes else rules


def canonical_retry(step: Step, retry: Retry) -> Tree:
    then: Tree = {"do": "retry", "attempts": ATTEMPTS}
    if retry.delay is not None or retry.growth is not None:
        then["delay"] = 1 if retry.delay is None else retry.delay
    if retry.growth == 2:
        then["backoff"] = "exponential"
    if retry.when is None and retry.stop is None:
        return {"when": IS_ERROR, "then": then}
    parts: list[str] = []
    certain = False
    if retry.when is not None:
        parts.append(RETRIES[retry.when][1])
        certain = RETRIES[retry.when][2]
    if retry.stop is not None:
        parts.append(f"not ({RETRIES[retry.stop][1]})")
    if not certain:
        parts.append(f"_attempt < {ATTEMPTS}")
    guard = " and ".join(parts).replace("{u}", step.unwrapped)
    return {"when": f"{{{{ {guard} }}}}", "then": then}


def canonical_arc(step: Step, case: Case) -> Tree:
    inner = step.unwrapped
    listed = f"((event.result or []) | map(attribute='{inner[1:]}') | list)"
    result = listed if step.loop and inner else f"event.result{inner}"
    guard = GUARDS[case.guard][1]
    arc: Tree = {"step": case.target}
    if guard is not None:
        guard = guard.replace("event.result{u}", result)
        done = "loop.done" if step.loop else "step.done"
        arc["when"] = f"{{{{ {guard.replace('step.done', done)} }}}}"
    if case.passes:
        arc["args"] = {"got": f"{{{{ {result} }}}}"}
    return arc


def canonical_sink(step: Step) -> list[Tree]:
    if step.sink is None:
        return []
    mark = "%({})s" if step.sink.kind == "postgres" else "${}"
    marks = ", ".join(mark.format(name) for name in ("n", "ok"))
    save: Tree = {
        "kind": step.sink.kind,
        "command": f"INSERT INTO rows_of_it (n, ok)\nVALUES ({marks})\n",
        "params": {"n": f"{{{{ _prev{step.unwrapped}.n }}}}", "ok": "success"},
    }
    kept = {"when": "{{ outcome.status == 'ok' }}", "then": {"set_prev": "{{ _prev }}"}}
    save["spec"] = {"policy": {"rules": [kept, {"else": {"then": {"do": "fail"}}}]}}
    if not step.sink.guarded:
        return [{"save": save}]
    guard = f"{{{{ _prev{step.unwrapped}.n > 0 }}}}"
    rules = [
        {"when": guard, "then": {"do": "continue"}},
        {"else": {"then": {"do": "break"}}},
    ]
    check = {"kind": "noop", "spec": {"policy": {"rules": rules}}}
    return [{"check": check}, {"save": save}]
