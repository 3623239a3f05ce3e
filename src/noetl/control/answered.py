"""
Which answers does a restart ask for again? An answer holds for what it was given to (RST-5).

What came from outside (an approval, a signal) was given to one workload, to the text of one step,
and to the values of `ctx` which that step names. Where one of them is another in the new execution,
the run or iteration that asked is run again, with all that came of it (decision 0062).
"""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final, TypeGuard

from msgspec.structs import replace

from noetl.control.forgetting import Forgetting, History, RunAgain, index_in, kept_of
from noetl.errors import RestartRefused
from noetl.messages import events as e
from noetl.messages.codec import encode

OUTSIDE: Final = ("approval", "signal")
ALL_OF_CTX: Final = re.compile(r"\bctx\b(?!\s*\.\s*(?!items|values|keys|get|copy)\w)")
"""`ctx` as a whole, or looked into by a key that is made at run time."""
WORD: Final = re.compile(r"\w+")


class Changes:
    """What the new execution has otherwise than the old one; `old` and `new` are documents."""

    def __init__(
        self,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        *,
        workload: bool = False,
        below: Collection[str] = (),
    ) -> None:
        self.workload = workload
        self.below = below
        """Tasks that ran a playbook in which somebody answered."""
        self._texts = cache(lambda step: (text_of(old, step), text_of(new, step)))

    def of_step(self, name: str) -> bool:
        before, now = self._texts(name)
        return self.workload or before != now

    def names_one(self, step: str, keys: set[str]) -> bool:
        """Whether the text of a step speaks of one of these keys of `ctx`."""
        text, _ = self._texts(step)
        named = ALL_OF_CTX.search(text) is not None or not keys.isdisjoint(WORD.findall(text))
        return bool(keys) and named


def text_of(document: Mapping[str, Any], step: str) -> str:
    """A step as its author wrote it, with what it may take from elsewhere."""
    steps = document.get("workflow") or []
    own = [one for one in steps if isinstance(one, Mapping) and one.get("step") == step]
    return encode([own, document.get("workbook"), document.get("executor")]).decode()


def asked_again(history: History, choice: RunAgain, changes: Changes) -> RunAgain:
    """The choice with the runs whose answers do not hold any more; raises RestartRefused."""
    refuse_older(history, changes)
    while found := stale_answers(history, choice, changes):
        runs = dict(choice.runs)
        for event in found:
            run, index = history.runs[event.step_run_id], index_in(event)
            before = runs.get(run.run_id, frozenset())
            if run.total is None or index is None or before is None:
                runs[run.run_id] = None
            else:
                runs[run.run_id] = before | {index}
        choice = replace(choice, runs=runs)
    answered = answered_in(history, choice, changes.below)
    return replace(choice, answered=answered, anew=changes.workload)


def has_answers(history: History, below: Collection[str]) -> bool:
    """Whether anything came from outside, or was taken over that did."""
    return bool(older_answers(history)) or any(
        is_answer(one.event, below) or isinstance(one.event, e.SignalReceived)
        for one in history.events
    )


def older_answers(history: History) -> list[str]:
    """Steps that were answered in an execution before, as its successor recorded them."""
    restored = (one.event for one in history.events if isinstance(one.event, e.ExecutionRestored))
    return [step for event in restored for step in event.kept.get("answered", ())]


def refuse_older(history: History, changes: Changes) -> None:
    """What was answered in an execution before is not in this log, and so cannot be forgotten."""
    stale = [step for step in older_answers(history) if changes.of_step(step)]
    if stale:
        first = history.events[0].event
        assert isinstance(first, e.ExecutionRequested), "a log begins with its request"
        raise RestartRefused(
            f"step '{stale[0]}' was answered in {first.origin_execution_id}, and what was asked "
            "there would be different now: restart that execution, and it asks again"
        )


def answered_in(history: History, choice: RunAgain, below: Collection[str]) -> tuple[str, ...]:
    """The steps whose answers are taken over."""
    kept = (one.event for one in kept_of(history, choice))
    found = [event.step for event in kept if is_answer(event, below)]
    return tuple(sorted({*found, *older_answers(history)}))


def stale_answers(history: History, choice: RunAgain, changes: Changes) -> list[e.TaskEvent]:
    """Answers that stay and were given to something else; what is asked again may forget more."""
    forgetting, reduced = Forgetting(history, choice), history.plan.executor.reduce.keys()
    stale: set[str] = set()
    """Keys of `ctx` whose value came of what is forgotten."""
    seen: dict[str, set[str]] = {}
    found: list[e.TaskEvent] = []
    for _, _, event in history.events:
        stays = forgetting.stays(event)
        if isinstance(event, e.CtxPatched):
            keys = event.patch.keys()
            stale = stale - (keys - reduced) if stays else stale | keys
        elif stays and isinstance(event, e.StepScheduled) and stale:
            seen[event.step_run_id] = set(stale)
        elif stays and is_answer(event, changes.below):
            keys_seen = seen.get(event.step_run_id, set())
            if changes.of_step(event.step) or changes.names_one(event.step, keys_seen):
                found.append(event)
    return found


def is_answer(event: e.Event, below: Collection[str]) -> TypeGuard[e.WaitDone | e.TaskDone]:
    if isinstance(event, e.WaitDone):
        return event.by in OUTSIDE
    return isinstance(event, e.TaskDone) and event.task_run_id in below
