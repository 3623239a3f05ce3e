"""Which words of older dialects are met in practice, and what replaced each? (DIA, VAL-2)"""

import re

import msgspec

from noetl.late import late

MIGRATE = "`noetl migrate FILE` does it for you."


class Retired(msgspec.Struct, frozen=True):
    """What to say about a word of an older dialect."""

    code: str
    message: str
    hint: str


def _word(word: str, block: str, instead: str, code: str = "retired-word") -> Retired:
    return Retired(code, f"'{word}' is an older word of {block}", f"{instead} {MIGRATE}")


_RULES = "write spec: { policy: { rules: [ { when: …, then: { do: … } } ] } } in the task."
_ADMIT = (
    'write spec: { policy: { admit: { rules: [ { when: "{{ … }}", then: { allow: true } }, '
    "{ else: { then: { allow: false } } } ] } } }."
)
_ARCS = 'write next: { arcs: [ { step: …, when: "{{ … }}" } ] }.'
_SINK = (
    "write a storage task at the end of the pipeline: tool: [ …, { save: { kind: postgres, … } } ]."
)
_VARS = "write spec: { policy: { rules: [ { else: { then: { set_ctx: { … } } } } ] } } in the task."
_RETRY = (
    "write spec: { policy: { rules: [ { when: \"{{ outcome.status == 'error' }}\", "
    "then: { do: retry, attempts: 3, backoff: exponential, delay: 1 } } ] } } in the task."
)
_PIPE = "write tool: [ { label: { kind: … } }, … ]: the list is the pipeline."

_STEP_WORDS = {
    "when": Retired(
        "step-when",
        "a step has no 'when' of its own; admission decides which tokens may fire it",
        f"{_ADMIT} {MIGRATE}",
    ),
    "case": _word("case", "a step", f"{_ARCS} For what happens inside the pipeline, {_RULES}"),
    "eval": _word("eval", "a step", _RULES),
    "expr": _word("expr", "a step", _RULES),
    "pipe": _word("pipe", "a step", _PIPE),
    "sink": _word("sink", "a step", _SINK),
    "retry": _word("retry", "a step", _RETRY),
    "vars": _word("vars", "a step", _VARS),
    "args": _word(
        "args", "a step", "write args: { … } in the task, or on the arc that leads here."
    ),
    "input": _word("input", "a step", "write args: { … } in the task."),
    "set": _word("set", "a step", _VARS),
    "set_ctx": _word("set_ctx", "a step", _VARS),
}
_TASK_WORDS = {
    "eval": _word("eval", "a task", _RULES),
    "expr": _word("expr", "a task", _RULES),
    "case": _word("case", "a task", _RULES),
    "pipe": _word("pipe", "a task", _PIPE),
    "sink": _word("sink", "a task", _SINK),
    "retry": _word("retry", "a task", _RETRY),
    "vars": _word("vars", "a task", _VARS),
    "when": _word("when", "a task", _RULES),
    "set": _word("set", "a task", _VARS),
    "set_ctx": _word("set_ctx", "a task", _VARS),
    "set_iter": _word("set_iter", "a task", _VARS.replace("set_ctx", "set_iter")),
    "policy": _word("policy", "a task", "write it below spec: spec: { policy: { rules: [ … ] } }."),
    "endpoint": _word("endpoint", "a task", "write url: …."),
}
_RULE_WORDS = {
    "expr": _word("expr", "a rule", 'write when: "{{ … }}", then: { do: … }.'),
    **{
        word: _word(word, "a rule", f"write it below then: then: {{ {word}: … }}.")
        for word in ("do", "attempts", "backoff", "delay", "to", "set_iter", "set_ctx", "set_prev")
    },
}
_THEN_WORDS = {
    "set_vars": _word("set_vars", "a directive", "write set_iter: { … }."),
    "set_shared": _word(
        "set_shared",
        "a directive",
        "write set_ctx: { … }, and loop: { spec: { policy: { reduce: { total: sum } } } }.",
    ),
    "set": _word("set", "a directive", "write set_ctx: { … }."),
    "retry": _word("retry", "a directive", "write do: retry, attempts: 3."),
    "sink": _word("sink", "a directive", _SINK),
    "next": _word("next", "a directive", _ARCS),
    "vars": _word("vars", "a directive", "write set_ctx: { … }."),
}
_LOOP_WORDS = {
    "mode": _word("mode", "a loop", "write it below spec: spec: { mode: parallel }."),
    "max_in_flight": _word(
        "max_in_flight", "a loop", "write it below spec: spec: { max_in_flight: 10 }."
    ),
    "collection": _word("collection", "a loop", 'write in: "{{ … }}".'),
    "element": _word("element", "a loop", "write iterator: name."),
}

_BEFORE = "the step before names it: next: { arcs: [ { step: … } ] }"
_AGAIN = _RETRY.removesuffix(".")
_POOL = "a playbook has one pool: executor: { spec: { pool: … } }"
ELSEWHERE: dict[str, dict[str, str]] = {
    "step": {
        **dict.fromkeys(("depends_on", "needs", "upstream", "requires", "after"), _BEFORE),
        **dict.fromkeys(("retries", "retry_delay", "max_retries"), _AGAIN),
        **dict.fromkeys(("pool", "queue"), _POOL),
    },
    "step spec": {**dict.fromkeys(("pool", "queue"), _POOL), "retries": _AGAIN},
}
"""Block → words of other orchestrators, and how the same is written here."""

RETIRED: dict[str, dict[str, Retired]] = {
    "playbook": {
        "vars": Retired(
            "root-vars",
            "'vars' is not allowed at the root",
            "inputs go to workload: { … }, state to ctx by set_ctx in a rule. " + MIGRATE,
        ),
        "steps": _word("steps", "a playbook", "write workflow: [ … ]."),
    },
    "executor": {
        word: _word(word, "the executor", "remove it: every runtime accepts every playbook.")
        for word in ("profile", "version", "requires")
    },
    "step": _STEP_WORDS,
    "step spec": {
        "next_mode": _word("next_mode", "a step", "write next: { spec: { mode: inclusive } }."),
    },
    "task": _TASK_WORDS,
    "task spec": {
        "eval": _word("eval", "a task", _RULES),
        "retry": _word("retry", "a task", _RETRY),
        "code": _word("code", "a task's spec", "write it beside kind: code: …."),
        "args": _word("args", "a task's spec", "write it beside kind: args: { … }."),
    },
    "rule": _RULE_WORDS,
    "else": _RULE_WORDS,
    "then": _THEN_WORDS,
    "loop": _LOOP_WORDS,
    "next": {
        word: _word(word, "a router", _ARCS) for word in ("when", "then", "else", "step", "case")
    },
    "next spec": {
        "on_no_match": _word(
            "on_no_match",
            "a router",
            "add an arc without when as the last: no match ends the branch.",
        ),
    },
    "arc": {
        "then": _word("then", "an arc", 'write step: …, when: "{{ … }}".'),
        "else": _word("else", "an arc", "write an arc without when as the last."),
        "set": _word("set", "an arc", "write args: { … }."),
        "set_ctx": _word("set_ctx", "an arc", "write set_ctx in a rule of the task before it."),
        "condition": _word("condition", "an arc", 'write when: "{{ … }}".'),
    },
}

NEXT_LIST = Retired(
    "retired-word",
    "'next' is a list or a name, expected a mapping with arcs",
    "write next: { arcs: [ { step: … } ] }, with spec: { mode: inclusive } where all may fire. "
    + MIGRATE,
)
TOOL_MAPPING = Retired(
    "retired-word",
    "'tool' is one mapping, expected a list of tasks with labels",
    f"write tool: [ {{ label: {{ kind: … }} }} ]. {MIGRATE}",
)
NAMED_TASK = Retired(
    "retired-word",
    "a pipeline entry with 'name' and 'kind' is an older form",
    f"write the name as the key: - label: {{ kind: … }}. {MIGRATE}",
)
EMPTY_INPUT = Retired(
    "retired-word",
    "an empty mapping in place of an input is an older form",
    f"leave the input out. {MIGRATE}",
)
WORKBOOK_LIST = Retired(
    "retired-word",
    "'workbook' is a list, expected a mapping with tasks",
    f"write workbook: {{ tasks: {{ name: {{ kind: … }} }} }}. {MIGRATE}",
)

# By block and key: the value, or the type of the value, that an older dialect had there.
RETIRED_VALUES: dict[tuple[str, str], dict[str, Retired]] = {
    ("step", "tool"): {"dict": TOOL_MAPPING},
    ("then", "backoff"): {
        "fixed": Retired(
            "retired-word",
            "the backoff 'fixed' is an older word",
            f"write backoff: none, which keeps the delay constant. {MIGRATE}",
        ),
    },
    ("loop spec", "mode"): {
        "async": Retired(
            "retired-word",
            "the mode 'async' is an older word",
            f"write mode: parallel. {MIGRATE}",
        ),
    },
}


class OlderName(msgspec.Struct, frozen=True):
    """A name or value in templates that only an older dialect had."""

    name: str
    needle: str
    """What the text of the document must hold for the pattern to be worth trying."""
    pattern: re.Pattern[str]
    message: str
    hint: str


def _name(name: str, needle: str, pattern: str, instead: str) -> OlderName:
    said = f"the template uses `{name}`, which only older dialects had"
    return OlderName(name, needle, late(pattern), said, f"{instead} {MIGRATE}")


OLDER_NAMES: tuple[OlderName, ...] = (
    _name("vars", "vars.", r"(?<![\w.])vars\.\w", "write ctx.name, set by set_ctx, or iter.name."),
    _name("token", "token.args", r"(?<![\w.])token\.args\b", "write args.name."),
    _name("loop_index", "loop_index", r"(?<![\w.])loop_index\b", "write iter.index."),
    _name(
        "output", "output.", r"(?<![\w.])output\.(status|result|error|data)\b", "write outcome.…."
    ),
    _name(
        "outcome.status == 'success'",
        "success",
        r"""outcome\.status\s*[!=]=\s*['"]success['"]""",
        "the status is 'ok' or 'error': write outcome.status == 'ok'.",
    ),
    _name(
        "outcome.py.exception",
        "py.exception",
        r"outcome\.py\.exception\b(?!_)",
        "write outcome.py.exception_type.",
    ),
)
