"""
What does each place of a playbook see? (TPL-2)

One table says which namespaces a place has; the document says which keys are below them. Whatever
reads templates can ask: validation, and the translators after they have written a playbook.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from noetl.kinds.kind import Kind
from noetl.playbook.check_graph import arcs_of
from noetl.playbook.check_tasks import pipelines_of
from noetl.playbook.model import Arc, Limit, Playbook, Rule, Step, Task, Then
from noetl.playbook.step_traits import guards_of, rendered_inputs

Shape = Mapping[str, Any] | None
"""The keys below a value, each with its own shape; None: any key may be there."""
Seen = dict[str, Shape]
"""The namespaces that a place sees, each with its shape."""

_SERVER = ("workload", "ctx", "args", "execution_id")
_PIPELINE = (*_SERVER, "iter", "_prev", "_task", "_attempt")
PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "workload": ("workload", "execution_id"),
    "limit": ("workload", "execution_id"),
    "admit": (*_SERVER, "event"),
    "step limit": _SERVER,
    "loop": _SERVER,
    "arc": (*_SERVER, "event"),
    "input": _PIPELINE,
    "rule": (*_PIPELINE, "outcome"),
}

_LOOP: Final = dict.fromkeys(("total", "done", "failed", "results", "errors"))
_EVENT: Final = {"name": None, "step": None, "result": None, "error": None, "loop": _LOOP}
_ARRIVED: Final = {"name": None, "step": None}
_META: Final = ("attempt", "started_at", "duration_ms", "task_run_id", "trace_id", "worker")
_OUTCOME: Final = {
    "status": None,
    "result": None,
    "error": None,
    "exhausted": None,
    "meta": dict.fromkeys((*_META, "cached")),
}
_SIGNAL: Final = dict.fromkeys(("name", "data", "by", "at"))
_FINAL: Final = dict.fromkeys(("status", "steps", "failures"))


class RenderedValue(msgspec.Struct, frozen=True):
    """A value with templates: where it stands, which place that is, and what it sees."""

    value: Any
    path: str
    place: str
    seen: Seen


def spots(
    playbook: Playbook, kinds: Mapping[str, Kind], brought: Mapping[str, Any]
) -> Iterator[RenderedValue]:
    """Every value of a playbook that is rendered, with what it sees; `brought` by a request."""
    yield from _workload(playbook.workload)
    view = DocumentNames(playbook, kinds, brought)
    if playbook.executor.limit is not None:
        seen = {name: view.base[name] for name in PLACES["limit"]}
        yield from _limit(playbook.executor.limit, "limit", seen)
    for step in playbook.steps:
        yield from _step(view, step)
    for name, task in playbook.workbook.items():
        args = view.lent.get(name, {}) if view.lent is not None else None
        yield from _tasks(view, (task,), args, view.every_iter, _set_iter([task], view))


def _workload(declared: Mapping[str, Any]) -> Iterator[RenderedValue]:
    """DOC-3: each key sees those above it; of its own mapping, those above inside."""
    shapes = {key: shape_of(value) for key, value in declared.items()}
    places = {key: place for place, key in enumerate(declared)}
    for key, value in declared.items():
        own = key if isinstance(value, Mapping) else None
        seen: Seen = {"workload": KeysAbove(shapes, places, places[key], own), "execution_id": None}
        yield RenderedValue(value, f"workload.{key}", "workload", seen)


class KeysAbove(Mapping[str, Any]):
    """The first keys of a mapping, without a copy for each of many; `own` is there and open."""

    def __init__(
        self, shapes: Mapping[str, Any], places: Mapping[str, int], end: int, own: str | None
    ) -> None:
        self._shapes, self._places, self._end, self._own = shapes, places, end, own

    def __getitem__(self, key: str) -> Any:
        if key == self._own:
            return None
        if self._places.get(key, self._end) >= self._end:
            raise KeyError(key)
        return self._shapes[key]

    def __iter__(self) -> Iterator[str]:
        yield from islice(self._shapes, self._end)
        if self._own is not None:
            yield self._own

    def __len__(self) -> int:
        return self._end + (self._own is not None)


def shape_of(value: Any) -> Shape:
    """What is below a value as it is written: a mapping has its keys, anything else is open."""
    if not isinstance(value, Mapping):
        return None
    return {key: shape_of(child) for key, child in value.items()}


def _over(declared: Shape, payload: Shape) -> Shape:
    """DOC-3: mappings merge, of anything else the payload's is there."""
    if declared is None or payload is None:
        return declared
    return {
        **declared,
        **{
            key: _over(declared[key], shape) if declared.get(key) and shape else shape
            for key, shape in payload.items()
        },
    }


class DocumentNames:
    """What the whole document says about names."""

    def __init__(
        self, playbook: Playbook, kinds: Mapping[str, Kind], brought: Mapping[str, Any]
    ) -> None:
        self.kinds = kinds
        self.workbook = playbook.workbook
        pipelines = list(pipelines_of(playbook))
        rules = [rule for tasks in pipelines for task in tasks for rule in task.spec.rules or ()]
        loops = [step.loop for step in playbook.steps if step.loop is not None]
        loops += [task.inner.loop for tasks in pipelines for task in tasks if task.inner]
        ctx = {key: None for rule in rules for key in rule.then.set_ctx}
        ctx |= {key: None for loop in loops for key in loop.reduce}
        ctx |= dict.fromkeys(playbook.executor.reduce)
        ctx |= shape_of(brought.get("ctx")) or {}
        self.base: Seen = {
            "workload": _over(shape_of(playbook.workload), shape_of(brought.get("workload"))),
            "ctx": ctx,
            "execution_id": None,
        }
        self.pipeline: Seen = {**self.base, "_prev": None, "_task": None, "_attempt": None}
        self.args = _args(playbook)
        self.lent = _lent(pipelines)
        named = {loop.iterator: None for loop in loops}
        written = {key: None for rule in rules for key in rule.then.set_iter}
        self.every_iter: dict[str, Any] = {**named, **written, "index": None, "parent": None}
        self._outcomes: dict[str, Shape] = {}

    def outcome(self, task: Task) -> Shape:
        """OUT-2: the fields of every outcome, and the block of the task's kind."""
        if task.spec.inherited or task.kind not in self.kinds:
            return None
        found = self._outcomes.get(task.kind)
        if found is None:
            found = self._outcomes[task.kind] = {**_OUTCOME, **self._block(task.kind)}
        if task.kind != "workbook":
            return found
        lent = self.workbook.get(str(task.inputs.get("name")))
        return None if lent is None else {**found, **self._block(lent.kind)}

    def _block(self, name: str) -> dict[str, Shape]:
        kind = self.kinds.get(name)
        if kind is None:
            return {name: None}
        return {kind.block or name: None if kind.tells is None else dict.fromkeys(kind.tells)}


def _args(playbook: Playbook) -> dict[str, dict[str, Any]]:
    """Step → the keys of the `args` that arcs to it carry (NEXT-4, NEXT-6, NEXT-7)."""
    found: dict[str, dict[str, Any]] = {step.name: {} for step in playbook.steps}
    for _, arc in arcs_of(playbook):
        if arc.step in found:
            found[arc.step] |= {key: shape_of(value) for key, value in arc.args.items()}
    for step in playbook.steps:
        if step.join is not None:
            found[step.name]["from"] = dict.fromkeys(step.join.sources)
    if playbook.executor.final_step in found:
        found[playbook.executor.final_step] = dict(_FINAL)
    return found


def _lent(pipelines: Iterable[tuple[Task, ...]]) -> dict[str, dict[str, Any]] | None:
    """Workbook task → the keys of the `args` it is called with; None: nobody can tell."""
    found: dict[str, dict[str, Any]] = {}
    for tasks in pipelines:
        for task in tasks:
            if task.kind != "workbook":
                continue
            name, args = task.inputs.get("name"), task.inputs.get("args", {})
            if not isinstance(name, str) or "{" in name or not isinstance(args, dict):
                return None
            found.setdefault(name, {}).update(dict.fromkeys(args))
    return found


def _step(view: DocumentNames, step: Step) -> Iterator[RenderedValue]:
    args = view.args[step.name]
    server: Seen = {**view.base, "args": args}
    if step.admission is not None:
        seen = {**server, "event": _ARRIVED}
        for rule in step.admission.rules:
            yield RenderedValue(rule.when, f"{rule.place.path}.when", "admit", seen)
    if step.limit is not None:
        yield from _limit(step.limit, "step limit", server)
    iter_ = _set_iter(step.tasks, view)
    if step.loop is not None:
        yield RenderedValue(step.loop.items, f"{step.loop.place.path}.in", "loop", server)
        iter_ = {step.loop.iterator: None, "index": None, **iter_}
    yield from _tasks(view, step.tasks, args, iter_, {})
    routed: Seen = {**server, "event": _EVENT}
    for arc in step.router.arcs if step.router is not None else ():
        yield from _arc(arc, routed)


def _limit(limit: Limit, place: str, seen: Seen) -> Iterator[RenderedValue]:
    yield RenderedValue(limit.key, f"{limit.place.path}.key", place, seen)
    yield RenderedValue(limit.priority, f"{limit.place.path}.priority", place, seen)


def _arc(arc: Arc, seen: Seen) -> Iterator[RenderedValue]:
    yield RenderedValue(arc.when, f"{arc.place.path}.when", "arc", seen)
    if arc.args:
        yield RenderedValue(arc.args, f"{arc.place.path}.args", "arc", seen)


def _set_iter(tasks: Iterable[Task], view: DocumentNames) -> dict[str, Any]:
    """The keys that a pipeline writes to its `iter`, also by the policy of a lent task (TOOL-2)."""
    found: dict[str, Any] = {}
    for task in tasks:
        rules = task.spec.rules
        if rules is None and task.kind == "workbook":
            lent = view.workbook.get(str(task.inputs.get("name")))
            rules = lent.spec.rules if lent is not None else None
        for rule in rules or ():
            found |= dict.fromkeys(rule.then.set_iter)
    return found


def _tasks(
    view: DocumentNames,
    tasks: tuple[Task, ...],
    args: dict[str, Any] | None,
    iter_: dict[str, Any],
    more: dict[str, Any],
) -> Iterator[RenderedValue]:
    scope = {**iter_, **more}
    seen: Seen = {**view.pipeline, "args": args, "iter": scope}
    for task in tasks:
        if task.inputs:
            yield RenderedValue(rendered_inputs(task), task.place.path, "input", seen)
        if task.spec.timeout_by is not None:
            place = f"{task.place.path}.spec.timeout"
            yield RenderedValue(task.spec.timeout_by, place, "input", seen)
        if task.spec.cache is not None:
            cache = task.spec.cache
            yield RenderedValue(cache.key, f"{cache.place.path}.key", "input", seen)
        for label, when in guards_of(task):
            within = f".any.{label}" if label else ""
            heard = {**seen, "args": {**(args or {}), "signal": _SIGNAL}}
            yield RenderedValue(when, f"{task.place.path}{within}.when", "input", heard)
        if task.spec.rules:
            judged = {**seen, "outcome": view.outcome(task)}
            for rule in task.spec.rules:
                yield from _rule(rule, judged)
        if task.inner is not None:
            loop = task.inner.loop
            yield RenderedValue(loop.items, f"{task.place.path}.in", "input", seen)
            own = {loop.iterator: None, "index": None, "parent": scope}
            yield from _tasks(view, task.inner.tasks, args, own, _set_iter(task.inner.tasks, view))


def _rule(rule: Rule, seen: Seen) -> Iterator[RenderedValue]:
    if isinstance(rule.when, str):
        yield RenderedValue(rule.when, f"{rule.place.path}.when", "rule", seen)
    then = f"{rule.place.path}.{'else.then' if rule.when is None else 'then'}"
    for key, value in _written(rule.then):
        yield RenderedValue(value, f"{then}.{key}", "rule", seen)


def _written(then: Then) -> Iterator[tuple[str, Any]]:
    if then.set_ctx:
        yield "set_ctx", then.set_ctx
    if then.set_iter:
        yield "set_iter", then.set_iter
    if isinstance(then.set_prev, str | dict | list):
        yield "set_prev", then.set_prev
    if isinstance(then.delay, str):
        yield "delay", then.delay
    if then.message is not None:
        yield "message", then.message
