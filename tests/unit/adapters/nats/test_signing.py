"""Whoever can use NATS, and nothing more, plays neither a server nor a worker (decision 0049)."""

import asyncio
from collections import Counter
from typing import Any

import msgspec
import pytest
from tests.contracts.lines import KEY, Desk, call, the_key
from tests.unit.adapters.nats.network import SOON, Network

from noetl.adapters.nats import signing
from noetl.adapters.nats.library import Client, Msg
from noetl.adapters.nats.link import NatsLink
from noetl.adapters.nats.signing import (
    CALL,
    GREETING,
    NUMBER,
    SIGNED,
    UNKNOWN,
    SeenNumbers,
    Verifier,
    key_at,
    parsed,
    signature,
)
from noetl.adapters.nats.switchboard import NatsSwitchboard
from noetl.errors import ServerAway
from noetl.ports.link import Answer, Grant, LinkKey, OwnerWanted, Reply

EVIL = msgspec.json.encode(
    Answer(server="s1", grants=[Grant(command=msgspec.Raw(b'{"evil":1}'), digest="d")])
)


class Court:
    """A server that asks for signatures, and what it refused."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.refused: Counter[str] = Counter()
        self.desk = Desk()
        self.key: LinkKey | None = KEY
        self.opened: list[Any] = []

    async def find(self, name: str) -> LinkKey | None:
        return self.key if self.key is not None and name == self.key.name else None

    async def serve(self, desk: Desk | None = None) -> NatsSwitchboard:
        board = NatsSwitchboard(
            self.network.server.url,
            desk or self.desk,
            root=self.network.names.root,
            keys=self.find,
            demands=True,
            refuses=lambda reason: self.refused.update([reason]),
        )
        self.opened.append(board)
        await board.open()
        return board

    async def worker(self, key: LinkKey | None = KEY, patience: float = SOON) -> NatsLink:
        link = NatsLink(
            self.network.server.url,
            name="w",
            says=self.network.says,
            root=self.network.names.root,
            patience=patience,
            key=key,
        )
        self.opened.append(link)
        await link.open()
        return link

    async def close_all(self) -> None:
        for one in reversed(self.opened):
            await one.close()
        await self.network.close_all()


@pytest.fixture
def court(network: Network) -> Court:
    return Court(network)


async def listening(client: Client) -> None:
    """The library's first ping may overtake a subscription that waits to be written."""
    await client.flush()
    await client.flush()


async def overheard(client: Client, subject: str) -> list[Msg]:
    """Everything that passes from now on, as whoever has the password of NATS can hear it."""
    heard: list[Msg] = []

    async def hear(message: Msg) -> None:
        heard.append(message)

    await client.subscribe(subject, cb=hear)
    await listening(client)
    return heard


async def asked(client: Client, subject: str, payload: bytes) -> bytes:
    return (await client.request(subject, payload, timeout=SOON)).data


async def test_both_say_who_they_are(court: Court) -> None:
    await court.serve()
    link = await court.worker()
    assert (await link.call("s1", call(3))).tidy == ["3"]
    assert (await link.ask(OwnerWanted("e"))).error is not None
    assert court.desk.by == KEY.caller
    assert court.refused == {}


async def test_who_plays_a_server_is_not_heard(court: Court) -> None:
    """It has the password, answers the greeting, and would have the worker run a command."""
    names, client = court.network.names, await court.network.client()
    said: list[bytes] = []

    async def play(message: Msg) -> None:
        said.append(message.data)
        lies = (GREETING + b"s" * 16, EVIL, SIGNED + b"x" * 32 + EVIL, SIGNED, b"")
        for lie in lies[:1] if message.data == GREETING else lies[1:]:
            await client.publish(message.reply, lie)

    await client.subscribe(names.calls("s1"), cb=play)
    await listening(client)
    link = await court.worker(patience=0.3)
    with pytest.raises(ServerAway):
        await link.call("s1", call(1))
    assert len(said) > 1, "it was asked"
    lines = [line for line in court.network.said if "without a valid signature" in line]
    assert len(lines) == 1


async def test_a_lie_before_the_answer_changes_nothing(court: Court) -> None:
    """Whoever can write to the inbox of a worker cannot end its call."""
    names, client = court.network.names, await court.network.client()

    async def forestall(message: Msg) -> None:
        await client.publish(message.reply, EVIL)
        await client.publish(message.reply, SIGNED + b"y" * 32 + EVIL)
        await client.flush()
        court.desk.held[1].set()

    await court.serve()
    court.desk.held[1] = asyncio.Event()
    link = await court.worker()
    await link.call("s1", call(0))
    await client.subscribe(names.calls("s1"), cb=forestall)
    await listening(client)
    answer = await link.call("s1", call(1))
    assert (answer.tidy, answer.grants) == (["1"], [])


async def test_who_plays_a_worker_is_not_heard(court: Court) -> None:
    await court.serve()
    names, client = court.network.names, await court.network.client()
    unsigned = await asked(client, names.calls("s1"), msgspec.json.encode(call(1)))
    answer = msgspec.json.decode(unsigned, type=Answer)
    assert "is not signed" in answer.refusal
    assert answer.grants == []
    question = msgspec.json.encode(OwnerWanted("e"))
    for subject in (names.questions("s1"), names.any_ask):
        told = msgspec.json.decode(await asked(client, subject, question), type=Reply)
        assert told.error is not None
        assert told.error["code"] == "refused"
    other = await court.worker(LinkKey("t:other", b"o" * 32))
    with pytest.raises(ServerAway, match="does not know the key"):
        await other.call("s1", call(1))
    thief = await court.worker(LinkKey(KEY.name, b"o" * 32), patience=0.3)
    with pytest.raises(ServerAway):
        await thief.call("s1", call(1))
    assert court.desk.heard == []
    assert court.desk.asked == []
    assert court.refused == {"unsigned": 3, "unknown key": 1, "forged": 1}


async def test_nothing_is_heard_twice(court: Court) -> None:
    await court.serve()
    names, client = court.network.names, await court.network.client()
    heard = await overheard(client, f"{names.root}.>")
    link = await court.worker()
    await link.call("s1", call(1))
    await link.ask(OwnerWanted("e"), "s1")
    await client.flush()
    for message in [one for one in heard if one.data[:1] == SIGNED]:
        for subject in (names.calls("s1"), names.questions("s1"), names.any_ask):
            await client.publish(subject, message.data, client.new_inbox())
    await client.flush()
    assert (await link.call("s1", call(2))).tidy == ["2"]
    assert [one.free for one in court.desk.heard] == [1, 2]
    assert len(court.desk.asked) == 1
    assert set(court.refused) == {"replayed", "forged"}, "a call is not a question either"


async def test_no_holder_of_another_key_uses_up_the_numbers_of_a_session(court: Court) -> None:
    """It hears the name of the session, and signs the highest number with a key of its own."""
    other = LinkKey("t:two", b"2" * 32)

    async def find(name: str) -> LinkKey | None:
        return {KEY.name: KEY, other.name: other}.get(name)

    court.find = find  # type: ignore[method-assign]
    await court.serve()
    names, client = court.network.names, await court.network.client()
    heard = await overheard(client, names.calls("s1"))
    link = await court.worker()
    await link.call("s1", call(1))
    await client.flush()
    said = parsed(next(one.data for one in heard if one.data[:1] == SIGNED))
    request, payload = said.request[:-NUMBER] + b"\xff" * NUMBER, msgspec.json.encode(call(2))
    made = signature(key_at(other.secret, "s1", said.salt), CALL, request, payload)
    head = SIGNED + bytes([len(other.name)]) + other.name.encode()
    await asked(client, names.calls("s1"), head + said.salt + request + made + payload)
    assert (await link.call("s1", call(3))).tidy == ["3"]
    assert court.refused == {}


async def test_what_was_said_to_one_server_is_nothing_to_another(court: Court) -> None:
    await court.serve()
    again = Desk("s2")
    await court.serve(again)
    names, client = court.network.names, await court.network.client()
    heard = await overheard(client, names.calls("s1"))
    link = await court.worker()
    await link.call("s1", call(1))
    await client.flush()
    signed = next(one.data for one in heard if one.data[:1] == SIGNED)
    assert (await asked(client, names.calls("s2"), signed))[:1] == GREETING
    salt = (await asked(client, names.calls("s2"), GREETING))[1:]
    at = 2 + signed[1]
    forged = signed[:at] + salt + signed[at + 16 :]
    await client.publish(names.calls("s2"), forged, client.new_inbox())
    assert (await link.call("s2", call(2))).tidy == ["2"]
    assert [one.free for one in again.heard] == [2]
    assert court.refused == {"forged": 1}


async def test_an_answer_fits_its_own_question_only(court: Court) -> None:
    await court.serve()
    client = await court.network.client()
    heard = await overheard(client, "_INBOX.>")
    link = await court.worker()
    await link.call("s1", call(1))
    await client.flush()
    old = [one.data for one in heard if one.data[:1] == SIGNED]
    assert old
    court.desk.held[2] = asyncio.Event()
    names = court.network.names

    async def replay(message: Msg) -> None:
        for answer in old:
            await client.publish(message.reply, answer)
        await client.flush()
        court.desk.held[2].set()

    await client.subscribe(names.calls("s1"), cb=replay)
    await listening(client)
    assert (await link.call("s1", call(2))).tidy == ["2"]


async def test_a_key_that_is_good_no_more_opens_nothing(
    court: Court, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signing, "FRESH", 0.0)
    monkeypatch.setattr(signing, "STALE", 0.0)
    await court.serve()
    link = await court.worker()
    await link.call("s1", call(1))
    court.key = None
    with pytest.raises(ServerAway, match="does not know the key"):
        await link.call("s1", call(2))
    court.key = KEY
    assert (await link.call("s1", call(3))).tidy == ["3"]


async def test_what_waits_for_its_key_keeps_its_order(court: Court) -> None:
    gate = asyncio.Event()

    async def slowly(name: str) -> LinkKey | None:
        await gate.wait()
        return await the_key(name)

    court.find = slowly  # type: ignore[method-assign]
    await court.serve()
    link = await court.worker()
    calls = [asyncio.ensure_future(link.call("s1", call(number))) for number in range(20)]
    await asyncio.wait(calls, timeout=0.05)
    gate.set()
    await asyncio.gather(*calls)
    assert [one.free for one in court.desk.heard] == list(range(20))


async def test_a_server_that_does_not_greet_holds_up_nobody(court: Court) -> None:
    client = await court.network.client()
    heard = await overheard(client, court.network.names.calls("stopped"))
    await court.serve()
    link = await court.worker()
    waiting = asyncio.ensure_future(link.call("stopped", call(1)))
    async with asyncio.timeout(SOON):
        while not heard:
            await asyncio.sleep(0)
    assert (await link.call("s1", call(2))).tidy == ["2"]
    assert not waiting.done()
    waiting.cancel()


async def test_a_worker_without_a_key_is_told_what_to_do(court: Court) -> None:
    await court.serve()
    link = await court.worker(None)
    assert "NOETL_TOKEN" in (await link.call("s1", call(1))).refusal


async def test_a_server_that_asks_for_nothing_hears_signed_workers_too(court: Court) -> None:
    board = NatsSwitchboard(
        court.network.server.url, court.desk, root=court.network.names.root, keys=the_key
    )
    court.opened.append(board)
    await board.open()
    assert (await (await court.worker()).call("s1", call(1))).tidy == ["1"]
    assert (await (await court.worker(None)).call("s1", call(2))).tidy == ["2"]


@pytest.mark.parametrize(
    "rubbish", [SIGNED, SIGNED + b"\xff", SIGNED + b"\x02ab", UNKNOWN, b"\x00"]
)
async def test_rubbish_with_a_mark_ends_nothing(court: Court, rubbish: bytes) -> None:
    await court.serve()
    names, client = court.network.names, await court.network.client()
    for subject in (names.calls("s1"), names.questions("s1")):
        await client.publish(subject, rubbish, client.new_inbox())
    await client.flush()
    assert (await (await court.worker()).call("s1", call(1))).tidy == ["1"]


def test_numbers_are_taken_once_in_any_order() -> None:
    seen = SeenNumbers()
    assert [seen.take(number) for number in (1, 3, 2, 3, 2, 1, 5000, 5000)] == [
        *(True, True, True, False, False, False, True, False),
    ]
    assert not seen.take(900), "too old to be told from one that was taken"
    assert seen.take(4999)
    assert not seen.take(4999)
    assert seen.take(10**15)
    assert not seen.take(5001)


async def test_what_waits_for_a_key_has_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody can send messages with names of keys that a slow store is asked for."""
    monkeypatch.setattr(signing, "MOST_HELD", 10_000)
    slow, refused, heard = asyncio.Event(), Counter[str](), list[bytes]()

    async def find(name: str) -> LinkKey | None:
        await slow.wait()
        return KEY if name == KEY.name else None

    verifier = Verifier("s1", find, demands=True, refuses=lambda why: refused.update([why]))
    salt = verifier.greeting[1:]
    key = key_at(KEY.secret, "s1", salt)

    def send(name: str, number: int) -> None:
        request = number.to_bytes(signing.SESSION + NUMBER)
        payload = b"x" * 1000
        made = signature(key, CALL, request, payload)
        message = SIGNED + bytes([len(name)]) + name.encode() + salt + request + made + payload
        verifier.hear(message, CALL, lambda whole, *_: heard.append(whole), lambda _: None)

    send(KEY.name, 1)
    for number in range(30):
        send(f"unknown{number}", number)
    assert refused == {"too much at once": 21}
    slow.set()
    while sum(refused.values()) < 30:
        await asyncio.sleep(0)
    assert (len(heard), refused["unknown key"]) == (1, 9), "who came in time is heard"
    for number in range(2, 12):
        send(KEY.name, number)
    assert len(heard) == 11, "and nothing is held any more"
