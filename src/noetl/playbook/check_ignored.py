"""What would be ignored, and what goes on though it failed? (VAL-6)"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from noetl.late import late
from noetl.playbook.blocks import CREDENTIAL_KINDS, RESERVED_ITERATORS
from noetl.playbook.check_graph import arcs_of
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Do, Playbook, Rule, Then
from noetl.playbook.reader import Reader
from noetl.playbook.suggest import listed

_KNOBS: Final = ("pool", "client_retries", "resources")
_PHASES: Final = ("connect", "read")
_TIMEOUTS: Final = "give the tasks inside, or the step, a spec.timeout"
DIRECTIVES: Final[Mapping[Do, tuple[str, ...]]] = {
    "retry": ("attempts", "backoff", "delay", "max_delay", "jitter"),
    "jump": ("to", "delay"),
    "continue": (),
    "break": (),
    "fail": ("message",),
}
"""The keys of `then` that each directive reads, the `set_*` aside (TASK-3, TASK-4)."""
_MEANT: Final = {"to": "jump", "message": "fail", **dict.fromkeys(DIRECTIVES["retry"], "retry")}
_UNSET: Final = Then()
_ERROR: Final = late(
    r"""\{\{\s*(?:outcome\.status\s*==\s*(['"])error\1|outcome\.status\s*!=\s*(['"])ok\2
    |outcome\.error(?:\s+is\s+(?:defined|not\s+none))?)(?:\s+or\s.*)?\s*\}\}\s*""",
    re.VERBOSE | re.DOTALL,
)
"""A guard that is true for every error."""
LONGEST_GUARD: Final = 2_000


def check_knobs(reader: Reader, playbook: Playbook) -> None:
    """Keys of a task's own `spec` that its kind never reads; defaults may be for other kinds."""
    for task in tasks_of(playbook):
        kind = reader.kinds.get(task.kind)
        given = reader.value(reader.places[task.place.path])
        own = given.get("spec") if isinstance(given, dict) else None
        if kind is None or kind.knobs is None or not isinstance(own, dict):
            continue
        for name in _given(own, task.kind):
            at = reader.places.get(f"{task.place.path}.spec.{name}")  # None: it does not fit
            if name not in kind.knobs and at is not None:
                reader.report(
                    "ignored-key",
                    at,
                    f"a task of kind '{task.kind}' never reads 'spec.{name}'",
                    _TIMEOUTS if name == "timeout" else _remedy(kind.knobs),
                )


def _remedy(knobs: tuple[str, ...]) -> str:
    return f"remove it; it reads {listed(knobs)}" if knobs else "remove it"


def _given(spec: dict[str, Any], kind: str) -> Iterator[str]:
    yield from (name for name in _KNOBS if name in spec)
    timeout = spec.get("timeout")
    if kind == "iterator" and timeout is not None:  # nothing ends a loop inside a task yet
        yield "timeout"
        return
    if isinstance(timeout, dict):
        yield from (f"timeout.{name}" for name in _PHASES if name in timeout)


def check_directives(reader: Reader, playbook: Playbook) -> None:
    """Keys of `then` that its directive never reads."""
    for task in tasks_of(playbook):
        for rule in task.spec.rules or ():
            then = rule.then
            if then is _UNSET:
                continue
            for name in _MEANT:
                if name not in DIRECTIVES[then.do] and getattr(then, name) != getattr(_UNSET, name):
                    reader.report(
                        "ignored-key",
                        reader.places[f"{_then(rule)}.{name}"],
                        f"'{name}' beside 'do: {then.do}' is never read",
                        f"did you mean 'do: {_MEANT[name]}'?",
                    )


def _then(rule: Rule) -> str:
    return f"{rule.place.path}.{'else.then' if rule.when is None else 'then'}"


def check_arc_specs(reader: Reader, playbook: Playbook) -> None:
    """An arc has no knobs yet: what stands there changes nothing."""
    for _, arc in arcs_of(playbook):
        if arc.spec:
            reader.report(
                "ignored-key",
                reader.places[f"{arc.place.path}.spec"],
                "the 'spec' of an arc is never read",
                "remove it; how arcs are chosen is set in next: { spec: { mode: … } }",
            )


def check_limits(reader: Reader, playbook: Playbook) -> None:
    """LIMIT-1: `at_once` of each key beyond the `total` of all is never reached."""
    limits = [("executor", playbook.executor.limit)]
    limits += [(step.place.path, step.limit) for step in playbook.steps]
    for path, limit in limits:
        at = reader.places.get(f"{path}.spec.limit.at_once")  # none where a default brings it
        if at is None or limit is None or limit.at_once is None or limit.total is None:
            continue
        if limit.at_once > limit.total:
            reader.report(
                "ignored-key",
                at,
                f"'at_once' ({limit.at_once}) is never reached: 'total' ({limit.total}) is less",
                "make 'total' the greater one, which counts all keys together, or remove 'at_once'",
            )


def check_credential_kinds(reader: Reader, playbook: Playbook) -> None:
    """KEY-1: a kind that no tool knows."""
    for entry in playbook.keychain:
        kind = entry.kind.removesuffix("_credential")
        if kind not in CREDENTIAL_KINDS:
            known = f"kinds: {', '.join(CREDENTIAL_KINDS)}"
            reader.report(
                "unknown-credential-kind",
                reader.places[f"{entry.place.path}.kind"],
                f"no credential is of kind '{entry.kind}'",
                reader.suggest(kind, CREDENTIAL_KINDS, known),
            )


def check_reserved(reader: Reader, playbook: Playbook) -> None:
    """SCOPE-2: what a loop says about itself is not the author's to write."""
    waiting = [(step.loop is not None, task) for step in playbook.steps for task in step.tasks]
    while waiting:
        looped, task = waiting.pop()
        waiting += [(True, one) for one in (task.inner.tasks if task.inner is not None else ())]
        for rule in (task.spec.rules or ()) if looped else ():
            for name in RESERVED_ITERATORS:
                if name in rule.then.set_iter:
                    reader.report(
                        "reserved-name",
                        reader.places[f"{_then(rule)}.set_iter"],
                        f"'set_iter' writes '{name}', which is the loop's own",
                        f"use another name than {listed(RESERVED_ITERATORS)}",
                    )


def check_falling_through(reader: Reader, playbook: Playbook) -> None:
    """TASK-2: where no rule matches the pipeline goes on, after an error too."""
    for task in tasks_of(playbook):
        rules = task.spec.rules
        if not rules or task.spec.inherited or task.kind == "noop" or _takes_errors(rules):
            continue
        reader.report(
            "falls-through",
            reader.places[f"{task.place.path}.spec.policy"],
            f"an error of '{task.label}' that no rule matches lets the pipeline go on",
            "say what it means: - else: { then: { do: … } }, or a rule for "
            "\"{{ outcome.status == 'error' }}\"",
        )


def _takes_errors(rules: tuple[Rule, ...]) -> bool:
    return any(
        rule.when is None
        or rule.when is True
        or (
            isinstance(rule.when, str)
            and len(rule.when) < LONGEST_GUARD
            and _ERROR.fullmatch(rule.when.strip()) is not None
        )
        for rule in rules
    )
