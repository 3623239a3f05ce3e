"""
What did each name of a template mean where it was written, and what is it called there now?

All dialects are read by this one pass, after everything stands in its place: a name is resolved
once, against the whole document. A step's result by its name is `ctx.<step>`, written when the
step is done; the step's own router sees it as `event.result`, its rules as `outcome.result`. A
task's result by its name is `iter.<task>`. What has no counterpart is told with its line (DIA).
"""

from typing import Final

from noetl.playbook.dialects.code_tasks import args_of, at_line, change_code, code_of
from noetl.playbook.dialects.cursors import NO_LIST
from noetl.playbook.dialects.draft import Draft, own_tasks, respell, shown
from noetl.playbook.dialects.former_args import shaped
from noetl.playbook.dialects.former_results import ANSWER, PathReading, Source, reading, source_of
from noetl.playbook.dialects.names import (
    Respelling,
    respelled,
    respelled_reads,
    revalued,
    spelled_rest,
)
from noetl.playbook.dialects.pipeline import acting_in
from noetl.playbook.dialects.places import Known, TemplatePlace, hides, places
from noetl.playbook.dialects.reach import Reach
from noetl.playbook.dialects.sight import Sight, may_see, unseen
from noetl.playbook.dialects.tree import Mapping, TreeSlot
from noetl.playbook.dialects.words import HINT, WORDS, AskedName, error_kinds, refuse_calls
from noetl.playbook.dialects.writes import keep_step, keep_task

# Namespaces and locals come before any result of that name (TPL-2).
RESERVED: Final = frozenset(
    {"workload", "ctx", "iter", "args", "execution_id", "event", "outcome", "output"}
    | {"_prev", "_task", "_attempt"}
)
_STATUSES: Final = {"success": "ok", "completed": "ok", "failed": "error"}
_EVENTS: Final = {"call.done": "step.done", "call.error": "step.failed", "step.exit": "step.done"}
# Forms that say nothing about how the author writes names.
_OUTER: Final = frozenset({"up-executor", "up-loop", "up-tool", "up-empty-step"})
_VALUES: Final = frozenset({"input", "loop", "rule"})
"""Places where a value that is missing is an error; elsewhere a guard is false (TPL-3)."""
_STATS: Final = {
    **dict.fromkeys(("total", "count"), "total"),
    **dict.fromkeys(("completed", "success", "succeeded", "done"), "done"),
    **dict.fromkeys(("failed", "errors"), "failed"),
}


def name_everything(draft: Draft, _: Mapping) -> None:
    """Every name of the document; then every result that is read is kept where it is read."""
    naming = Naming(draft)
    found = list(places(draft))
    for slot, place in found:
        naming.respell(slot, place)
    for label, at in naming.kept_tasks.values():
        keep_task(draft, label, at)
    for name, at in naming.kept_steps.items():
        keep_step(draft, name, naming.steps[name], at)
    _name_scopes(naming, found)


class Naming:
    """The names of one document, and the results that are read by them."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.known = Known(draft)
        self.reach = Reach(draft)
        self.steps: dict[str, Mapping] = {
            name: step
            for step in draft.steps()
            if (name := step.text("step")) and own_tasks(step) and name not in RESERVED
        }
        self.kept_steps: dict[str, TreeSlot] = {}
        self.kept_tasks: dict[int, tuple[TreeSlot, TreeSlot]] = {}
        self.codes: list[str] = []
        self.refused: list[tuple[str, str]] = []

    # ── one template ──

    def respell(self, slot: TreeSlot, place: TemplatePlace) -> None:
        """Every name of one template."""
        old = slot.text
        self.codes = []
        refuse_calls(self.draft, slot)
        if respell(slot, lambda text: self._spelled(text, slot, place)):
            for code in dict.fromkeys(self.codes):
                self.draft.tell(slot, shown(old), shown(slot.text), code=code)
        for message, hint in self.refused:
            self.draft.refuse(slot, message, hint)
        error_kinds(self.draft, slot)

    def _spelled(self, text: str, slot: TreeSlot, place: TemplatePlace) -> str:
        self.refused = []
        sight = self._sight_at(place) if may_see(text) else None
        if sight is not None:
            unknown = sight.unknown(text)
            self.refused += [unseen(unknown)] if unknown is not None else []
            text = sight.spelled(text)
        new = respelled_reads(text, lambda read: self._say(AskedName(read, slot, place, text)))
        if "outcome" in new:
            own = "up-output" in self.codes
            known = _STATUSES if own else {"success": "ok"}
            valued = revalued(new, ("outcome", "status"), known)
            self.codes += ["eval-status"] if valued != new and not own else []
            new = valued
        if place.kind == "router" and "event" in new:
            done = "loop.done" if "loop" in (place.step or Mapping()) else "step.done"
            names = {word: done if to == "step.done" else to for word, to in _EVENTS.items()}
            if place.step is not None and self.is_wrapped(place.step):
                names["loop.done"] = done
            valued = revalued(new, ("event", "name"), names)
            self.codes += ["up-event"] if valued != new else []
            new = valued
        return new

    def _sight_at(self, place: TemplatePlace) -> Sight | None:
        """How a place of the case dialect sees what the main task of its step came to."""
        step, task, draft = place.step, place.task, self.draft
        if place.kind == "input" and id(task) in draft.sights:
            return draft.sights[id(task)]
        if step is None or not draft.case:
            return None
        kind, wrapped = draft.mains.get(id(step), ""), self.is_wrapped(step)
        if place.kind == "router":
            listed = "loop" in step or wrapped
            return draft.sights.get(id(step), Sight("router", kind, listed))
        if place.kind not in ("rule", "input") or task is None:
            return None
        after = place.kind == "input" or task.text("kind") == "noop"
        if after and not place.before:
            return Sight("rule", kind) if place.kind == "rule" else None
        outer = wrapped and any(one.node is task for one in own_tasks(step))
        return Sight("after" if after else "rule", kind, outer)

    def _say(self, asked: AskedName) -> Respelling | None:
        say = WORDS.get(str(asked.path[0]))
        found = say(self, asked) if say is not None else None
        return found or self._by_name(asked)

    def coded(self, code: str, parts: int, text: str) -> Respelling:
        self.codes.append(code)
        return Respelling(parts, text)

    def refuse(self, message: str, hint: str) -> Respelling | None:
        """What cannot be said; the name stays as it is."""
        self.refused.append((message, hint))
        return None

    # ── results by name ──

    def source_of_step(self, step: Mapping) -> Source:
        task = acting_in(own_tasks(step)) or Mapping()
        return source_of(self.draft, task, listed="loop" in step or self.is_wrapped(step))

    def is_wrapped(self, step: Mapping) -> bool:
        """Whether the loop of a step has become a task of it."""
        return any(("listed", id(one.node)) in self.draft.left for one in own_tasks(step))

    def own_source(self, place: TemplatePlace) -> Source | None:
        """What a template of a rule or a router is about."""
        if place.kind == "router":
            tasks = place.step is not None and own_tasks(place.step)
            return self.source_of_step(place.step) if place.step is not None and tasks else None
        if place.task is None:
            return None
        own = [one for one in place.pipeline if one.node is place.task]
        task = acting_in([*place.before, *own]) if own else None
        return source_of(self.draft, task or place.task)

    def _by_name(self, asked: AskedName) -> Respelling | None:
        name, place = str(asked.path[0]), asked.place
        if self.draft.case:
            return self._of_case(asked)
        if self.known.defines(name, place):
            self._warn_of_two(name, asked)
            return None
        found = self._task_named(name, place) or self._step_named(name, place)
        if found is None:
            return None
        source, root = found
        if source.listed and asked.path[1:2] == ("stats",):
            below = _of_stats(asked, root)
        elif asked.path[1:2] == ("results",) and not source.listed:
            below = self._of_task(name, asked)
        else:
            below = self.below(source, asked)
        said = self.said(below, root)
        if said is None:
            return None
        if root.startswith("ctx."):
            self.kept_steps.setdefault(name, asked.slot)
            return self._surely(said, asked, source, name)
        if root.startswith("iter."):
            slot = next(one for one in place.pipeline if one.key == name)
            self.kept_tasks.setdefault(id(slot), (slot, asked.slot))
        return said

    def _warn_of_two(self, name: str, asked: AskedName) -> None:
        """A name of a step that something else has too: which of them is meant is open."""
        step = self.steps.get(name)
        other = "ctx" if name in self.known.written else "the workload"
        shared = name in self.known.written or name in self.known.workload
        if step is None or step is asked.place.step or not shared or not self.draft.notes:
            return
        self.draft.refuse(
            asked.slot,
            f"`{name}` is a step and a key of {other}; here it is read as the key",
            f"rename the step if you mean its result, or write the scope before `{name}`",
            code="changed-meaning",
        )

    def said(self, below: PathReading, root: str) -> Respelling | None:
        if below.reason:
            return self.refuse(below.reason, HINT)
        form = below.form.format(root)
        # A whole result in its former shape is missing where the result is.
        form = f"({form} if {root} is defined)" if form.startswith("{'") else form
        return self.coded("up-result", below.parts + 1, form)

    def _surely(self, said: Respelling, asked: AskedName, source: Source, name: str) -> Respelling:
        """A result that may not be there: of a branch that did not run, of a loop over nothing."""
        read, root = asked.read, f"ctx.{name}"
        if read.covered or asked.place.kind not in _VALUES:
            return said
        if source.listed and said.text == root and self.reach.may_be_empty(self.steps[name]):
            listed = f"{root} | default([])"
            whole = read.alone and said.parts == len(read.path)
            return said._replace(text=listed if whole else f"({listed})")
        return self._if_it_ran(said, asked, name)

    def _if_it_ran(self, said: Respelling, asked: AskedName, name: str) -> Respelling:
        """Nothing, where a step has not run: an error would end what went on before (TPL-3)."""
        read, kind = asked.read, asked.place.kind
        sure = read.covered or not read.alone or kind not in _VALUES
        if sure or self.reach.has_run(name, asked.place.step):
            return said
        rest = spelled_rest(read, said.parts, asked.text)
        nothing = "[]" if kind == "loop" else "''"
        return Respelling(len(read.path), f"{said.text}{rest} | default({nothing})")

    def _task_named(self, name: str, place: TemplatePlace) -> tuple[Source, str] | None:
        tasks = place.pipeline
        slot = next((one for one in tasks if one.key == name), None)
        if slot is None or name in RESERVED or not isinstance(slot.node, Mapping):
            return None
        source = source_of(self.draft, slot.node)
        if slot.node is place.task and place.kind == "rule":
            return source, "outcome.result"
        if place.kind == "router":
            if slot is tasks[-1] and "loop" not in (place.step or Mapping()):
                return source, "event.result"
            if name not in self.steps:
                said = f"a router sees the result of the last task, which '{name}' is not"
                self.refuse(said, f"let a rule of '{name}' keep it: set_ctx: {{ … }}")
            return None
        single = len(tasks) == 1 and name in self.steps
        return None if single else (source, f"iter.{name}")

    def _step_named(self, name: str, place: TemplatePlace) -> tuple[Source, str] | None:
        step = self.steps.get(name)
        if step is None:
            return None
        source, own, loops = self.source_of_step(step), step is place.step, "loop" in step
        if ("cursor", id(step)) in self.draft.left:
            self.refuse(*NO_LIST)
            return None
        if own and place.kind == "router":
            return source, "event.loop.results" if loops else "event.result"
        at_end = any(one.node is place.task for one in own_tasks(step))
        if own and place.kind == "rule" and at_end and not loops:
            return source, "outcome.result"
        return source, f"ctx.{name}"

    def below(self, source: Source, asked: AskedName) -> PathReading:
        """How a path is read; what code gets as a whole depends on the code."""
        task, slot = asked.place.task, asked.slot
        found = code_of(task) if task is not None and len(asked.path) == 1 else None
        is_arg = found is not None and slot in args_of(task or Mapping()).slots
        if found is None or not is_arg or not (slot.key or "").isidentifier():
            return reading(source, asked.path[1:])
        code_slot, code = found
        how = shaped(source, slot.key or "", code)
        if how.reason:
            hint = "read what is there now: the rows of the last statement"
            self.draft.refuse(at_line(code_slot, how.line), how.reason, hint)
        elif how.code != code.text and code.is_template:
            return reading(source, asked.path[1:])
        elif how.code != code.text:
            said = (f"{slot.key} as before", "its new shape")
            change_code(self.draft, code_slot, how.code, *said, code="up-result")
        return PathReading(0, how.form)

    def _of_task(self, name: str, asked: AskedName) -> PathReading:
        """`step.results.task`: of the last task it is the step's own."""
        tasks = own_tasks(self.steps[name]) if name in self.steps else []
        if tasks and asked.path[2:3] == (tasks[-1].key,):
            return PathReading(2)
        label = asked.path[2] if len(asked.path) > 2 else "results"
        return PathReading(
            0, reason=f"a step's result is that of its last task, which '{label}' is not"
        )

    def _of_case(self, asked: AskedName) -> Respelling | None:
        """Steps of the case dialect keep their results themselves; here they are only named."""
        name = str(asked.path[0])
        needed = self.draft.needed.get(name)
        if needed is None or hides(self.known, name, asked.place):
            return None
        root = f"ctx.{needed.home}"
        if needed.answers and asked.path[1:2] and asked.path[1] in ANSWER:
            said = self.coded("case-results", 2, f"{root}.{ANSWER[str(asked.path[1])]}")
        else:
            whole = needed.answers and len(asked.path) > 1
            said = self.coded("case-results", 1, f"{root}.data" if whole else root)
        return self._if_it_ran(said, asked, name)


def _of_stats(asked: AskedName, root: str) -> PathReading:
    """`stats` of a loop: a loop that has ended well has failed nowhere (LOOP-4)."""
    part = _STATS.get(str(asked.path[2]) if len(asked.path) > 2 else "")
    if part is None:
        said = "a loop's result is the list of its results; it has no 'stats'"
        return PathReading(0, reason=said)
    if root == "event.loop.results":
        return PathReading(2, f"event.loop.{part}")
    return PathReading(2, "0" if part == "failed" else "({0} | default([]) | length)")


# ── scopes ──


def _name_scopes(naming: Naming, found: list[tuple[TreeSlot, TemplatePlace]]) -> None:
    """
    Names of the workload and of iterators without their scope.

    They are found without it too (TPL-2), so that only a text that changes anyway says it.
    """
    draft, known = naming.draft, naming.known
    if not draft.notes:
        return
    named = not draft.case and any(
        note.code.startswith("up-") and note.code not in _OUTER for note in draft.notes
    )
    code = "up-name" if named else "case-loop"
    for slot, place in found:
        if place.kind in ("workload", "admit") or (not named and not place.iterators):
            continue

        def respell_path(
            path: tuple[str | int, ...], at: TemplatePlace = place
        ) -> Respelling | None:
            name = str(path[0])
            if name in at.iterators:
                up = ".parent" * (len(at.iterators) - 1 - at.iterators.index(name))
                return Respelling(1, f"iter{up}.{name}")
            if not named or name in known.written or name in known.into(at.step):
                return None
            return Respelling(1, f"workload.{name}") if name in known.workload else None

        old = slot.text
        if respell(slot, lambda text, how=respell_path: respelled(text, how)):  # type: ignore[misc]
            draft.tell(slot, shown(old), shown(slot.text), code=code)
