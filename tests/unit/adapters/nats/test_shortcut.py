"""Messages past the library's queue and tasks arrive whole, once, and in order."""

import asyncio
from typing import Any

import pytest
from tests.unit.adapters.nats.network import SOON, Network

from noetl.adapters.nats import shortcut
from noetl.adapters.nats.library import Msg, errors
from noetl.adapters.nats.line import NatsLine


class Heard:
    """What a line heard, and a wait for so many of it."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, str, bytes]] = []
        self._came = asyncio.Event()

    def hear(self, message: Msg) -> None:
        self.messages.append((message.subject, message.reply, message.data))
        self._came.set()

    async def until(self, count: int) -> list[bytes]:
        async with asyncio.timeout(SOON):
            while len(self.messages) < count:
                self._came.clear()
                await self._came.wait()
        return [data for _, _, data in self.messages]


def reader_of(line: NatsLine) -> Any:
    """What takes the bytes of its connection."""
    reader = getattr(line.client._transport, "_io_reader", None)
    assert reader is not None, "a plain connection has one"
    return reader


async def listening(network: Network) -> tuple[NatsLine, Heard, str]:
    line, heard = (await network.opened()).line, Heard()
    subject = f"{network.names.root}.here"
    await line.listen(subject, heard.hear)
    await line.client.flush()
    return line, heard, subject


async def test_what_is_said_is_written_at_once(network: Network) -> None:
    line, heard, subject = await listening(network)
    await line.publish(subject, b"1", reply="back")
    assert not line.client._pending, "nothing waits for a task of the library"
    assert await heard.until(1) == [b"1"]
    assert heard.messages == [(subject, "back", b"1")]


async def test_what_goes_either_way_keeps_its_order(network: Network) -> None:
    line, heard, subject = await listening(network)
    expected = [str(number).encode() for number in range(60)]
    for number, payload in enumerate(expected):
        headers = {"Some": "header"} if number % 3 == 0 else None  # these go the library's way
        await line.publish(subject, payload, headers=headers)
    assert await heard.until(60) == expected


PAYLOADS = [b"", b"one", b"MSG here 1 3\r\nand a payload that looks like a message", b"\r\n", b"x"]


async def test_messages_are_heard_however_they_are_cut(network: Network) -> None:
    """The bytes come to the line's own connection as the network might cut them."""
    line, heard, subject = await listening(network)
    number = max(line.client._subs)
    reader = reader_of(line)
    told = b"PONG\r\n".join(
        b"MSG %b %d %b%d\r\n%b\r\n" % (subject.encode(), number, to, len(payload), payload)
        for payload, to in zip(PAYLOADS, (b"", b"back ", b"", b"back ", b""), strict=True)
    )
    for cut in range(len(told) + 1):
        heard.messages.clear()
        for piece in (told[:cut], told[cut:]):
            if piece:
                reader.feed_data(piece)
            if cut % 2:  # the library parses the first piece before the second comes, or both
                await asyncio.sleep(0)
        assert await heard.until(len(PAYLOADS)) == PAYLOADS, cut
        assert [reply for _, reply, _ in heard.messages] == ["", "back", "", "back", ""]


async def test_a_message_for_nobody_harms_no_other(network: Network) -> None:
    line, heard, subject = await listening(network)
    number = max(line.client._subs)
    nobody = b"MSG elsewhere 999999 1\r\nx\r\n"
    whole = b"MSG %b %d 3\r\none\r\n" % (subject.encode(), number)
    reader_of(line).feed_data(nobody + whole + nobody + whole)
    assert await heard.until(2) == [b"one", b"one"]


@pytest.mark.parametrize(
    ("subject", "reply"), [("a b", ""), ("", ""), ("a", "b c"), ("a\r\nPUB b 0", "")]
)
async def test_a_subject_cannot_say_more_than_itself(
    network: Network, subject: str, reply: str
) -> None:
    line = (await network.opened()).line
    with pytest.raises(errors.BadSubjectError):
        await line.publish(subject, b"", reply=reply)


async def test_what_is_too_large_is_refused(network: Network) -> None:
    line = (await network.opened()).line
    with pytest.raises(errors.MaxPayloadError):
        await line.publish("a", b"x" * (line.largest + 1))


async def test_who_says_more_than_is_taken_waits_as_the_library_lets_them(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, heard, subject = await listening(network)
    monkeypatch.setattr(shortcut, "FULL", -1)
    await line.publish(subject, b"1")
    assert line.client._pending, "it is the library's to write"
    assert await heard.until(1) == [b"1"]


async def test_a_library_of_another_release_does_all_by_itself(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shortcut, "release", "3.0.0")
    line, heard, subject = await listening(network)
    assert "feed_data" not in vars(reader_of(line))
    await line.publish(subject, b"1")
    assert line.client._pending, "it is the library's to write"
    assert await heard.until(1) == [b"1"]
