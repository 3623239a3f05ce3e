"""What a start of a trigger has in `workload`, made without holding up the loop (TPL-5)."""

import asyncio
from functools import partial
from typing import Any

from noetl.errors import TakesLong
from noetl.expression.meter import METER, Meter
from noetl.messages.envelope import timestamp
from noetl.playbook.triggers import OWN, Trigger
from noetl.server.loading import SLOW


async def payload_of(
    trigger: Trigger, *, at: int, data: Any = None, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """
    What goes into `workload`: the payload, and `trigger` with name and time. Without a payload
    `trigger` has the data, too. Raises TemplateFailed.
    """
    seen = {"name": trigger.name, "at": timestamp(at), "data": data, "headers": headers or {}}
    if trigger.payload is None:
        return {OWN: {"name": seen["name"], "at": seen["at"], "data": data}}
    try:
        made = _evaluated(trigger, seen, hurried=True)
    except TakesLong:
        work = partial(_evaluated, trigger, seen)
        made = await asyncio.get_running_loop().run_in_executor(SLOW, work)
    return {**made, OWN: {"name": seen["name"], "at": seen["at"]}}


def _evaluated(trigger: Trigger, seen: dict[str, Any], *, hurried: bool = False) -> dict[str, Any]:
    """All templates of a payload share one meter, however many there are."""
    evaluate = trigger.made_payload
    assert evaluate is not None, "it has a payload"
    meter = Meter(shared=True, hurried=hurried)
    made: dict[str, Any] = evaluate({"args": {OWN: seen}, METER: meter})
    return made
