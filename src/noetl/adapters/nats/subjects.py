"""Messages of a subject that JetStream keeps, each until it was dealt with (START-5)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from noetl.adapters.nats.library import FAULTS, Msg, api, leave_if_cancelled, stream_errors
from noetl.adapters.nats.line import NatsLine, Says, silent
from noetl.adapters.nats.names import Names, token_of
from noetl.adapters.nats.stream import jetstream
from noetl.playbook.triggers import is_own_stream

FETCH = 5.0
"""Seconds that one question for messages waits."""
AT_ONCE = 20
ACK_WAIT = 30.0
"""Seconds after which a message whose server died comes to another."""
LATER = 2.0
"""Seconds until a message comes again that could not be dealt with."""
PAUSE = 1.0

Verdict = Literal["done", "later", "aside"]


class KeptMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a stream."""

    stream: str
    seq: int
    delivered: int
    """How often it came, this time included."""
    body: bytes
    headers: dict[str, str]
    subject: str


Take = Callable[[KeptMessage], Awaitable[Verdict]]


class SubjectFeed:
    """One connection for all subjects; each is followed by a task of its own."""

    def __init__(self, url: str, *, root: str = "noetl", says: Says = silent) -> None:
        inbox = Names(root).inbox("triggers")
        self._line = NatsLine(url, name="noetl-triggers", inbox=inbox, says=says)
        self._opened = False

    async def follow(self, subject: str, take: Take, *, stream: str | None, durable: str) -> None:
        """Until cancelled: give each message to `take`, and acknowledge what it has dealt with."""
        if not self._opened:
            self._opened = True
            # The line's own work: a follower that stops or fails leaves it to the others.
            self._line.start(self._line.open())
        while True:
            await self._line.up.wait()
            try:
                await self._follow(subject, take, stream, consumer_of(durable))
            except stream_errors.NotFoundError:
                self._line.complain(LookupError(f"no stream keeps the subject '{subject}'"))
            except (LookupError, ValueError) as name:  # NoETL's own, or none that NATS takes
                self._line.complain(name)
            except (*FAULTS, asyncio.CancelledError) as fault:
                leave_if_cancelled()
                self._line.complain(fault)
            await asyncio.sleep(PAUSE)

    async def forget(self, subject: str, *, stream: str | None, durable: str) -> None:
        """The consumer of a trigger that is gone; whichever server comes first removes it."""
        if not self._line.up.is_set():
            return
        line = jetstream(self._line)
        try:
            name = stream or await line.find_stream_name_by_subject(subject)
            await line.delete_consumer(name, consumer_of(durable))
        except (stream_errors.NotFoundError, ValueError):
            pass  # there is none, nor can there be one of this name
        except FAULTS as fault:
            self._line.complain(fault)

    async def close(self) -> None:
        if self._opened:
            await self._line.close()

    async def _follow(self, subject: str, take: Take, stream: str | None, durable: str) -> None:
        line = jetstream(self._line)
        name = stream or await line.find_stream_name_by_subject(subject)
        if is_own_stream(name):  # by a wildcard
            raise LookupError(f"the stream {name} is NoETL's own")
        config = api.ConsumerConfig(
            durable_name=durable,
            filter_subject=subject,
            ack_policy=api.AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT,
            max_deliver=-1,  # whoever takes it says when it is enough
        )
        await line.add_consumer(name, config)
        queue = await line.pull_subscribe_bind(consumer=durable, stream=name)
        while True:
            leave_if_cancelled()
            try:
                messages = await queue.fetch(AT_ONCE, timeout=FETCH)
            except TimeoutError:
                continue
            await asyncio.gather(*(self._deal(message, take) for message in messages))

    async def _deal(self, message: Msg, take: Take) -> None:
        about = message.metadata
        verdict = await take(
            KeptMessage(
                stream=about.stream,
                seq=about.sequence.stream,
                delivered=about.num_delivered,
                body=message.data,
                headers=dict(message.headers or {}),
                subject=message.subject,
            )
        )
        if verdict == "done":
            await message.ack()
        elif verdict == "later":
            await message.nak(delay=LATER)
        else:
            await message.term()


def consumer_of(durable: str) -> str:
    """As JetStream takes names of consumers."""
    return token_of(durable).replace("=", "_")
