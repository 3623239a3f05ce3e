"""From rendered inputs to one outcome: typed inputs, knobs, timeout, the call itself."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from noetl.errors import BodyLost
from noetl.kinds.misfit import misfit_words
from noetl.masking import KNOWN
from noetl.messages.codec import WITH_REFERENCES, decode, encode
from noetl.messages.depth import TOO_DEEP, is_deep
from noetl.messages.outcome import Outcome, completed, failed
from noetl.messages.reference import Reference
from noetl.pipeline.asks import CallTool
from noetl.playbook.model import Timeout
from noetl.playbook.plan import TaskPlan
from noetl.tools.tool import Tool, ToolCall, Workplace
from noetl.worker.caching import holds_secret

if TYPE_CHECKING:
    from noetl.worker.part import PartWork

NO_TIMEOUT = Timeout()
NET = 5.0
"""Seconds that a tool which keeps time has for its outcome; then it is cancelled all the same."""


SHOWN = 1_000
"""Characters of one rendered input that the log keeps beside an error."""


async def call_tool(part: "PartWork", ask: CallTool) -> Outcome:
    """Call the tool; an error tells people what the tool was given."""
    outcome = await called(part, ask)
    if outcome.status == "ok":
        kept = ask.task.spec.cache is not None
        return msgspec.structs.replace(outcome, secret=holds_secret(outcome)) if kept else outcome
    inputs = {name: clipped(KNOWN.cleaned(value)) for name, value in ask.inputs.items()}
    return msgspec.structs.replace(outcome, inputs=inputs)


def clipped(value: Any) -> Any:
    """A rendered input in short: what is nested is text. Masked before: half a secret is none."""
    if value is None or isinstance(value, bool | int | float):
        return value
    try:
        text = value if isinstance(value, str) else encode(value).decode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


async def called(part: "PartWork", ask: CallTool) -> Outcome:
    """The call itself; whatever goes wrong on the way is an outcome that the policy sees."""
    task = ask.task
    ready = part.ready.get(task.label)
    if ready is None or ready.task is not task:
        tool = part.worker.tools.get(task.kind)
        if tool is None:
            return failed("not_found", f"this worker has no tool of kind '{task.kind}'")
        ready = part.ready[task.label] = ready_for(part, task, tool)
    try:
        values = await loaded(part, ask) if holds_reference(ask.inputs) else ask.inputs
        inputs = msgspec.convert(values, task.inputs, strict=False)
    except msgspec.ValidationError as fault:
        return failed("input", f"task '{task.label}': {misfit_words(fault)}")
    except BodyLost as lost:
        return failed("result", str(lost))
    except RecursionError:  # a body of the world, which nobody has looked into before
        return failed("result", f"task '{task.label}': of its inputs, {TOO_DEEP}")
    call: ToolCall[Any] = ToolCall(
        inputs=inputs, task_run_id=ask.task_run_id, attempt=ask.attempt, **ready.fields
    )
    try:
        async with ready.slot:
            if ready.late is None:
                return writable(await ready.tool.call(call, ready.workplace))
            async with asyncio.timeout(ready.late):
                return writable(await ready.tool.call(call, ready.workplace))
    except TimeoutError as fault:
        total = call.timeout.total
        if total is None:  # the tool's own, which it should have told as an outcome
            return failed("internal", f"TimeoutError: {fault}")
        return failed("timeout", f"the task took longer than {total:g} s", retryable=True)
    except asyncio.CancelledError:
        raise
    except Exception as fault:  # a tool may not raise (its contract); one that does is not our end
        return failed("internal", f"{type(fault).__name__}: {fault}")


class ReadyTask(msgspec.Struct, frozen=True, kw_only=True):
    """What all calls of one task in a part have in common."""

    task: TaskPlan
    tool: Tool
    workplace: Workplace
    slot: AbstractAsyncContextManager[None]
    late: float | None
    """Seconds after which a call is cancelled."""
    fields: dict[str, Any]
    """Of its `ToolCall`."""


def ready_for(part: "PartWork", task: TaskPlan, tool: Tool) -> ReadyTask:
    spec, command, bounds = task.spec, part.command, part.worker.tools.bounds
    timeout = spec.timeout or NO_TIMEOUT
    late = timeout.total
    if late is not None and getattr(tool, "keeps_time", False):
        late += NET
    fields = {
        "execution_id": command.execution_id,
        "step": command.step,
        "label": task.label,
        "trace_id": command.trace_id,
        "timeout": timeout,
        "pool": spec.pool,
        "client_retries": spec.client_retries,
        "resources": spec.resources,
        "shared": part.plan.executor.isolation == "shared",
        "scratch": f"{command.execution_id}/{command.step_run_id}",
        "folder": part.folder or bounds.files,
        "files": bounds.files,
        "private": bounds.private,
        "max_inline": part.plan.limits.max_payload_bytes,
    }
    return ReadyTask(
        task=task,
        tool=tool,
        workplace=part.worker.workplace(part, task.kind),
        slot=part.worker.slot(task.kind),
        late=late,
        fields=fields,
    )


async def loaded(part: "PartWork", ask: CallTool) -> dict[str, Any]:
    """The inputs with their values (RES-2), but for stored ones that the tool itself streams."""
    streamed = {
        name: value
        for name in ask.task.inputs.streams
        # What this part holds in memory may not be in the store yet.
        if isinstance(value := ask.inputs.get(name), Reference)
        and value.sealed is None
        and value.key not in part.fitting.bodies
        and not (value.schema_hint or "").endswith(WITH_REFERENCES)
    }
    rest = {name: value for name, value in ask.inputs.items() if name not in streamed}
    return {**await part.fitting.resolved(rest), **streamed}


def writable(outcome: Outcome) -> Outcome:
    """
    The outcome as the log will hold it, so that what follows is the same after a replay (EVT-5).

    What no JSON can hold would never get there (OUT-4 `result`).
    """
    try:
        text = encode([outcome.result, outcome.error, outcome.block])
        if is_deep(text):
            raise RecursionError(TOO_DEEP)
        plain = decode(text)
    except RecursionError:
        return failed("result", f"of what the tool gave, {TOO_DEEP}")
    except (TypeError, ValueError, OverflowError) as fault:
        return failed("result", f"the tool gave what no JSON can hold: {fault}")
    result, error, block = plain
    if outcome.status == "error":
        error = completed(error)
    return msgspec.structs.replace(outcome, result=result, error=error, block=block)


PLAIN = frozenset((str, int, float, bool, type(None)))


def holds_reference(value: Any) -> bool:
    """Whether there is anything to load in the inputs."""
    pending = [value]
    for one in pending:  # it grows meanwhile
        if isinstance(one, dict):
            one = one.values()
        elif not isinstance(one, list):
            if isinstance(one, Reference):
                return True
            continue
        pending += [below for below in one if type(below) not in PLAIN]
    return False
