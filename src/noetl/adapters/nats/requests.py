"""Questions over a line, each with its answer, its end of patience, and its parts."""

import asyncio
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

from noetl.adapters.nats.library import FAULTS, Msg, reason_of
from noetl.adapters.nats.line import NatsLine
from noetl.adapters.nats.parts import MessageParts, parts_of
from noetl.errors import ServerAway

FAULT = "Noetl-Fault"
"""Header of an answer that is none: the server could not give one."""
NOBODY = "503"

Outcome = bytes | ServerAway
Waiting = asyncio.Future[Outcome]
Opened = Callable[[bytes], Outcome | None]
Asked = tuple[Waiting, str, Opened]
"""Who waits, for whom, and who makes something of the answer."""


class NatsRequests:
    """Sent in the order in which they were asked; any number may be under way."""

    def __init__(self, line: NatsLine) -> None:
        self._line = line
        self._numbers = count(1)
        self._waiting: dict[str, Asked] = {}
        self._parts = MessageParts()
        self._sending = asyncio.Lock()
        self._inbox = f"{line.inbox}.told."
        line.losses.append(self._lose)

    async def open(self) -> None:
        """One subscription for all answers."""
        await self._line.listen(f"{self._inbox}*", self._hear)

    async def ask(
        self, subject: str, payload: bytes, *, seconds: float, whom: str, opened: Opened = bytes
    ) -> bytes:
        """
        Raises ServerAway when nobody listens there, or no answer came in time. What `opened` makes
        nothing of is not the answer, and is waited on for another.
        """
        loop = asyncio.get_running_loop()
        waiting: Waiting = loop.create_future()
        number = str(next(self._numbers))
        timer = loop.call_later(seconds, _give_up, waiting, whom, seconds)
        try:
            asked = partial(self._send, subject, payload, number, (waiting, whom, opened))
            if self._line.up.is_set() and not self._sending.locked():
                await asked()
            else:  # the line is away, or others wait for it already
                async with self._sending:
                    await self._ready(waiting)
                    if not waiting.done():
                        await asked()
            outcome = await waiting
        finally:
            timer.cancel()
            if self._waiting.pop(number, None) is not None:
                self._parts.forget(number)
        if isinstance(outcome, ServerAway):
            raise outcome
        return outcome

    async def _ready(self, waiting: Waiting) -> None:
        """Returns when the line is up, or when it is too late for that."""
        if self._line.up.is_set():
            return
        up = asyncio.ensure_future(self._line.up.wait())
        either: set[asyncio.Future[Any]] = {up, waiting}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            up.cancel()

    async def _send(self, subject: str, payload: bytes, number: str, asked: Asked) -> None:
        self._waiting[number] = asked
        try:
            for piece, headers in parts_of(payload, self._line.largest):
                reply = f"{self._inbox}{number}"
                await self._line.publish(subject, piece, reply=reply, headers=headers)
        except FAULTS as fault:
            says = f"NATS at {self._line.place} did not take it: {reason_of(fault)}"
            _settle(asked[0], ServerAway(says))

    def _hear(self, message: Msg) -> None:
        number = message.subject[len(self._inbox) :]
        waiting, whom, opened = self._waiting.get(number, (None, "", bytes))
        if waiting is None:  # it came twice, or too late
            return
        headers = message.headers
        if headers is None:
            _settle(waiting, opened(message.data))
        elif headers.get("Status") == NOBODY:
            _settle(waiting, ServerAway(f"{whom} cannot be reached: nothing answers its calls"))
        elif FAULT in headers:
            _settle(waiting, ServerAway(f"{whom} could not answer: {headers[FAULT]}"))
        elif (whole := self._parts.join(number, message.data, headers)) is not None:
            _settle(waiting, opened(whole))

    def _lose(self) -> None:
        away = f"the connection to NATS at {self._line.place} was lost"
        for waiting, _, _ in self._waiting.values():
            _settle(waiting, ServerAway(away))


def _give_up(waiting: Waiting, whom: str, seconds: float) -> None:
    _settle(waiting, ServerAway(f"{whom} did not answer within {seconds:g} s"))


def _settle(waiting: Waiting, outcome: Outcome | None) -> None:
    if outcome is not None and not waiting.done():
        waiting.set_result(outcome)
