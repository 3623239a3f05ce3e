"""
Which names do templates of public playbooks read, and what are they called here? (DIA-UP)

A step's result by its name is `ctx.<step>`, written when the step is done and read by others; the
step's own router sees it as `event.result`. A task's result by its name is `iter.<task>`.
"""

import re
from typing import Final

from noetl.expression.syntax import is_template
from noetl.playbook.dialects.draft import (
    Draft,
    respell,
    shown,
)
from noetl.playbook.dialects.names import Respelling, respelled, revalued
from noetl.playbook.dialects.tree import Mapping, Scalar, Slot
from noetl.playbook.dialects.upstream_args import shaped
from noetl.playbook.dialects.upstream_python import args_of, at_line, change_code, code_of
from noetl.playbook.dialects.upstream_results import (
    SQL,
    Path,
    PathReading,
    Source,
    reading,
    source_of,
)
from noetl.playbook.dialects.upstream_sets import Write, own_tasks, write_at_end, write_on_success
from noetl.playbook.dialects.upstream_shapes import speaks_case
from noetl.playbook.dialects.upstream_spots import Known, TemplatePlace, spots

# Namespaces and locals come before any result of that name (TPL-2).
_RESERVED: Final = frozenset(
    {"workload", "ctx", "iter", "args", "execution_id", "event", "outcome", "output"}
    | {"_prev", "_task", "_attempt"}
)
_FORMER_KEY: Final = re.compile(r"command_\d+|statement_\d+|status_code")


class Results:
    """The results that templates read by name, and which of them must be kept for that."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.known = Known(draft)
        self.steps: dict[str, Mapping] = {
            step.text("step") or "": step
            for step in draft.steps()
            if own_tasks(step) and step.text("step") not in _RESERVED
        }
        self.kept_steps: dict[str, Slot] = {}
        self.kept_tasks: dict[int, tuple[Slot, Slot]] = {}

    def source_of_step(self, step: Mapping) -> Source:
        last = own_tasks(step)[-1].node
        assert isinstance(last, Mapping)
        return source_of(self.draft, last, listed="loop" in step)

    def find(self, name: str, spot: TemplatePlace) -> tuple[Source, str] | None:
        """The origin of a name and its root here: `iter.fetch`, `ctx.fetch`, `event.result`."""
        own = spot.step.text("step") if spot.step is not None else None
        if name == "_prev" and spot.before and spot.place == "input":
            task = spot.before[-1].node
            assert isinstance(task, Mapping)
            return source_of(self.draft, task), "_prev"
        if name in self.known.within(spot.step):
            return None
        found = self._task_named(name, spot)
        if found is not None:
            return found
        step = self.steps.get(name)
        if step is None:
            return None
        source = self.source_of_step(step)
        if name == own and spot.place == "router":
            return source, "event.loop.results" if source.listed else "event.result"
        if name == own and spot.place == "rule" and not source.listed:
            return source, "outcome.result"
        return source, f"ctx.{name}"

    def _task_named(self, name: str, spot: TemplatePlace) -> tuple[Source, str] | None:
        tasks = spot.pipeline
        slot = next((one for one in tasks if one.key == name), None)
        if slot is None or name in _RESERVED or not isinstance(slot.node, Mapping):
            return None
        source = source_of(self.draft, slot.node)
        if slot.node is spot.task and spot.place == "rule":
            return source, "outcome.result"
        if spot.place == "router":
            last = slot is tasks[-1] and "loop" not in (spot.step or Mapping())
            return (source, "event.result") if last else None
        single = len(tasks) == 1 and name in self.steps
        return None if single else (source, f"iter.{name}")

    def keep(self, root: str, name: str, spot: TemplatePlace, at: Slot) -> None:
        """Remember that a result is read after its task or step is done."""
        if root.startswith("ctx."):
            self.kept_steps.setdefault(name, at)
        elif root.startswith("iter."):
            slot = next(one for one in spot.pipeline if one.key == name)
            self.kept_tasks.setdefault(id(slot), (slot, at))

    def _below(self, source: Source, path: Path, slot: Slot, spot: TemplatePlace) -> PathReading:
        """How a path is read; what code gets as a whole depends on the code."""
        found = code_of(spot.task) if spot.task is not None and len(path) == 1 else None
        is_arg = found is not None and slot in args_of(spot.task or Mapping()).slots
        if found is None or not is_arg or not (slot.key or "").isidentifier():
            return reading(source, path[1:])
        code_slot, code = found
        how = shaped(source, slot.key or "", code)
        if how.reason:
            hint = "read what is there now: the rows of the last statement"
            self.draft.refuse(at_line(code_slot, how.line), how.reason, hint)
        elif how.code != code.text and is_template(code.text):
            return reading(source, path[1:])
        elif how.code != code.text:
            change_code(self.draft, code_slot, how.code, f"{slot.key} as before", "its new shape")
        return PathReading(0, how.form)

    def _of_task(self, name: str, path: Path) -> PathReading:
        """`step.results.task`: of the last task it is the step's own."""
        tasks = own_tasks(self.steps[name]) if name in self.steps else []
        if tasks and path[2:3] == (tasks[-1].key,):
            return PathReading(2)
        label = path[2] if len(path) > 2 else "results"
        return PathReading(
            0, reason=f"a step's result is that of its last task, which '{label}' is not"
        )

    def respell(self, slot: Slot, spot: TemplatePlace) -> None:
        """The names of results in one template."""
        refused: list[str] = []

        def respell_path(path: Path) -> Respelling | None:
            name = str(path[0])
            found = self.find(name, spot)
            if found is None:
                return None
            source, root = found
            if root == "_prev" and len(path) == 1 and not _reads_former(slot, spot):
                return None
            below = self._below(source, path, slot, spot)
            if path[1:2] == ("results",) and not source.listed:
                below = self._of_task(name, path)
            if root == "_prev" and not _is_envelope(source, below):
                return None
            if below.reason:
                refused.append(below.reason)
                return None
            self.keep(root, name, spot, slot)
            return Respelling(below.parts + 1, _guarded(below, root))

        old = slot.text
        if respell(slot, lambda text: respelled(text, respell_path)):
            self.draft.tell(slot, shown(old), shown(slot.text))
        for reason in refused:
            self.draft.refuse(slot, reason, "write what is meant with the names of the new result")


def _reads_former(slot: Slot, spot: TemplatePlace) -> bool:
    """Whether code reads an argument by keys that only former results had."""
    found = code_of(spot.task) if spot.task is not None else None
    if found is None or slot not in args_of(spot.task or Mapping()).slots:
        return False
    return any(_FORMER_KEY.fullmatch(text) for text in found[1].texts())


def _is_envelope(source: Source, below: PathReading) -> bool:
    """Whether `_prev` is read in the former shape of a result; `_prev` alone is a value."""
    return source.kind in (*SQL, "http") and (below.parts > 0 or below.form != "{0}")


def _guarded(below: PathReading, root: str) -> str:
    """A whole result in its former shape is missing where the result is."""
    form = below.form.format(root)
    return f"({form} if {root} is defined)" if form.startswith("{'") else form


# ── rows ──


def output_names(draft: Draft, _: Mapping) -> None:
    """`output` is `outcome` in a rule; a router sees the event instead."""
    results = Results(draft)
    for slot, spot in spots(draft):
        source = source_of(draft, spot.task) if spot.task is not None else None
        if spot.place == "router" and spot.step is not None and own_tasks(spot.step):
            source = results.source_of_step(spot.step)
        old = slot.text
        if respell(slot, lambda text, one=source, at=spot: respelled(text, _output(one, at))):  # type: ignore[misc]
            respell(slot, lambda text: revalued(text, ("outcome", "status"), _STATUSES))
            draft.tell(slot, shown(old), shown(slot.text))


_STATUSES: Final = {"success": "ok", "completed": "ok", "failed": "error"}
_AS_WHOLE: Final = {
    "rule": "{'status': outcome.status, 'data': outcome.result, 'error': outcome.error}",
    "router": "{'status': 'error' if event.error else 'ok', 'data': event.result, "
    "'error': event.error}",
}
_PARTS: Final[dict[str, dict[str, str]]] = {
    "rule": {"data": "outcome.result", "result": "outcome.result", "ref": "outcome.result"},
    "router": {
        "data": "event.result",
        "result": "event.result",
        "ref": "event.result",
        "error": "event.error",
        "status": "('error' if event.error else 'ok')",
    },
}


def _output(source: Source | None, spot: TemplatePlace):  # type: ignore[no-untyped-def]
    def respell_path(path: Path) -> Respelling | None:
        if path[0] != "output" or spot.place == "input":
            return None
        if len(path) == 1:
            return Respelling(1, _AS_WHOLE[spot.place])
        head = str(path[1])
        if spot.place == "rule" and path[1:3] in (("error", "status"), ("error", "status_code")):
            return Respelling(3, "outcome.http.status")
        root = _PARTS[spot.place].get(head)
        if root is None:
            return Respelling(1, "outcome" if spot.place == "rule" else "event")
        if not root.endswith("result") or source is None:
            return Respelling(2, root)
        if spot.place == "rule" and path[2:3] == ("status_code",):
            return Respelling(3, "outcome.http.status")
        below = reading(source, path[2:])
        if below.reason or (len(path) == 2 and source.kind in SQL):
            return Respelling(2, root)
        return Respelling(2 + below.parts, below.form.format(root))

    return respell_path


def result_names(draft: Draft, _: Mapping) -> None:
    """Results by the names of steps and tasks."""
    if speaks_case(draft):
        return
    results = Results(draft)
    for slot, spot in list(spots(draft)):
        results.respell(slot, spot)
    for label, at in results.kept_tasks.values():
        assert isinstance(label.node, Mapping)
        write = Write("iter", label.key or "", _value("{{ outcome.result }}", at))
        write_on_success(label.node, [write], last=False, goes_on=True)
        draft.tell(at, f"the result of task '{label.key}'", f"iter.{label.key}", now=write.slot)
    for name, at in results.kept_steps.items():
        _keep_step(draft, name, results.steps[name], at)


def _keep_step(draft: Draft, name: str, step: Mapping, at: Slot) -> None:
    slot = step.slot("step") or at
    write = Write("ctx", name, _value("{{ outcome.result }}", slot))
    write_at_end(own_tasks(step), [write])
    loop = step.mapping("loop")
    if loop is not None:
        policy = loop.within("spec", like=slot).within("policy", like=slot)
        policy.within("reduce", like=slot).put(name, "append")
    draft.tell(slot, f"the result of step '{name}'", f"ctx.{name}", now=write.slot)


def _value(text: str, like: Slot) -> Slot:
    return Slot(Scalar(text, [f'"{text}"'], '"', "", like.line), line=like.line, path=like.path)
