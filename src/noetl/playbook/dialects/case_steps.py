"""The case dialect: `case`, `vars`, `sink`, `retry`, results by step name (DIA-S2)."""

from copy import deepcopy

from noetl.playbook.dialects.case_actions import (
    Pipe,
    Work,
    fail,
    keep_status,
    plain_step,
    reads_envelope,
    retry_cases,
    succeed,
)
from noetl.playbook.dialects.case_entries import OTHERWISE, CaseEntry, entries_of
from noetl.playbook.dialects.draft import Draft, below_path, tasks_of
from noetl.playbook.dialects.guards import FALSE, expression_of
from noetl.playbook.dialects.pipeline import (
    add_task,
    as_iterator,
    kind_of,
    main_task,
    plain_task,
    tool_task,
)
from noetl.playbook.dialects.routes import route_cases
from noetl.playbook.dialects.sight import Sight
from noetl.playbook.dialects.sinks import Sink, sinks_of
from noetl.playbook.dialects.tree import Mapping, TreeSlot, node_of, plain


def loop_as_task(draft: Draft, step: Mapping) -> None:
    """
    A loop whose results the step itself needs becomes an iterator task.

    The dialect binds the result, extracts `vars` and routes once, after all iterations (S2 §3.4);
    a rule can only write what a task has come to.
    """
    if _needs_results(draft, step):
        as_iterator(draft, step)


def _needs_results(draft: Draft, step: Mapping) -> bool:
    cases = step.sequence("case")
    sets = any(_sets_at_the_end(slot) for slot in (cases.slots if cases is not None else ()))
    return sets or "vars" in step or (step.text("step") or "") in draft.needed


def _sets_at_the_end(slot: TreeSlot) -> bool:
    """Whether an entry of a case writes when the step ends, not when one call has succeeded."""
    then = slot.node.mapping("then") if isinstance(slot.node, Mapping) else None
    words = ("set", "vars", "collect", "result")
    if then is None or not any(word in then for word in words):
        return False
    assert isinstance(slot.node, Mapping)
    guard = slot.node.node("when")
    expression = expression_of(plain(guard)) if guard is not None else None
    entry = CaseEntry(slot, expression or OTHERWISE)
    return not entry.in_call or entry.at("error") != FALSE


def _work_on(draft: Draft, step: Mapping, like: TreeSlot) -> Work:
    """The tasks of a step; a step that only routes gets one where its cases need it."""
    outer = main_task(step)
    if outer is None:
        outer = plain_task("noop", like)
        add_task(step, step.text("step") or "run", outer, TreeSlot(like.node, line=like.line))
    wrapped = ("listed", id(outer)) in draft.left
    holder = outer if wrapped else step
    task = tool_task(holder) or outer
    return Work(draft, step, holder, task, outer, kind_of(draft, task))


def cases_of_step(draft: Draft, step: Mapping) -> None:
    """`case` → arcs for `next`; rules and tasks for `set`, `sink` and `retry`."""
    case = step.slot("case")
    entries = entries_of(draft, step, case) if case is not None else None
    if case is None or entries is None:
        return
    looped = "loop" in step or ("listed", id(main_task(step))) in draft.left
    sight = Sight("router", draft.mains.get(id(step), ""), looped)
    if any(entry.actions for entry in entries) or _status_after_failure(entries):
        work = _work_on(draft, step, case)
        pipe = Pipe(work.holder)
        if not looped:
            sight = _router_sight(step, entries, sight)
        retry_cases(work, entries)
        succeed(work, entries, pipe)
        _sink_of_step(draft, work, pipe)
        fail(work, entries, pipe, keep_error=sight.error is not None)
        if sight.status_code is not None:
            asking = [one for one in entries if reads_envelope(one, "status_code")]
            after_success = any(one.targets and one.at("ok") != FALSE for one in asking)
            bare = case.bare
            keep_status(work, bare, after_success=after_success)
        pipe.finish()
    draft.sights[id(step)] = sight
    route_cases(draft, step, entries, "loop.done" if "loop" in step else "step.done")


def _status_after_failure(entries: list[CaseEntry]) -> bool:
    return any(
        entry.targets and entry.at("error") != FALSE and reads_envelope(entry, "status_code")
        for entry in entries
    )


def _router_sight(step: Mapping, entries: list[CaseEntry], sight: Sight) -> Sight:
    """After a failure the event holds neither the answer nor, behind a sink, its error."""
    own = plain_step(step)
    if _status_after_failure(entries):
        sight = sight._replace(status_code=f"ctx.{own}_status_code")
    behind = any("sink" in one.actions and one.minds_failures for one in entries)
    asking = [one for one in entries if one.targets and reads_envelope(one, "error")]
    if behind and any(one.at("ok") == FALSE for one in asking):
        sight = sight._replace(error=f"ctx.{own}_error")
    return sight


def sink_of_step(draft: Draft, step: Mapping) -> None:
    """`sink` of a step, and of the workbook's task that it calls → storage tasks."""
    if "case" in step or not ("sink" in step or _lent_sink(draft, step) is not None):
        return
    slot = step.slot("sink") or step.slot("tool")
    assert slot is not None
    work = _work_on(draft, step, slot)
    pipe = Pipe(work.holder)
    _sink_of_step(draft, work, pipe)
    pipe.finish()


def _sink_of_step(draft: Draft, work: Work, pipe: Pipe) -> None:
    lent = _lent_sink(draft, work.holder)
    if lent is not None:
        pipe.save([lent])
        draft.left.pop(("lent", id(work.task)), None)
    sink = work.step.slot("sink")
    if sink is None:
        return
    sinks = sinks_of(draft, sink, work.sight)
    if sinks:
        work.step.pop("sink")
        pipe.save(sinks)
        draft.tell(sink, "sink", "a storage task")


def _lent_sink(draft: Draft, holder: Mapping) -> Sink | None:
    """The call of the sink that a workbook's task had."""
    for slot in tasks_of(holder):
        task = slot.node
        if not isinstance(task, Mapping) or task.text("kind") != "workbook":
            continue
        lender = below_path(draft.root, "workbook", "tasks", task.text("name") or "")
        left = draft.left.get(("sink of", id(lender)))
        if left is not None:
            call = plain_task("workbook", slot)
            call.put("name", left.text or "")
            args = task.slot("args")
            if args is not None:
                call.put("args", deepcopy(args.node))
            at = TreeSlot(call, line=slot.line, path=slot.path)
            return Sink(at, call, "true", at)
    return None


def sinks_of_workbook(draft: Draft, root: Mapping) -> None:
    """The sink of a workbook's task → a task of its own, which the callers run after it."""
    workbook = root.mapping("workbook")
    tasks = workbook.mapping("tasks") if workbook is not None else None
    for slot in list(tasks.slots) if tasks is not None else ():
        sink = draft.left.get(("workbook sink", id(slot.node)))
        if sink is None or tasks is None or not isinstance(slot.node, Mapping):
            continue
        found = sinks_of(draft, sink, Sight("after", kind_of(draft, slot.node)))
        if len(found) != 1 or found[0].when != "true":
            draft.refuse(
                sink,
                "the sink of a workbook's task has a condition, or there are several",
                "move it into the steps that call the task",
            )
            continue
        name = f"{slot.key}_sink"
        while name in tasks:
            name += "_"
        made = tasks.put(name, found[0].task, at=tasks.slots.index(slot) + 1)
        made.line, made.path = sink.line, sink.path
        draft.left["sink of", id(slot.node)] = TreeSlot(node_of(name), line=sink.line)
        draft.tell(sink, "sink of the workbook's task", f"workbook.tasks.{name}", now=made)
