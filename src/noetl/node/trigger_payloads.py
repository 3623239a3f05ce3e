"""What a start of a trigger has in `workload`, made without holding up the loop (TPL-5)."""

import asyncio
from functools import partial
from typing import Any, Final

from noetl.errors import TakesLong
from noetl.expression.meter import METER, Meter
from noetl.masking import KNOWN
from noetl.messages.envelope import timestamp
from noetl.playbook.triggers import OWN, SEEN, Trigger
from noetl.ports.large import encoded, off_loop
from noetl.server.loading import slow_thread

HIDDEN: Final = (
    *("authorization", "cookie", "signature", "token", "secret", "password", "credential"),
    *("api-key", "apikey", "access-key", "jwt", "session", "assertion"),
)
"""Words in the names of headers that prove who calls: no payload sees those."""


async def payload_of(
    trigger: Trigger, *, at: int, data: Any = None, headers: dict[str, str] | None = None
) -> dict[str, Any]:
    """
    What goes into `workload`: the payload, and `trigger` with name and time. Without a payload
    `trigger` has the data, too. Raises TemplateFailed.
    """
    about = {"name": trigger.name, "at": timestamp(at)}
    if trigger.payload is None:
        return await _without_secrets({OWN: {**about, "data": data}})
    seen = {**about, "data": data, "headers": visible(headers or {})}
    try:
        made = _evaluated(trigger, seen, hurried=True)
    except TakesLong:
        work = partial(_evaluated, trigger, seen)
        made = await asyncio.get_running_loop().run_in_executor(slow_thread(), work)
    return await _without_secrets({**made, OWN: about})


async def _without_secrets(payload: dict[str, Any]) -> dict[str, Any]:
    """KEY-2: it goes into the log, and whoever calls may send what another one keeps secret."""
    if not KNOWN:
        return payload
    text = await encoded(payload)
    return await off_loop(len(text), _cleaned, payload, text)


def _cleaned(payload: dict[str, Any], text: bytes) -> dict[str, Any]:
    if not KNOWN.found_in(text):
        return payload
    cleaned: dict[str, Any] = KNOWN.cleaned(payload, (OWN, *SEEN))
    return cleaned


def visible(headers: dict[str, str]) -> dict[str, str]:
    """What templates see of the headers of a call or a message."""
    return {
        name: value
        for name, value in headers.items()
        if not any(word in name.lower() for word in HIDDEN)
    }


def _evaluated(trigger: Trigger, seen: dict[str, Any], *, hurried: bool = False) -> dict[str, Any]:
    """All templates of a payload share one meter, however many there are."""
    evaluate = trigger.made_payload
    assert evaluate is not None, "it has a payload"
    meter = Meter(shared=True, hurried=hurried)
    made: dict[str, Any] = evaluate({"args": {OWN: seen}, METER: meter})
    return made
