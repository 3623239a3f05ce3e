"""Where workers reach a server over NATS: calls, questions, and the roll call."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

import msgspec

from noetl.adapters.nats.library import FAULTS, Msg
from noetl.adapters.nats.line import NatsLine, Says, silent
from noetl.adapters.nats.names import Names
from noetl.adapters.nats.notifier import NatsNotifier
from noetl.adapters.nats.parts import MessageParts, parts_of
from noetl.adapters.nats.requests import FAULT
from noetl.adapters.nats.signing import ASK, CALL, FindKey, Seal, Verifier, plain
from noetl.adapters.nats.stream import make_stream
from noetl.ports.link import POLL, SPEAKS, Answer, Call, Caller, Listener, Question, Reply

GROUP = "noetl.server.any"
"""Of the servers in this queue group one gets each question that is for nobody in particular."""
FAREWELL = 5.0
"""Seconds that answers under way have when the server stops."""
REMEMBERED = 20_000
"""Questions that are known when they come again."""
UNSIGNED = (
    "is not signed, and this server asks for tokens: give the worker one of its pool (NOETL_TOKEN),"
    " or the servers' NOETL_KEY"
)

_encode = msgspec.json.Encoder().encode
_call = msgspec.json.Decoder(Call)
_question: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)


class Stamp(msgspec.Struct):
    """As much of a call as every version can read."""

    worker: str
    version: str


class NatsSwitchboard:
    """
    Begins answers in the order in which calls arrive: a task is started for each when it is read,
    and tasks take their first step in the order in which they were started.
    """

    def __init__(
        self,
        url: str,
        listener: Listener,
        *,
        says: Says = silent,
        root: str = "noetl",
        keys: FindKey | None = None,
        demands: bool = False,
        refuses: Says = silent,
    ) -> None:
        """`demands`: only what is signed with one of `keys` is heard (decision 0049)."""
        self._names = Names(root)
        self._listener = listener
        self._parts = MessageParts()
        self._verifier = Verifier(listener.name, keys, demands=demands, refuses=refuses)
        self._answering: set[asyncio.Task[None]] = set()
        self._heard: dict[str, None] = {}
        inbox = self._names.inbox("server")
        self.line = NatsLine(url, name=listener.name, inbox=inbox, says=says)
        self.notifier = NatsNotifier(self.line, listener.name, self._names)

    async def open(self) -> None:
        """Returns when NATS is there; JetStream may be missing, or come later."""
        mine, names = self._listener.name, self._names
        await self.line.listen(names.calls(mine), self._hear_call)
        await self.line.listen(names.questions(mine), self._hear_question)
        await self.line.listen(names.any_ask, self._hear_question, queue=GROUP)
        await self.line.listen(names.any_roll, self._hear_roll)
        await self.line.open()
        try:
            await make_stream(self.line, names)
        except FAULTS as fault:
            self.line.complain(fault, f"; until then workers poll every {POLL:g} s")

    @property
    def there(self) -> bool:
        """Whether the line stands now."""
        return bool(self.line.client.is_connected)

    async def close(self) -> None:
        """What is being answered is answered first, if it does not take long."""
        if self._answering:
            _, late = await asyncio.wait(self._answering, timeout=FAREWELL)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.line.close()

    def _hear_call(self, message: Msg) -> None:
        whole, reply = self._whole(message), message.reply

        def take(payload: bytes, by: Caller, seal: Seal) -> None:
            try:
                call = _call.decode(payload)
            except msgspec.DecodeError as fault:
                self._refuse(
                    reply, payload, seal, f"cannot be read ({fault}); run the version of the server"
                )
            else:
                self._begin(reply, self._listener.answer(call, by), seal)

        if whole is not None and not self._verifier.hear(whole, CALL, take, self._teller(reply)):
            self._refuse(reply, whole, plain, UNSIGNED)

    def _hear_question(self, message: Msg) -> None:
        whole, reply = self._whole(message), message.reply

        def take(payload: bytes, by: Caller, seal: Seal) -> None:
            self._begin(reply, self._listener.reply(_question.decode(payload), by), seal)

        if whole is not None and not self._verifier.hear(whole, ASK, take, self._teller(reply)):
            error = {"code": "refused", "message": f"the question {UNSIGNED}"}
            self.line.start(self._send(reply, _encode(Reply(error=error))))

    def _teller(self, reply: str) -> Callable[[bytes], None]:
        return lambda told: self.line.start(self._send(reply, told))

    def _hear_roll(self, message: Msg) -> None:
        if self._names.may_answer(message.reply):
            self.line.start(self.line.publish(message.reply, self._listener.name.encode()))

    def _whole(self, message: Msg) -> bytes | None:
        # Without a subject for the answer nobody waits for it, and reports would go unconfirmed;
        # with one that is no worker's, whoever asks could speak through a server.
        if not self._names.may_answer(message.reply):
            return None
        whole = self._parts.join(message.reply, message.data, message.headers)
        return None if whole is None or self._was_heard(message.reply) else whole

    def _was_heard(self, reply: str) -> bool:
        """
        T10. Each question has an inbox of its own: what comes for it again is no new question. A
        call that was answered twice would be granted parts that nobody waits for.
        """
        if reply in self._heard:
            return True
        self._heard[reply] = None
        if len(self._heard) > REMEMBERED:
            del self._heard[next(iter(self._heard))]
        return False

    def _refuse(self, reply: str, payload: bytes, seal: Seal, why: str) -> None:
        """A worker of another version learns why; rubbish learns nothing."""
        stamp = msgspec.json.decode(payload, type=Stamp)
        says = f"the call of worker '{stamp.worker}', version {stamp.version}, {why}"
        answer = Answer(server=self._listener.name, speaks=SPEAKS, refusal=says)
        self.line.start(self._send(reply, seal(_encode(answer))))

    def _begin(
        self, reply: str, answering: Coroutine[Any, Any, Answer | Reply], seal: Seal
    ) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(reply, answering, seal))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer(
        self, reply: str, answering: Coroutine[Any, Any, Answer | Reply], seal: Seal
    ) -> None:
        try:
            answer = await answering
        except asyncio.CancelledError:
            await self._fail(reply, "it stops")
        except Exception as fault:  # promise 7: one bad answer ends nothing
            self.line.complain(fault)
            await self._fail(reply, f"{type(fault).__name__}: {fault}"[:500])
        else:
            await self._send(reply, seal(_encode(answer)))

    async def _fail(self, reply: str, why: str) -> None:
        with suppress(*FAULTS):
            await self.line.publish(reply, b"", headers={FAULT: why})

    async def _send(self, reply: str, payload: bytes) -> None:
        with suppress(*FAULTS):  # the worker asks again
            for piece, headers in parts_of(payload, self.line.largest):
                await self.line.publish(reply, piece, headers=headers)
