"""`vars`, `args` and results by step name: where the state of the case dialect lives (DIA-S2)."""

import re

from noetl.playbook.dialects.case_entries import RESULT
from noetl.playbook.dialects.draft import Draft, NeededResult
from noetl.playbook.dialects.former_results import ANSWER
from noetl.playbook.dialects.names import paths_read
from noetl.playbook.dialects.pipeline import (
    add_task,
    free_label,
    kind_of,
    main_task,
    on_success,
    plain_task,
    quoted,
    rule_slot,
    rules_in,
    then_node,
    tool_task,
    write,
)
from noetl.playbook.dialects.places import Known, hides, places
from noetl.playbook.dialects.tree import Mapping, TreeSlot, slots_below
from noetl.playbook.dialects.writes import Write, writes_below

_NAME = re.compile(r"[A-Za-z_]\w*")


# ── vars ──


def vars_of_step(draft: Draft, step: Mapping) -> None:
    """`vars` → `set_ctx` after a success."""
    given = step.slot("vars")
    if given is None or "step" not in step:
        return
    if not isinstance(given.node, Mapping):
        writes_below(draft, given)  # which says so
        return
    step.pop("vars")
    then = keep_all(draft, step, given)
    draft.tell(given, "vars", "spec.policy.rules: set_ctx", now=then.slot("set_ctx"))


def keep_all(draft: Draft, step: Mapping, given: TreeSlot) -> Mapping:
    """Write values whenever the step's main task has succeeded."""
    then = keeping(draft, step, given)
    for one in writes_below(draft, given):
        write_into(then, one, one.slot)
    return then


def write_into(then: Mapping, one: Write, like: TreeSlot) -> None:
    """One write of a directive: to its scope, or what the step gives."""
    if one.key == RESULT:
        then.flow = False
        then.put("set_prev", one.slot.node, like=like)
    else:
        write(then, f"set_{one.scope}", one.key, one.slot.node, like)


def keeping(draft: Draft, step: Mapping, like: TreeSlot) -> Mapping:
    """The directive that writes after a success."""
    task = main_task(step)
    bare = like.bare
    if task is not None and ("keep", id(task)) in draft.left:
        return on_success(task, bare, fails=False)
    ruled = task is not None and "policy" in (task.mapping("spec") or Mapping())
    if task is None or (ruled and ("case rules", id(task)) not in draft.left):
        keep = plain_task("noop", like)
        add_task(step, free_label(step, "keep"), keep, bare)
        draft.left["keep", id(keep)] = like
        then = then_node(like)
        rules_in(keep, bare).slots.append(rule_slot(None, then, bare))
        return then
    draft.left["case rules", id(task)] = like
    fails = kind_of(draft, tool_task(step)) != "noop"  # which never does
    return on_success(task, bare, fails=fails)


# ── results by step name ──


def results_by_name(draft: Draft, _: Mapping) -> None:
    """Which steps' results are read by name, and how: each of those steps keeps its own."""
    if not draft.case:
        return
    steps = {
        name: step
        for step in draft.steps()
        if (name := step.text("step")) and _NAME.fullmatch(name) and name not in _RESERVED
    }
    draft.mains = {id(step): kind_of(draft, main_task(step)) for step in draft.steps()}
    known = Known(draft)
    for slot, place in places(draft):
        for path in paths_read(slot.text):
            name = str(path[0])
            if name in steps and not hides(known, name, place):
                _need(draft, steps[name], name, path)


def _need(draft: Draft, step: Mapping, name: str, path: tuple[str | int, ...]) -> None:
    """A variable of the same name comes first, and the result has another key."""
    former = draft.needed.get(name)
    http = kind_of(draft, main_task(step)) == "http" and not gives_own(step)
    answers = http and len(path) > 1 and path[1] in ANSWER
    home = f"{name}_result" if name in draft.variables else name
    draft.needed[name] = NeededResult(home, answers or (former is not None and former.answers))


def gives_own(step: Mapping) -> bool:
    """Whether a case says what the step's result is."""
    case = step.sequence("case")
    return case is not None and any(slot.key == "result" for slot in slots_below(case))


_RESERVED = frozenset(
    {"workload", "ctx", "iter", "args", "vars", "event", "execution_id", "outcome", "result"}
    | {"response", "this", "data", "error", "attempt", "success", "status_code", "max_attempts"}
)


def keep_result(draft: Draft, step: Mapping) -> None:
    """A step whose result is read by its name writes it to `ctx`."""
    name = step.slot("step")
    needed = draft.needed.get((name.text or "") if name is not None else "")
    if needed is None or name is None or not ({"tool", "vars", "case"} & set(step.keys())):
        return
    like = name.bare
    then = keeping(draft, step, like)
    value = quoted("{{ outcome.result }}" if needed.answers else "{{ result }}", name.line)
    slot = write(then, "set_ctx", needed.home, value, like)
    draft.tell(name, f"the result of {name.text}", f"set_ctx: {needed.home}", now=slot)
