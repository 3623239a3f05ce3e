"""Names that are no results: events, `job`, the workload, iterators, what is missing (DIA-UP)."""

import re
from typing import Final

from noetl.messages.outcome import ERROR_KINDS
from noetl.playbook.dialects.draft import Draft, arcs_of, respell, shown, templates_below
from noetl.playbook.dialects.names import Respelling, paths_read, respelled, revalued
from noetl.playbook.dialects.tree import Mapping, TreeSlot
from noetl.playbook.dialects.upstream_results import Path
from noetl.playbook.dialects.upstream_shapes import speaks_case
from noetl.playbook.dialects.upstream_spots import Known, iterators_below, spots

_EVENTS: Final = {"call.done": "step.done", "call.error": "step.failed", "step.exit": "step.done"}


def event_names(draft: Draft, step: Mapping) -> None:
    """Names of events that routers wait for."""
    if speaks_case(draft):
        return
    done = "loop.done" if "loop" in step else "step.done"
    names = {old: done if new == "step.done" else new for old, new in _EVENTS.items()}
    for arc in arcs_of(step):
        for slot in templates_below(arc):
            old = slot.text
            if respell(slot, lambda text: revalued(text, ("event", "name"), names)):
                draft.tell(slot, shown(old), shown(slot.text))


_JOB: Final = frozenset({"uuid", "id", "execution_id"})


# Calls that public templates make; here the same inputs always give the same value (TPL-5).
_CALLS: Final = re.compile(r"(?<![\w.'\"|])(now|token|env|uuid|uuid4|random)\s*\(")
_KIND: Final = re.compile(r"outcome\.error\.kind\s*[!=]=\s*['\"](\w+)['\"]")


def plain_names(draft: Draft, root: Mapping) -> None:
    """`job.uuid`, `step.x`; what templates cannot do here is refused."""
    for slot in templates_below(root):
        _refuse_names(draft, slot)
        old = slot.text
        if respell(slot, lambda text: respelled(text, _plain)):
            draft.tell(slot, shown(old), shown(slot.text))


def _refuse_names(draft: Draft, slot: TreeSlot) -> None:
    text = slot.text or ""
    if any(path[0] == "keychain" for path in paths_read(text)):
        draft.refuse(
            slot,
            "a template reads a secret of the keychain, which templates never see",
            "write auth: name in the task that needs it, or read it with kind: secrets",
        )
    called = _CALLS.search(text) if slot.key != "code" else None
    if called is not None:
        draft.refuse(
            slot,
            f"a template calls '{called.group(1)}()', which templates do not have",
            "let a task find the value, or hand it over as part of the request",
        )
    for kind in _KIND.findall(text):
        if kind not in ERROR_KINDS:
            draft.refuse(
                slot,
                f"no error of this runtime is of kind '{kind}', so the rule never matches",
                "compare outcome.http.status, or outcome.error.retryable, instead",
                code="changed-meaning",
            )


def _plain(path: Path) -> Respelling | None:
    if path[0] == "job" and len(path) > 1 and path[1] in _JOB:
        return Respelling(2, "execution_id")
    if path[0] == "step" and len(path) > 1:
        return Respelling(1, "iter")
    return None


# Forms that say nothing about how the author writes names.
_OUTER: Final = frozenset({"up-executor", "up-loop", "up-tool", "up-empty-step"})


def bare_names(draft: Draft, _: Mapping) -> None:
    """
    Names of the workload and of iterators without their scope.

    They are found without it too (TPL-2), so that only a text that changes anyway says it.
    """
    if speaks_case(draft) or all(note.code in _OUTER for note in draft.notes):
        return
    known = Known(draft)
    for slot, spot in spots(draft):
        inner = iterators_below(spot.task)
        loop = (spot.step.mapping("loop") if spot.step is not None else None) or Mapping()
        iterator = loop.text("iterator") if spot.place != "router" else None
        carried = known.carried.get((spot.step or Mapping()).text("step") or "", set())
        if loop.slot("in") is slot:
            iterator = None

        def respell_path(
            path: Path,
            own: str | None = iterator,
            hidden: set[str] = known.written | carried | inner,
        ) -> Respelling | None:
            name = str(path[0])
            if name in hidden:
                return None
            if name == own:
                return Respelling(1, f"iter.{name}")
            return Respelling(1, f"workload.{name}") if name in known.workload else None

        old = slot.text
        if respell(slot, lambda text, how=respell_path: respelled(text, how)):  # type: ignore[misc]
            draft.tell(slot, shown(old), shown(slot.text))
