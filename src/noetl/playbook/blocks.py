"""Which blocks has the language, and which keys has each? (DOC, ADM, TASK, LOOP, NEXT)"""

from noetl.playbook.limit_blocks import LIMIT, LIMIT_PER
from noetl.playbook.shape import (
    Block,
    Boolean,
    Choice,
    Either,
    Field,
    Free,
    FreeList,
    FreeMapping,
    Guard,
    Inside,
    Number,
    Template,
    Text,
    TextList,
)

API_VERSION = "noetl.io/v2"
DOCUMENT_KIND = "Playbook"
DIRECTIVES = ("continue", "retry", "jump", "break", "fail")
BACKOFFS = ("none", "linear", "exponential")
MODES = ("exclusive", "inclusive")
REDUCERS = ("sum", "min", "max", "append", "extend", "merge", "count", "first", "last")
PROVIDERS = ("environment", "file", "vault", "gcp", "aws", "store")
CREDENTIAL_KINDS = (
    *("postgres", "snowflake", "gcs", "s3", "basic", "bearer", "api_key", "oauth2", "vault"),
    *("aws", "gcp", "generic"),
)
RESERVED_ITERATORS = ("index", "parent")

_RULE_FORMS = (("when", "then"), ("else",))
_SECONDS = Number(minimum=0)
_COUNT = Number(minimum=1, whole=True)
_ARGS = FreeMapping(templates=True)
_NAMES = FreeMapping(templates=True, names=True)


ROOT = Block(
    "playbook",
    "A playbook: what it is, its inputs, and the steps that run.",
    {
        "apiVersion": Field(Choice((API_VERSION,)), "Version of the language.", "DOC-2", True),
        "kind": Field(Choice((DOCUMENT_KIND,)), "What the document is.", "DOC-2", True),
        "metadata": Field(Inside("metadata"), "Name, path and notes.", "DOC-2", True),
        "keychain": Field(FreeList("keychain entry"), "Credentials that tasks may name.", "DOC-6"),
        "executor": Field(Inside("executor"), "How and where the playbook runs.", "DOC-4"),
        "workload": Field(_ARGS, "Inputs with their defaults; a request overrides them.", "DOC-3"),
        "workflow": Field(
            FreeList("step", least=1),
            "The steps, each `- step: name` with `tool` and `next`.",
            "DOC-1",
            True,
        ),
        "workbook": Field(Inside("workbook"), "Tasks that several steps use.", "DOC-6"),
    },
)
METADATA = Block(
    "metadata",
    "Name, path and notes of the playbook; other keys are free.",
    {
        "name": Field(Text(), "Name of the playbook.", "DOC-2", True),
        "path": Field(Text(), "Path in the catalog, such as `sales/daily`.", "DOC-2", True),
        "version": Field(Free(), "Version of the playbook.", "DOC-2"),
        "description": Field(Free(), "What the playbook is for.", "DOC-2"),
        "labels": Field(Free(), "Labels for finding it.", "DOC-2"),
    },
    open=True,
)
EXECUTOR = Block(
    "executor",
    "How and where the playbook runs.",
    {
        "kind": Field(
            Choice(("local", "distributed")),
            "A hint; every runtime accepts both.",
            "DOC-4",
            default="local",
        ),
        "spec": Field(Inside("executor spec"), "Options of the whole execution.", "DOC-4"),
    },
)
EXECUTOR_SPEC = Block(
    "executor spec",
    "Options of the whole execution.",
    {
        "pool": Field(Text(), "Pool of workers.", "DOC-4", default="default"),
        "entry_step": Field(Text(), "Step that gets the first token.", "DOC-5"),
        "final_step": Field(Text(), "Step that runs once at the end.", "NEXT-6"),
        "isolation": Field(
            Choice(("process", "shared")),
            "Whether a `python` task may find what earlier ones of its execution left loaded.",
            "TOOL-5",
            default="process",
        ),
        "policy": Field(Inside("executor policy"), "Limits and results.", "DOC-4"),
        "limit": Field(Inside("limit"), "How many executions run at once.", "LIMIT-1"),
        "defaults": Field(Inside("defaults"), "Defaults for every `spec`.", "DOC-4"),
    },
)
EXECUTOR_POLICY = Block(
    "executor policy",
    "Limits and results of the execution.",
    {
        "results": Field(Inside("results"), "How results are kept.", "RES-1"),
        "limits": Field(Inside("limits"), "What an execution may use.", "DOC-4"),
        "fail_fast": Field(
            Boolean(), "Whether a failure stops the other branches.", "NEXT-5", default=False
        ),
        "reduce": Field(
            FreeMapping(names=True, words=REDUCERS),
            "How all writes to a key of `ctx` are folded, in the order of the log.",
            "SCOPE-6",
        ),
    },
)
RESULTS = Block(
    "results",
    "How results are kept.",
    {
        "reference_first": Field(
            Boolean(), "Whether every result is kept outside the log.", "RES-1", default=False
        ),
    },
)
LIMITS = Block(
    "limits",
    "What an execution may use.",
    {
        "max_payload_bytes": Field(
            _COUNT, "Larger values are kept outside the log.", "EVT-4", default=1_048_576
        ),
        "max_task_runs": Field(
            _COUNT, "Task runs of one step run or iteration.", "DOC-4", default=100_000
        ),
        "max_step_runs": Field(_COUNT, "Step runs of an execution.", "DOC-4", default=100_000),
        "timeout": Field(_SECONDS, "Seconds for the whole execution.", "DOC-4"),
    },
)
DEFAULTS = Block(
    "defaults",
    "Defaults for every `spec` of a kind of block; the nearest wins.",
    {
        "step": Field(Inside("step spec"), "Under the `spec` of every step.", "DOC-4"),
        "task": Field(Inside("task spec"), "Under the `spec` of every task.", "DOC-4"),
        "loop": Field(Inside("loop spec"), "Under the `spec` of every loop.", "DOC-4"),
        "next": Field(Inside("next spec"), "Under the `spec` of every router.", "DOC-4"),
    },
)
WORKBOOK = Block(
    "workbook",
    "Tasks that several steps use.",
    {"tasks": Field(FreeMapping(of="task"), "Tasks by name.", "DOC-6")},
)
KEYCHAIN_ENTRY = Block(
    "keychain entry",
    "A credential that tasks name by `auth`; further keys are its fields.",
    {
        "name": Field(Text(), "Name that `auth` refers to.", "KEY-1", True),
        "kind": Field(Text(), "Kind of credential, such as `postgres` or `bearer`.", "KEY-1", True),
        "provider": Field(Choice(PROVIDERS), "Who keeps the secret.", "KEY-1", default="store"),
        "key": Field(Text(), "Its name there; the entry's name if left out.", "KEY-1"),
        "fields": Field(FreeMapping(), "Its fields, also those named like a key above.", "KEY-1"),
    },
    open=True,
)
STEP = Block(
    "step",
    "A transition: admission, pipeline of tasks, router.",
    {
        "step": Field(Text(), "Name of the step.", "TASK-1", True),
        "desc": Field(Text(empty=True), "What the step is for.", "TASK-1"),
        "spec": Field(Inside("step spec"), "Admission and options.", "ADM-1"),
        "loop": Field(Inside("loop"), "Runs the pipeline for each element.", "LOOP-1"),
        "tool": Field(FreeList("pipeline entry"), "The tasks, in order.", "TASK-1"),
        "next": Field(Inside("next"), "Where tokens go afterwards.", "NEXT-1"),
    },
    requires_any=("tool", "next"),
)
STEP_SPEC = Block(
    "step spec",
    "Admission and options of a step.",
    {
        "policy": Field(Inside("step policy"), "Admission.", "ADM-1"),
        "timeout": Field(_SECONDS, "Seconds for the whole step run.", "TASK-10"),
        "lease": Field(Inside("lease"), "How long a worker owns the run.", "TASK-10"),
        "join": Field(Inside("join"), "Waits for tokens of several steps.", "NEXT-7"),
        "limit": Field(
            Inside("limit"), "How many runs of it there are at once, in all executions.", "LIMIT-1"
        ),
    },
)
STEP_POLICY = Block(
    "step policy",
    "Policies of a step.",
    {"admit": Field(Inside("admit"), "Which tokens may fire the step.", "ADM-1")},
)
ADMIT = Block(
    "admit",
    "Which tokens may fire the step.",
    {
        "mode": Field(
            Choice(MODES),
            "exclusive: the first match decides; inclusive: one refusal refuses.",
            "ADM-1",
            default="exclusive",
        ),
        "rules": Field(FreeList("admit rule"), "The rules, top-down.", "ADM-1", True),
        "on_deny": Field(
            Choice(("park", "drop")), "What becomes of a refused token.", "ADM-3", default="park"
        ),
    },
)
ADMIT_RULE = Block(
    "admit rule",
    "A guard and its verdict.",
    {
        "when": Field(Guard(), "When the rule matches.", "ADM-1"),
        "then": Field(Inside("admit then"), "The verdict.", "ADM-1"),
        "else": Field(Inside("admit else"), "The verdict where no rule matched.", "ADM-1"),
    },
    forms=_RULE_FORMS,
)
ADMIT_ELSE = Block(
    "admit else",
    "The verdict where no rule matched.",
    {"then": Field(Inside("admit then"), "The verdict.", "ADM-1", True)},
)
ADMIT_THEN = Block(
    "admit then",
    "The verdict.",
    {"allow": Field(Boolean(), "Whether the token may fire the step.", "ADM-1", True)},
)
LEASE = Block(
    "lease",
    "How long a worker keeps a step run without renewing its lease.",
    {
        "ttl": Field(_SECONDS, "Seconds until the lease ends.", "TASK-10"),
        "heartbeat": Field(_SECONDS, "Seconds between renewals.", "TASK-10"),
    },
)
JOIN = Block(
    "join",
    "Waits for tokens of several steps and fires once.",
    {
        "from": Field(TextList(), "The steps whose tokens meet.", "NEXT-7", True),
        "mode": Field(
            Either((Choice(("all", "any")), _COUNT)),
            "How many of them.",
            "NEXT-7",
            default="all",
        ),
    },
)
LOOP = Block(
    "loop",
    "Runs the pipeline for each element of a collection.",
    {
        "in": Field(
            Either((Template(), FreeList())), "The collection: expression or list.", "LOOP-1", True
        ),
        "iterator": Field(Text(), "Name of the element below `iter`.", "LOOP-1", True),
        "spec": Field(Inside("loop spec"), "How the iterations run.", "LOOP-1"),
    },
)
LOOP_SPEC = Block(
    "loop spec",
    "How the iterations run.",
    {
        "mode": Field(
            Choice(("sequential", "parallel")),
            "One after the other, or several at once.",
            "LOOP-1",
            default="sequential",
        ),
        "max_in_flight": Field(_COUNT, "Iterations at once in parallel.", "LOOP-1", default=10),
        "policy": Field(Inside("loop policy"), "Placement, failures and reducers.", "LOOP-1"),
    },
)
LOOP_POLICY = Block(
    "loop policy",
    "Placement, failures and reducers of a loop.",
    {
        "exec": Field(
            Choice(("local", "distributed")),
            "One worker, or the whole pool; local if sequential, distributed if parallel.",
            "LOOP-2",
        ),
        "on_failure": Field(
            Choice(("stop", "continue")),
            "What a failed iteration means for the others.",
            "LOOP-4",
            default="stop",
        ),
        "reduce": Field(
            FreeMapping(names=True, words=REDUCERS),
            "How writes to a key of `ctx` are folded.",
            "LOOP-5",
        ),
    },
)
NEXT = Block(
    "next",
    "Where tokens go after the step.",
    {
        "spec": Field(Inside("next spec"), "How arcs are chosen.", "NEXT-1"),
        "arcs": Field(FreeList("arc"), "The arcs, in order.", "NEXT-1", True),
    },
)
NEXT_SPEC = Block(
    "next spec",
    "How arcs are chosen.",
    {
        "mode": Field(
            Choice(MODES),
            "exclusive: the first match; inclusive: all matches.",
            "NEXT-1",
            default="exclusive",
        ),
        "policy": Field(Inside("next policy"), "What failures may fire.", "NEXT-3"),
    },
)
NEXT_POLICY = Block(
    "next policy",
    "What failures may fire.",
    {
        "on_failure": Field(
            Choice(("guarded", "all")),
            "Whether a failure fires arcs with `when` only, or all.",
            "NEXT-3",
            default="guarded",
        ),
    },
)
ARC = Block(
    "arc",
    "Leads a token to a step.",
    {
        "step": Field(Text(), "The step that it leads to.", "NEXT-1", True),
        "when": Field(Guard(), "When it fires; without it, after success.", "NEXT-3"),
        "args": Field(_ARGS, "What the token carries.", "NEXT-4"),
        "spec": Field(FreeMapping(), "Options of the arc.", "NEXT-1"),
    },
)
TASK = Block(
    "task",
    "A tool call; further keys are the inputs of its kind.",
    {
        "kind": Field(Text(), "The tool kind.", "TASK-1", True),
        "spec": Field(Inside("task spec"), "Options and policy.", "TASK-11"),
    },
    open=True,
)
TASK_SPEC = Block(
    "task spec",
    "Options and policy of a task.",
    {
        "timeout": Field(
            Either((_SECONDS, Template(), Inside("timeout"))), "Seconds until it ends.", "TASK-7"
        ),
        "policy": Field(Inside("policy"), "What each outcome means.", "TASK-2"),
        "pool": Field(_COUNT, "Connections that are kept open.", "TASK-11"),
        "client_retries": Field(
            Number(minimum=0, whole=True), "Retries inside the tool.", "TASK-11", default=0
        ),
        "resources": Field(FreeMapping(), "Processors and memory: `cpu`, `memory`.", "TASK-11"),
        "cache": Field(Inside("cache"), "Keeps the outcome for later runs.", "CACHE-1"),
    },
)
CACHE = Block(
    "cache",
    "Keeps an ok outcome, and gives it again to tasks with the same key.",
    {
        "key": Field(Text(), "What the outcome depends on; a template.", "CACHE-1", True),
        "ttl": Field(Number(minimum=1), "Seconds for which it is kept.", "CACHE-1", True),
    },
)
ITERATOR_SPEC = Block(
    "iterator spec",
    "Options and policy of an `iterator` task and of its loop.",
    {
        **TASK_SPEC.fields,
        **LOOP_SPEC.fields,
        "policy": Field(Inside("iterator policy"), "Policy of task and loop.", "LOOP-7"),
    },
)
TIMEOUT = Block(
    "timeout",
    "Seconds for each phase.",
    {
        "connect": Field(_SECONDS, "Until connected.", "TASK-7"),
        "read": Field(_SECONDS, "Between two pieces of an answer.", "TASK-7"),
        "total": Field(_SECONDS, "In all.", "TASK-7"),
    },
)
POLICY = Block(
    "policy",
    "What each outcome of the task means.",
    {
        "rules": Field(
            FreeList("rule"), "The rules, top-down; the first match wins.", "TASK-2", True
        )
    },
)
ITERATOR_POLICY = Block(
    "iterator policy",
    "Policy of an `iterator` task and of its loop.",
    {
        "rules": Field(FreeList("rule"), "The rules, top-down; the first match wins.", "TASK-2"),
        **LOOP_POLICY.fields,
    },
)
RULE = Block(
    "rule",
    "A guard and the directive that it orders.",
    {
        "when": Field(Guard(), "When the rule matches.", "TASK-2"),
        "then": Field(Inside("then"), "What to do.", "TASK-2"),
        "else": Field(Inside("else"), "What to do where no rule matched.", "TASK-2"),
    },
    forms=_RULE_FORMS,
)
ELSE = Block(
    "else",
    "What to do where no rule matched.",
    {"then": Field(Inside("then"), "What to do.", "TASK-2", True)},
)
THEN = Block(
    "then",
    "The directive, and what is written before it takes effect.",
    {
        "do": Field(Choice(DIRECTIVES), "The directive.", "TASK-2", default="continue"),
        "attempts": Field(_COUNT, "Greatest number of runs in all, for retry.", "TASK-3"),
        "backoff": Field(Choice(BACKOFFS), "How the delay grows.", "TASK-3", default="none"),
        "delay": Field(
            Either((_SECONDS, Template())), "Seconds before a retry or jump.", "TASK-3", default=0
        ),
        "max_delay": Field(_SECONDS, "Greatest delay in seconds.", "TASK-3"),
        "jitter": Field(
            Number(minimum=0, maximum=1), "Random part of the delay.", "TASK-3", default=0
        ),
        "to": Field(Text(), "Label of the task to jump to.", "TASK-4"),
        "message": Field(Text(), "Why it fails; a template.", "TASK-4"),
        "set_iter": Field(_NAMES, "Writes to `iter`.", "TASK-5"),
        "set_ctx": Field(_NAMES, "Writes to `ctx`.", "TASK-5"),
        "set_prev": Field(Free(templates=True), "Replaces `_prev`.", "TASK-5"),
    },
)

BLOCKS: dict[str, Block] = {
    block.name: block
    for block in (
        ROOT,
        METADATA,
        EXECUTOR,
        EXECUTOR_SPEC,
        EXECUTOR_POLICY,
        RESULTS,
        LIMITS,
        DEFAULTS,
        WORKBOOK,
        KEYCHAIN_ENTRY,
        STEP,
        STEP_SPEC,
        LIMIT,
        LIMIT_PER,
        STEP_POLICY,
        ADMIT,
        ADMIT_RULE,
        ADMIT_ELSE,
        ADMIT_THEN,
        LEASE,
        JOIN,
        LOOP,
        LOOP_SPEC,
        LOOP_POLICY,
        NEXT,
        NEXT_SPEC,
        NEXT_POLICY,
        ARC,
        TASK,
        TASK_SPEC,
        ITERATOR_SPEC,
        ITERATOR_POLICY,
        CACHE,
        TIMEOUT,
        POLICY,
        RULE,
        ELSE,
        THEN,
    )
}
