"""
The playbook as its author wrote it, checked in shape: what every later room reads.

Values that may hold templates (`workload`, inputs, `args`, guards) stay as they were written;
`plan.py` compiles them. Every part knows its place, so that later checks can point at it.
Defaults of the language stand here and nowhere else.
"""

from typing import Any, Literal

import msgspec

from noetl.playbook.finding import Place

Mode = Literal["exclusive", "inclusive"]
Do = Literal["continue", "retry", "jump", "break", "fail"]
Backoff = Literal["none", "linear", "exponential"]
Reducer = Literal["sum", "min", "max", "append", "extend", "merge", "count", "first", "last"]
Guard = bool | str
"""A boolean, or the text of one whole `{{ … }}` expression (VAL-2)."""


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """Anything that stands somewhere in the document."""

    place: Place


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """DOC-4: what an execution may use."""

    max_payload_bytes: int = 1_048_576
    max_task_runs: int = 100_000
    max_step_runs: int = 100_000
    timeout: float | None = None


class Limit(Located, frozen=True, kw_only=True):
    """LIMIT-1: what holds over all executions of a playbook."""

    at_once: int | None = None
    total: int | None = None
    count: int | None = None
    seconds: float = 0.0
    """At most `count` begin in this time."""
    key: str | None = None
    over: Literal["queue", "refuse", "cancel_old"] = "queue"
    priority: int | str = 0


class Executor(msgspec.Struct, frozen=True, kw_only=True):
    """DOC-4. `defaults` are merged into the parts already; they are not kept."""

    kind: Literal["local", "distributed"] = "local"
    pool: str = "default"
    entry_step: str | None = None
    final_step: str | None = None
    isolation: Literal["process", "shared"] = "process"
    reference_first: bool = False
    fail_fast: bool = False
    limits: Limits = Limits()
    limit: Limit | None = None
    reduce: dict[str, Reducer] = {}
    """SCOPE-6: ctx keys whose writes are folded, whoever makes them."""


class KeychainEntry(Located, frozen=True, kw_only=True):
    """KEY-1. `fields` is everything but name, kind, provider and key."""

    name: str
    kind: str
    provider: str = "store"
    key: str | None = None
    fields: dict[str, Any] = {}


class AdmitRule(Located, frozen=True, kw_only=True):
    """One rule of `admit`; `when` is None for `else`."""

    when: Guard | None
    allow: bool


class Admission(Located, frozen=True, kw_only=True):
    """ADM-1, ADM-3. A refused token parks unless `on_deny` is `drop`."""

    rules: tuple[AdmitRule, ...]
    mode: Mode = "exclusive"
    on_deny: Literal["park", "drop"] = "park"


class Then(msgspec.Struct, frozen=True, kw_only=True):
    """What a matching rule orders (TASK-2 to TASK-5). `delay` may be a template."""

    do: Do = "continue"
    attempts: int | None = None
    backoff: Backoff = "none"
    delay: float | str = 0.0
    max_delay: float | None = None
    jitter: float = 0.0
    to: str | None = None
    message: str | None = None
    set_iter: dict[str, Any] = {}
    set_ctx: dict[str, Any] = {}
    set_prev: Any = msgspec.UNSET


class Rule(Located, frozen=True, kw_only=True):
    """One rule of a task's policy; `when` is None for `else`."""

    when: Guard | None
    then: Then


class Timeout(msgspec.Struct, frozen=True, kw_only=True):
    """TASK-7: seconds; a plain number in the document is `total`."""

    connect: float | None = None
    read: float | None = None
    total: float | None = None


class Cache(Located, frozen=True, kw_only=True):
    """CACHE-1. `key` is a template."""

    key: str
    ttl: float


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """TASK-7, TASK-11. `rules` is None when the task has no policy, which is not an empty list."""

    timeout: Timeout | None = None
    timeout_by: str | None = None
    """The template that `timeout` is, where it is one."""
    rules: tuple[Rule, ...] | None = None
    inherited: bool = False
    """Whether `rules` are the executor's default, which rules tasks of every kind."""
    pool: int | None = None
    client_retries: int = 0
    resources: dict[str, Any] = {}
    cache: Cache | None = None


class Task(Located, frozen=True, kw_only=True):
    """TASK-1. `inner` is the loop and the pipeline of a task of kind `iterator` (LOOP-7)."""

    label: str
    kind: str
    inputs: dict[str, Any] = {}
    spec: TaskSpec = TaskSpec()
    inner: "Inner | None" = None


class Loop(Located, frozen=True, kw_only=True):
    """LOOP-1. `items` is the document's `in`: a list or a template."""

    items: list[Any] | str
    iterator: str
    mode: Literal["sequential", "parallel"] = "sequential"
    max_in_flight: int = 10
    exec: Literal["local", "distributed"] | None = None
    on_failure: Literal["stop", "continue"] = "stop"
    reduce: dict[str, Reducer] = {}


class Inner(msgspec.Struct, frozen=True, kw_only=True):
    """The nested loop of an `iterator` task."""

    loop: Loop
    tasks: tuple[Task, ...]


class Arc(Located, frozen=True, kw_only=True):
    """NEXT-1. Without `when` it is true for a step that succeeded (NEXT-3)."""

    step: str
    when: Guard | None = None
    args: dict[str, Any] = {}
    spec: dict[str, Any] = {}


class Router(Located, frozen=True, kw_only=True):
    """NEXT-1, NEXT-3."""

    arcs: tuple[Arc, ...] = ()
    mode: Mode = "exclusive"
    on_failure: Literal["guarded", "all"] = "guarded"


class Join(Located, frozen=True, kw_only=True):
    """NEXT-7: how many tokens of which steps must meet."""

    sources: tuple[str, ...]
    mode: Literal["all", "any"] | int = "all"


class LeaseSpec(msgspec.Struct, frozen=True, kw_only=True):
    """TASK-10: seconds; None leaves it to the runtime."""

    ttl: float | None = None
    heartbeat: float | None = None


class Step(Located, frozen=True, kw_only=True):
    """A Petri-net transition: admission, pipeline, router."""

    name: str
    desc: str = ""
    admission: Admission | None = None
    join: Join | None = None
    limit: Limit | None = None
    timeout: float | None = None
    lease: LeaseSpec = LeaseSpec()
    loop: Loop | None = None
    tasks: tuple[Task, ...] = ()
    router: Router | None = None


class Playbook(Located, frozen=True, kw_only=True):
    """The whole document."""

    name: str
    path: str
    metadata: dict[str, Any]
    steps: tuple[Step, ...]
    executor: Executor = Executor()
    workload: dict[str, Any] = {}
    keychain: tuple[KeychainEntry, ...] = ()
    workbook: dict[str, Task] = {}
