"""`retry` of a step or a task → rules of the task (S2 §7, TASK-3)."""

import re
from typing import Any

from noetl.playbook.dialects.draft import Draft, own_tasks
from noetl.playbook.dialects.guards import TRUE, all_of, expression_of, negation, parts_of
from noetl.playbook.dialects.pipeline import (
    IS_ERROR,
    fail_on_error,
    kind_of,
    main_task,
    quoted,
    rule_slot,
    rules_in,
    then_node,
)
from noetl.playbook.dialects.sight import Sight
from noetl.playbook.dialects.tree import Mapping, Scalar, Sequence, TreeSlot, plain

MOST_ATTEMPTS = 3
"""What a retry without `max_attempts` comes to; the dialect names no number."""
_KEYS = (
    "max_attempts",
    "initial_delay",
    "backoff_multiplier",
    "retry_when",
    "stop_when",
    "max_delay",
    "jitter",
)
_PUBLIC = ("attempts", "delay", "backoff", "retry_on_status", "retry_on", "backoff_seconds")
"""Words of public playbooks for the same, and for what is retried."""
_FIRST = ("backoff_seconds", "delay")
_BACKOFFS = {"fixed": None, "none": None, "constant": None}
_ERRORS_ONLY = re.compile(
    r"outcome\.status\s*==\s*'error'|outcome\.error(\.\w+)?(\s+is\s+(defined|not\s+none))?"
    r"|not\s+\(outcome\.status == 'ok'\)|outcome\.error\s*!=\s*none"
    r"|outcome\.http\.status\s*(>=\s*[45]\d\d|>\s*399|==\s*[45]\d\d)"
    r"|outcome\.http\.status\s+in\s*[\[(]\s*[45]\d\d(\s*,\s*[45]\d\d)*\s*,?\s*[\])]"
)


def retry_of_step(draft: Draft, step: Mapping) -> None:
    """The retry of a step's one task."""
    slot = step.slot("retry")
    if slot is None:
        return
    task = main_task(step)
    several = [one for one in own_tasks(step) if one.key != "bind" or one.node is task]
    if task is None or len(several) != 1 or "policy" in (task.mapping("spec") or ""):
        draft.refuse(
            slot,
            "a retry of the whole step has no counterpart where it has several tasks or rules",
            "write a rule with do: retry in the task you mean",
        )
        return
    rule = retry_rule(draft, slot, Sight("rule", kind_of(draft, task)), TRUE)
    if rule is None:
        return
    step.pop("retry")
    rules = rules_in(task, slot)
    rules.slots.append(rule)
    fail_on_error(rules, slot)
    draft.left["case rules", id(task)] = slot
    draft.tell(slot, "retry", "spec.policy.rules: do: retry", now=rule)


def retry_of_task(draft: Draft, task: Mapping) -> None:
    """A retry beside `kind`; what is not retried fails."""
    slot = task.slot("retry")
    if slot is None or "kind" not in task or "step" in task:
        return
    if "policy" in (task.mapping("spec") or ""):
        draft.refuse(
            slot,
            "'retry' is set next to the rules of a policy",
            "write it as a rule: then: { do: retry, attempts: 3, delay: 1 }",
        )
        return
    rule = retry_rule(draft, slot, Sight("rule", kind_of(draft, task)), TRUE)
    if rule is None:
        return
    at = task.place("retry")
    task.pop("retry")
    policy = task.within("spec", like=slot, at=at).within("policy", like=slot)
    rules = Sequence([rule], line=slot.line)
    made = policy.put("rules", rules, like=slot)
    task.flow = False
    fail_on_error(rules, slot)
    draft.left["case rules", id(task)] = slot
    draft.tell(slot, "retry: { … }", "rules of the policy", now=made)


def retry_rule(draft: Draft, slot: TreeSlot, sight: Sight, condition: str) -> TreeSlot | None:
    """The rule of a `retry` block; `condition` is that of the case around it."""
    node = slot.node
    if isinstance(node, Scalar) and isinstance(node.value, int) and node.value is not True:
        node = Mapping([TreeSlot(node, key="max_attempts", line=slot.line)], line=slot.line)
    if not isinstance(node, Mapping):
        draft.refuse(slot, "'retry' is not a mapping", "write retry: { max_attempts: 3 }")
        return None
    known = True
    for one in node.slots:
        if one.key not in (*_KEYS, *_PUBLIC):
            draft.refuse(
                one,
                f"'{one.key}' of a retry has no counterpart",
                f"a retry knows {', '.join(_KEYS)}",
            )
            known = False
    attempts = _attempts(draft, node, slot)
    if attempts is None or not known or not _are_numbers(draft, node):
        return None
    guard = _guard(draft, node, sight._replace(attempts=attempts), condition)
    if guard is None:
        return None
    then = then_node(slot, do="retry", attempts=attempts, **_delays(node, slot))
    return rule_slot(guard, then, slot)


def _attempts(draft: Draft, node: Mapping, slot: TreeSlot) -> int | None:
    given = node.slot("max_attempts") or node.slot("attempts")
    value = MOST_ATTEMPTS if given is None else plain(given.node)
    if isinstance(value, str) and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        draft.refuse(
            given or slot,
            "'max_attempts' is not a whole number >= 1; it cannot be computed while it runs",
            "write a number, such as max_attempts: 3",
        )
        return None
    return value


def _are_numbers(draft: Draft, node: Mapping) -> bool:
    """The delay and its growth are numbers, or expressions."""
    wrong = [
        slot
        for key in ("initial_delay", "backoff_multiplier", *_FIRST)
        if (slot := node.slot(key)) is not None
        and not isinstance(plain(slot.node), int | float)
        and expression_of(plain(slot.node)) is None
    ]
    for slot in wrong:
        draft.refuse(slot, f"'{slot.key}' is not a number", f"write {slot.key}: 2")
    return not wrong


def _guard(draft: Draft, node: Mapping, sight: Sight, condition: str) -> str | None:
    """When it runs again: on an error, or as `retry_when` and `stop_when` say."""
    asked: list[str] = []
    for key in ("retry_when", "stop_when"):
        slot = node.slot(key)
        if slot is None:
            continue
        expression = expression_of(plain(slot.node))
        if expression is None:
            draft.refuse(
                slot, f"'{key}' is not one whole expression", f'write {key}: "{{{{ … }}}}"'
            )
            return None
        spelled = expression_of(sight.spelled(f"{{{{ {expression} }}}}")) or ""
        asked.append(negation(spelled) if key == "stop_when" else spelled)
    for key, name in (("retry_on_status", "http.status"), ("retry_on", "error.kind")):
        named = node.slot(key)
        values = plain(named.node) if named is not None else None
        if named is not None:
            listed = values if isinstance(values, list) else [values]
            asked += [IS_ERROR, f"outcome.{name} in {listed}"]
    if not asked and condition == TRUE:
        return IS_ERROR
    guard = all_of([condition, *asked])
    # The last run counts as it is: ok goes on, an error fails (S2 §7.2).
    return guard if errors_only(guard) else all_of([guard, f"_attempt < {sight.attempts}"])


def errors_only(expression: str) -> bool:
    """Whether it is false for every outcome that is ok, as far as its text shows."""
    return all(
        any(_ERRORS_ONLY.fullmatch(one.strip("() ") if one[0] == "(" else one) for one in every)
        for every in (parts_of(one, "and") for one in parts_of(expression, "or"))
    )


def _delays(node: Mapping, slot: TreeSlot) -> dict[str, Any]:
    """`initial_delay · backoff_multiplier^(n-1)`; doubling has a word of its own."""
    first = next((node.slot(key) for key in ("initial_delay", *_FIRST) if key in node), None)
    growth = node.slot("backoff_multiplier")
    more = {key: node.node(key) for key in ("max_delay", "jitter") if key in node}
    word = node.text("backoff")
    if word is not None and growth is None:
        more = {"delay": first.node, **more} if first is not None else more
        return {"backoff": _BACKOFFS.get(word, word), **more}
    if first is None and growth is None:
        return more
    delay: Any = plain(first.node) if first is not None else 1
    factor = plain(growth.node) if growth is not None else 1
    if factor in (1, 2):
        backoff = "exponential" if factor == 2 else None
        kept = first.node if first is not None else delay
        return {"backoff": backoff, "delay": kept, **more}
    base, by = expression_of(delay) or delay, expression_of(factor) or factor
    text = f"{{{{ {_factor(base)} * {_factor(by)} ** (_attempt - 1) }}}}"
    return {"delay": quoted(text, slot.line), **more}


def _factor(value: Any) -> str:
    return f"({value})" if isinstance(value, str) else str(value)
