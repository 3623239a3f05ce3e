"""Tools that touch nothing: they answer from the outcomes that a test has canned."""

from collections import Counter
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from noetl.messages.codec import encode
from noetl.messages.outcome import Outcome, failed, make_error
from noetl.messages.words import value_text
from noetl.node.testing.document import Canned
from noetl.playbook.plan import Pipeline, Plan
from noetl.tools.bounds import Bounds
from noetl.tools.noop import NoopTool
from noetl.tools.table import Toolbox
from noetl.tools.tool import Tool, ToolCall, Workplace

HARMLESS = frozenset({"transform"})
"""Kinds that only make a value of their inputs."""
RETRYABLE = frozenset({408, 425, 429})
"""OUT-3, with every status from 500."""


class CannedBox(Toolbox):
    """
    Every kind but `noop` answers from the test's outcomes; the calls are counted.

    Tasks without an outcome are run by their tools, of the kinds in `real` and of those that
    touch nothing anyway.
    """

    def __init__(
        self,
        outcomes: Mapping[str, list[Canned] | Canned],
        real: Collection[str] = (),
        home: Path = Path(),
        bounds: Bounds | None = None,
        room: int | None = None,
    ) -> None:
        super().__init__(home, bounds=bounds)
        self._room = room
        self._outcomes = outcomes
        self._real = real
        self._calls: Counter[str] = Counter()
        self.missing: list[str] = []
        """Calls for which nothing was canned, each as a sentence."""

    def __getitem__(self, kind: str) -> Tool:
        return NoopTool() if kind == "noop" else CannedTool(kind, self)

    def runs(self, kind: str, call: ToolCall[Any]) -> Tool | None:
        """The tool that runs a call for real, where one does."""
        canned = self._outcomes.keys() & {f"{call.step}.{call.label}", call.label}
        real = kind in self._real or kind in HARMLESS
        return super().__getitem__(kind) if real and not canned else None

    def answer(self, kind: str, call: ToolCall[Any]) -> Outcome:
        place = f"{call.step}.{call.label}"
        name = place if place in self._outcomes else call.label
        canned = self._outcomes.get(name)
        number = self._calls[name]
        self._calls[name] += 1
        if isinstance(canned, dict):
            return outcome_of(kind, canned)
        if canned is not None and number < len(canned):
            return outcome_of(kind, canned[number])
        inputs = value_text(msgspec.json.decode(encode(call.inputs)), self._room)
        given = f"has {len(canned)} for it" if canned else "has none"
        sentence = (
            f"call {number + 1} of {place} needs an outcome, and the test {given}: add it to "
            f"`outcomes`, or run the task by `noetl test --run {kind}`; its inputs were {inputs}"
        )
        self.missing.append(sentence)
        return failed("not_found", sentence)


class CannedTool:
    """Tool; see its contract."""

    def __init__(self, kind: str, box: CannedBox) -> None:
        self._kind = kind
        self._box = box

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        tool = self._box.runs(self._kind, call)
        if tool is not None:
            return await tool.call(call, workplace)
        return self._box.answer(self._kind, call)

    async def forget(self, scratch: str) -> None:
        """Keeps nothing."""

    async def close(self) -> None:
        """Keeps nothing."""


def outcome_of(kind: str, canned: Canned) -> Outcome:
    """The outcome as the real tool would have given it (OUT-1, OUT-2)."""
    blocks = {key: value for key, value in canned.items() if key not in ("ok", "error")}
    name, block = next(iter(blocks.items()), (None, None))
    if "error" not in canned:
        result = canned["ok"]
        if kind == "http" and block is None and isinstance(result, dict):
            block = {key: result[key] for key in ("status", "headers") if key in result}
        return Outcome(status="ok", result=result, block=block or None, block_name=name)
    error = make_error(kind, "canned", retryable=retryable(block)) | canned["error"]
    return Outcome(status="error", error=error, block=block, block_name=name)


def retryable(block: Any) -> bool:
    status = block.get("status") if isinstance(block, dict) else None
    return isinstance(status, int) and (status >= 500 or status in RETRYABLE)


def faults_in(outcomes: Mapping[str, list[Canned] | Canned], plan: Plan) -> list[str]:
    """What is wrong with the canned outcomes themselves: names of no task, unclear outcomes."""
    places = places_of(plan)
    known = places | {place.rpartition(".")[2] for place in places} | set(plan.workbook)
    faults = []
    for name, canned in outcomes.items():
        if name not in known:
            faults.append(f"outcomes name {stranger(name, known, 'task')}")
        for one in canned if isinstance(canned, list) else [canned]:
            if ("ok" in one) == ("error" in one) or len(one) > 2:
                faults.append(
                    f"outcomes of '{name}': expected `ok` or `error`, and at most one block "
                    f"beside it, got {', '.join(one) or 'nothing'}"
                )
            elif not isinstance(one.get("error", {}), dict):
                faults.append(f"outcomes of '{name}': `error` must be a mapping {{kind, message}}")
    return faults


def stranger(name: str, known: Collection[str], what: str) -> str:
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    return f"'{name}', which is not a {what} of the playbook{hint}"


def places_of(plan: Plan) -> set[str]:
    return {
        f"{name}.{label}" for name, step in plan.steps.items() for label in labels_of(step.pipeline)
    }


def labels_of(pipeline: Pipeline) -> set[str]:
    labels = set(pipeline.labels)
    for task in pipeline.tasks:
        if task.inner is not None:
            labels |= labels_of(task.inner.pipeline)
    return labels
