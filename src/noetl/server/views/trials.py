"""What a template would come to on the recorded state of an execution (TPL)."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from noetl.control.execution import Execution
from noetl.errors import BodyLost, NeedsBody, TemplateError
from noetl.expression.limits import LARGEST_LOADED
from noetl.expression.lookup import BODIES
from noetl.expression.template import Scope, compile_text
from noetl.masking import KNOWN
from noetl.messages.codec import encode_shown, recorded_events
from noetl.messages.events import TaskDone
from noetl.messages.reference import Reference
from noetl.ports.event_log import EventLog

TRIALS = ThreadPoolExecutor(1, thread_name_prefix="trial")
"""One at a time, and never in the way of a decision: a template takes a second at most (TPL-5)."""
MOST_BODIES = 20
"""Stored values that one template may look into."""
MOST_NAMES = 200
"""Keys of a namespace that are told."""

Load = Callable[[Reference], Awaitable[Any]]


class TriedTemplate(msgspec.Struct, frozen=True):
    """A value, or why there is none."""

    value: Any = None
    error: str | None = None
    meant: str | None = None


def scope_of(execution: Execution) -> Scope:
    """What every template of an execution sees, whatever its step."""
    return {
        "workload": execution.workload,
        "ctx": execution.ctx,
        "args": {},
        "execution_id": execution.execution_id,
    }


async def outcome_at(log: EventLog, execution_id: str, seq: int) -> Scope:
    """What the policy of a task sees of its outcome; nothing where no task ended there."""
    for row in await log.read(execution_id, after=seq - 1, limit=1):
        if row.first <= seq <= row.last:
            event = recorded_events(execution_id, row.first, row.events)[seq - row.first]
            if isinstance(event, TaskDone):
                return {"outcome": event.outcome, "_attempt": event.attempt}
    return {}


def names_in(scope: Scope) -> dict[str, list[str]]:
    """Namespace → its keys, as far as they are at hand."""
    return {
        name: sorted(value)[:MOST_NAMES] if isinstance(value, dict) else []
        for name, value in scope.items()
    }


async def try_template(text: str, scope: Scope, load: Load) -> TriedTemplate:
    """The value of a template; whatever is wrong with it is told, never raised."""
    bodies: dict[str, Any] = {}
    seen = {**scope, BODIES: bodies}
    loop = asyncio.get_running_loop()
    for _ in range(MOST_BODIES + 1):
        try:
            return TriedTemplate(await loop.run_in_executor(TRIALS, _value, text, seen))
        except NeedsBody as needs:
            reference = needs.reference
            if reference.sealed is not None:
                return TriedTemplate(error="it is a secret, which only a worker can read (KEY-3)")
            if reference.size > LARGEST_LOADED:
                return TriedTemplate(error=f"a value of {reference.size:,} bytes is too large")
            try:
                body = await load(reference)
                bodies[reference.key] = await loop.run_in_executor(TRIALS, _cleaned, body)
            except BodyLost as lost:
                return TriedTemplate(error=str(lost))
        except TemplateError as wrong:
            return TriedTemplate(error=str(wrong), meant=getattr(wrong, "meant", None))
    return TriedTemplate(error=f"it looks into more than {MOST_BODIES} stored values")


def _value(text: str, scope: Scope) -> Any:
    """KEY-2: secrets are replaced before, since a template could turn one around."""
    return compile_text(text)({name: _cleaned(value) for name, value in scope.items()})


def _cleaned(value: Any) -> Any:
    """To look at each text of a value takes seconds for a few megabytes: most hold no secret."""
    return KNOWN.cleaned(value) if KNOWN and KNOWN.found_in(encode_shown(value)) else value
