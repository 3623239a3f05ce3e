"""
Which bodies will a decision probably ask for? (RES-2)

A good guess saves a second attempt on a state that must be read again; a wrong one costs a load.
Nothing is right or wrong by it: `decide` says what it truly needs.
"""

from collections.abc import Iterable
from typing import Any

from noetl.control.execution import Execution, Run
from noetl.expression.limits import LARGEST_LOADED
from noetl.expression.lookup import SEARCHED
from noetl.messages import events as e
from noetl.messages import requests as r
from noetl.messages.reference import Reference
from noetl.playbook.plan import Paths, Plan, Scope

DEEPEST = 3
WIDEST = 100
"""How far into a value is looked for references."""


def likely(plan: Plan, execution: Execution, given: r.Input) -> list[Reference]:
    """References that the templates of this decision look into, as far as can be told."""
    if execution.finished or (
        type(given) is r.Report and not plan.looked_behind and not execution.tokens
    ):
        return []
    found: dict[str, Reference] = {}
    if isinstance(given, r.StartExecution):
        scope = {"workload": given.payload, "ctx": given.ctx, "args": {}}
        look(found, plan.steps[plan.entry].touches, scope)
        if given.kept is not None:
            look_at_kept(found, plan, given.kept)
        return list(found.values())
    run = execution.runs.get(getattr(given, "step_run_id", ""))
    if run is not None and run.step in plan.looked_behind:
        event = ending_of(given, run)
        if event is not None:
            if "bases" in event:
                gather(found, event["bases"], 1)
            look_behind(found, plan, execution, run, event)
    for token in execution.tokens.values():
        if token.waits == "refused" or (
            token.waits and isinstance(given, r.ResumeExecution | r.LimitGranted)
        ):
            look(found, plan.steps[token.step].touches, scope_of(execution, token.args))
    return list(found.values())


def look_at_kept(found: dict[str, Reference], plan: Plan, kept: r.KeptState) -> None:
    """RST: every token of a restart is tried with its first decision."""
    for token in kept.tokens:
        scope = {"workload": kept.workload, "ctx": kept.ctx, "args": token["args"]}
        look(found, plan.steps[token["step"]].touches, scope)


def scope_of(execution: Execution, args: Any) -> Scope:
    return {"workload": execution.workload, "ctx": execution.ctx, "args": args}


def ending_of(given: r.Input, run: Run) -> dict[str, Any] | None:
    """`event` as far as it is known before the decision; None where the run goes on."""
    if type(given) is not r.Report:
        return None if isinstance(given, r.PartClaimed) else {}
    last = given.events[-1]
    loop = run.loop
    if loop is not None:
        left = loop.total - loop.done - loop.failed
        over = type(last) in ENDS or ends_in(given, left) >= left
        return {"result": loop.results.chunks, "bases": loop.bases} if over else None
    if isinstance(last, e.StepDone):
        return {"result": last.result}
    return {"result": last.result, "error": last.error} if isinstance(last, e.StepFailed) else None


def ends_in(report: r.Report, wanted: int) -> int:
    """How many iterations it ends; not counted where they are fewer than wanted anyway."""
    reports = (report, *report.beside)
    if sum(len(one.events) for one in reports) < wanted:
        return 0
    return sum(type(event) in ENDED for one in reports for event in one.events)


ENDS = {e.StepDone, e.StepFailed, e.LoopDone}
ENDED: set[type[e.Event]] = {e.IterationDone, e.IterationFailed}


def look_behind(
    found: dict[str, Reference], plan: Plan, execution: Execution, run: Run, event: dict[str, Any]
) -> None:
    """At what the arcs of an ended run look into, and the steps that they lead to."""
    router = plan.steps[run.step].router
    if router is None:
        return
    carried = {"workload": execution.workload, "ctx": execution.ctx}
    for arc in router.after_success:
        if arc.touches:
            look(found, arc.touches, {**carried, "args": run.args, "event": event})
        touched = plan.steps[arc.step].touches
        if touched:
            look(found, touched, carried)
            if arc.args is not None and any(path[0] not in carried for path in touched):
                gather(found, event.get("result"), 1)


def look(found: dict[str, Reference], paths: Paths, scope: Scope) -> None:
    for path in paths:
        for value in values_at(path, scope):
            gather(found, value, DEEPEST)


def values_at(path: tuple[str, ...], scope: Scope) -> Iterable[Any]:
    """What a path may mean: a bare name is looked up as templates do (TPL-2)."""
    root, *keys = path
    if root not in scope:
        keys, places = [root], [scope[name] for name in SEARCHED if name in scope]
    else:
        places = [scope[root]]
    if not keys:
        return places
    return [place[keys[0]] for place in places if isinstance(place, dict) and keys[0] in place]


def gather(found: dict[str, Reference], value: Any, depth: int) -> None:
    if isinstance(value, Reference):
        if value.sealed is None and value.size <= LARGEST_LOADED:
            found[value.key] = value
    elif depth and isinstance(value, dict | list) and len(value) <= WIDEST:
        for below in value.values() if isinstance(value, dict) else value:
            gather(found, below, depth - 1)
