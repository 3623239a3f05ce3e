"""The eval dialect: `when` of a step, `eval` of a task, `next` as a list, `vars` (DIA-S4)."""

from noetl.expression.syntax import check_guard, is_template
from noetl.playbook.dialects.draft import Draft, below_path
from noetl.playbook.dialects.pipeline import IS_ERROR, rule_slot, then_node
from noetl.playbook.dialects.shapes import covers_errors
from noetl.playbook.dialects.tree import Mapping, Scalar, Sequence, TreeSlot, flowing, node_of


def guard_of_step(draft: Draft, step: Mapping) -> None:
    """`when` → admission rules: what does not match stays outside."""
    guard = step.slot("when")
    if guard is None or "step" not in step:
        return
    spec = step.mapping("spec")
    if spec is not None and "admit" in (spec.mapping("policy") or Mapping()):
        draft.refuse(
            guard,
            "the step has both an older 'when' and admission rules",
            "put the condition of 'when' into a rule of spec.policy.admit, then remove 'when'",
        )
        return
    at = step.place("when")
    step.pop("when")
    spec = step.within("spec", like=guard, at=at)
    text = guard.text
    if text is not None and not is_template(text) and check_guard(f"{{{{ {text} }}}}") is None:
        guard.say(f"{{{{ {text} }}}}")
    rule = TreeSlot(guard.node, key="when", line=guard.line, path=guard.path)
    allowed = node_of({"when": rule, "then": flowing({"allow": True})}, guard.line)
    denied = node_of({"else": {"then": flowing({"allow": False})}}, guard.line)
    admit = spec.within("policy", like=guard).within("admit", like=guard)
    admit.put("rules", [TreeSlot(allowed, line=guard.line), denied])
    draft.tell(guard, "when", "spec.policy.admit.rules", now=rule)


def rules_of_eval(draft: Draft, task: Mapping) -> None:
    """`eval` → `spec.policy.rules`, with the dialect's default as the last rule."""
    held = task
    if "eval" not in task and "eval" in (task.mapping("spec") or Mapping()):
        held = task.mapping("spec") or task
    slot = held.slot("eval")
    if slot is None or "kind" not in task:
        return
    policy = (task.mapping("spec") or Mapping()).mapping("policy")
    if policy is not None and "rules" in policy:
        draft.refuse(
            slot,
            "the task has both an older 'eval' and rules of a policy",
            "put the entries of 'eval' into spec.policy.rules in the order you want",
        )
        return
    rules = slot.node
    empty = isinstance(rules, Scalar) and rules.value is None
    at = held.place("eval")
    held.pop("eval")
    if empty or (isinstance(rules, Sequence) and not rules.slots):
        draft.tell(slot, "eval: []", "", now=slot)
        return
    policy = task.within("spec", like=slot, at=at).within("policy", like=slot)
    placed = policy.put("rules", rules, like=slot.bare)
    draft.left["eval", id(task)] = slot
    for rule in rules.mappings() if isinstance(rules, Sequence) else ():
        draft.left["eval", id(rule)] = slot
    draft.tell(slot, "eval", "spec.policy.rules", now=placed)


def default_of_eval(draft: Draft, task: Mapping) -> None:
    """No match and no else: ok → continue, error → fail. The canonical default is continue."""
    slot = draft.left.get(("eval", id(task)))
    policy = (task.mapping("spec") or Mapping()).mapping("policy")
    rules = policy.sequence("rules") if policy is not None else None
    if slot is None or rules is None or covers_errors(rules):
        return
    last = rule_slot(IS_ERROR, then_node(slot, do="fail"), slot)
    rules.slots.append(last)
    draft.tell(slot, "no entry for other errors", "error → fail, as the last rule", now=last)


def backoff_of_rule(draft: Draft, rule: Mapping) -> None:
    """`fixed` → `none`, which keeps the delay constant."""
    for holder in (rule.mapping("then"), (rule.mapping("else") or Mapping()).mapping("then")):
        slot = holder.slot("backoff") if holder is not None else None
        if slot is not None and slot.text == "fixed":
            slot.say("none")
            draft.tell(slot, "backoff: fixed", "backoff: none")


def pipe_of_step(draft: Draft, step: Mapping) -> None:
    """`pipe` → `tool`: the list is the pipeline."""
    for holder, slot in ((step, step.slot("pipe")), (step, _pipe_within(step))):
        if slot is None or not isinstance(slot.node, Sequence):
            continue
        if "tool" not in holder:
            holder.rename("pipe", "tool")
            draft.tell(slot, "pipe", "tool")
        elif slot.key == "pipe" and slot is not step.slot("pipe"):
            tool = step.slot("tool")
            assert tool is not None
            tool.node = slot.node
            draft.tell(slot, "tool: { pipe }", "tool", now=tool)


def _pipe_within(step: Mapping) -> TreeSlot | None:
    tool = step.mapping("tool")
    return tool.slot("pipe") if tool is not None and len(tool.slots) == 1 else None


def defaults_of_executor(draft: Draft, root: Mapping) -> None:
    """The same words in `executor.spec.defaults`."""
    defaults = below_path(root, "executor", "spec", "defaults")
    step = defaults.mapping("step") if defaults is not None else None
    mode = step.pop("next_mode") if step is not None else None
    if defaults is None or step is None or mode is None:
        return
    if not step.slots:
        defaults.pop("step")
    placed = defaults.within("next").put("mode", mode.node, like=mode)
    draft.tell(mode, "defaults.step.next_mode", "defaults.next.mode", now=placed)
