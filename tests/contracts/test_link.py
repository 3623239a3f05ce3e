"""What every line between workers and servers promises."""

import asyncio

import msgspec
import pytest
from tests.contracts.lines import Desk, Lines, call

from noetl.errors import ServerAway
from noetl.ports.event_log import PrintedLine
from noetl.ports.link import (
    Call,
    CancelWanted,
    ChildWanted,
    CredentialWanted,
    EndWanted,
    Hold,
    OwnerWanted,
    PlaybookWanted,
    Question,
    Sent,
)

SOON = 30.0
"""Longer than anything here takes: a test that hangs ends."""

LINE = PrintedLine(
    execution_id="e",
    step="step",
    task_run_id="t",
    attempt=1,
    at=5,
    stream="stdout",
    text="Grüße\n",
)
FULL = call(
    7,
    slots=9,
    reports=[Sent(hold=Hold("e", "r", 1, 2), after=3, events=msgspec.Raw(b'[{"a":1}]'))],
    holds=[Hold("e", "r", 1, 2)],
    returns=[Hold("é", "r", 0, 1)],
    lines=[LINE],
    host="h",
    pid=1,
)


def printed(size: int) -> list[PrintedLine]:
    """So much text in one call."""
    return [msgspec.structs.replace(LINE, text="x" * size)]


def printed_in(heard: Call) -> int:
    return sum(len(line.text) for line in heard.lines)


QUESTIONS: list[Question] = [
    PlaybookWanted("d"),
    ChildWanted(msgspec.Raw(b'{"payload":{"x":[1]}}')),
    EndWanted(execution_id="e", wait=0.5),
    CancelWanted(execution_id="e", reason="r"),
    CredentialWanted("c"),
    OwnerWanted("e"),
]


@pytest.mark.rule("WRK-1")
async def test_a_call_arrives_whole_and_its_answer_comes_back(lines: Lines) -> None:
    desk = Desk()
    await lines.serve(desk)
    link = await lines.link()
    answer = await link.call("s1", FULL)
    assert msgspec.json.encode(desk.heard) == msgspec.json.encode([FULL])
    assert (answer.server, answer.tidy) == ("s1", ["7"])


async def test_calls_arrive_in_the_order_in_which_they_were_made(lines: Lines) -> None:
    desk = Desk()
    await lines.serve(desk)
    link = await lines.link()
    # Large ones between small ones: they take longer, and must not be overtaken.
    sizes = [3_000_000 if number % 40 == 10 else 10 for number in range(200)]
    calls = [call(number, lines=printed(size)) for number, size in enumerate(sizes)]
    answers = await asyncio.gather(*(link.call("s1", each) for each in calls))
    assert [heard.free for heard in desk.heard] == list(range(200))
    assert [answer.tidy for answer in answers] == [[str(number)] for number in range(200)]


async def test_several_calls_are_under_way_at_once(lines: Lines) -> None:
    desk = Desk()
    desk.held[1] = asyncio.Event()
    await lines.serve(desk)
    link = await lines.link()
    slow = asyncio.ensure_future(link.call("s1", call(1)))
    await desk.came.wait()
    assert (await link.call("s1", call(2))).tidy == ["2"]
    assert not slow.done()
    desk.held[1].set()
    assert (await slow).tidy == ["1"]


async def test_each_server_gets_its_own_calls(lines: Lines) -> None:
    desks = [Desk("s1"), Desk("a server.of >*/ odd name")]
    for desk in desks:
        await lines.serve(desk)
    link = await lines.link()
    for number, desk in enumerate(desks):
        assert (await link.call(desk.name, call(number))).server == desk.name
        assert [heard.free for heard in desk.heard] == [number]


async def test_an_unknown_server_is_away(lines: Lines) -> None:
    await lines.serve(Desk())
    link = await lines.link()
    with pytest.raises(ServerAway, match=r"server 's2' cannot be reached"):
        await link.call("s2", call())
    with pytest.raises(ServerAway, match=r"server 's2' cannot be reached"):
        await link.ask(OwnerWanted("e"), "s2")
    assert (await link.call("s1", call(4))).tidy == ["4"]


async def test_a_server_that_goes_away_in_mid_call(lines: Lines) -> None:
    desk = Desk()
    desk.held[1] = asyncio.Event()
    await lines.serve(desk)
    link = await lines.link(patience=0.5)
    pending = asyncio.ensure_future(link.call("s1", call(1)))
    await desk.came.wait()
    await lines.vanish("s1")
    with pytest.raises(ServerAway, match="server 's1'"):
        await pending
    await lines.serve(Desk())
    assert (await link.call("s1", call(2))).tidy == ["2"], "the next one of this name is found"


async def test_a_server_that_is_too_slow_is_away(lines: Lines) -> None:
    desk = Desk()
    desk.held[1] = asyncio.Event()
    await lines.serve(desk)
    link = await lines.link(patience=0.2)
    with pytest.raises(ServerAway, match=r"server 's1' did not answer within 0\.2 s"):
        await link.call("s1", call(1))
    desk.held[1].set()
    assert (await link.call("s1", call(2))).tidy == ["2"], "the late answer is nobody else's"


async def test_a_server_that_fails_goes_on(lines: Lines) -> None:
    desk = Desk()
    desk.fault = RuntimeError("broken {inside}\r\nX: y")
    await lines.serve(desk)
    link = await lines.link()
    with pytest.raises(ServerAway, match=r"server 's1' could not answer: .*broken \{inside\}"):
        await link.call("s1", call(1))
    with pytest.raises(ServerAway, match="could not answer"):
        await link.ask(OwnerWanted("e"))
    desk.fault = None
    assert (await link.call("s1", call(2))).tidy == ["2"]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: type(question).__name__)
@pytest.mark.parametrize("whom", ["s1", None])
async def test_questions_are_answered(lines: Lines, question: Question, whom: str | None) -> None:
    desk = Desk()
    await lines.serve(desk)
    link = await lines.link()
    reply = await link.ask(question, whom)
    assert msgspec.json.encode(desk.asked) == msgspec.json.encode([question])
    assert (bytes(reply.value), reply.error) == (b"null", {"code": "not_found", "message": "s1"})


async def test_a_question_to_nobody_goes_to_one(lines: Lines) -> None:
    desks = [Desk("s1"), Desk("s2")]
    for desk in desks:
        await lines.serve(desk)
    link = await lines.link()
    for size in (10, 3_000_000):
        await link.ask(PlaybookWanted("d" * size))
    assert sorted(len(asked.digest) for desk in desks for asked in desk.asked) == [10, 3_000_000]  # type: ignore[union-attr]


async def test_a_question_where_nobody_is(lines: Lines) -> None:
    link = await lines.link()
    with pytest.raises(ServerAway):
        await link.ask(OwnerWanted("e"))


@pytest.mark.parametrize("size", [0, 1_048_576 - 1024, 1_048_576, 5_000_000])
async def test_calls_and_answers_of_any_size(lines: Lines, size: int) -> None:
    desk = Desk()
    desk.refusal = "y" * size
    await lines.serve(desk)
    link = await lines.link()
    answer = await link.call("s1", call(lines=printed(size)))
    assert (printed_in(desk.heard[0]), answer.refusal) == (size, "y" * size)


async def test_a_ring_wakes_who_is_hungry(lines: Lines) -> None:
    notifier = await lines.serve(Desk())
    link, other = await lines.link(poll=SOON), await lines.link(poll=SOON)
    full = asyncio.ensure_future(other.wake("full", "default", hungry=False))
    elsewhere = asyncio.ensure_future(other.wake("elsewhere", "another", hungry=False))
    hungry = asyncio.ensure_future(link.wake("w", "default", hungry=True))
    notifier.wake_pool("default", 3)
    assert await asyncio.wait_for(hungry, SOON) == "s1"
    assert not full.done()
    assert not elsewhere.done()
    full.cancel()
    elsewhere.cancel()


async def test_a_ring_before_the_worker_sleeps_is_heard(lines: Lines) -> None:
    notifier = await lines.serve(Desk())
    link = await lines.link(poll=2.0)
    notifier.wake_pool("default", 1)
    assert await asyncio.wait_for(link.wake("w", "default", hungry=True), SOON) == "s1"


async def test_rings_wake_one_worker_after_the_other(lines: Lines) -> None:
    desk = Desk()
    notifier = await lines.serve(desk)
    links = [await lines.link(poll=SOON) for _ in range(3)]
    sleeping = {
        asyncio.ensure_future(link.wake(f"w{number}", "default", hungry=True)): link
        for number, link in enumerate(links)
    }
    while sleeping:
        notifier.wake_pool("default", 1)
        done, _ = await asyncio.wait(sleeping, timeout=SOON, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result() for task in done} == {"s1"}
        for task in done:
            await sleeping.pop(task).call("s1", call())


@pytest.mark.parametrize("hungry", [True, False])
async def test_a_nudge_wakes_the_worker_that_it_is_for(lines: Lines, hungry: bool) -> None:
    notifier = await lines.serve(Desk())
    link, other = await lines.link(poll=SOON), await lines.link(poll=SOON)
    meant = asyncio.ensure_future(link.wake("w.1", "default", hungry=hungry))
    not_meant = asyncio.ensure_future(other.wake("w.2", "default", hungry=hungry))
    while not meant.done():
        # Repeated, because the worker may not listen yet: a lost one is no loss (T4).
        notifier.wake_worker("w.1")
        await asyncio.wait([meant], timeout=0.05)
    assert meant.result() == "s1"
    assert not not_meant.done()
    not_meant.cancel()


@pytest.mark.rule("WRK-1")
@pytest.mark.parametrize("hungry", [True, False])
async def test_without_any_wake_up_every_server_is_called(lines: Lines, hungry: bool) -> None:
    for name in ("s1", "s2"):
        await lines.serve(Desk(name))
    link = await lines.link(poll=0.05)
    found: set[str] = set()
    async with asyncio.timeout(SOON):
        while found != {"s1", "s2"}:
            found.add(await link.wake("w", "default", hungry=hungry))


async def test_where_nobody_is_the_worker_sleeps_on(lines: Lines) -> None:
    link = await lines.link(poll=0.05)
    sleeping = asyncio.ensure_future(link.wake("w", "default", hungry=True))
    with pytest.raises(ServerAway):
        await link.call("s1", call())
    await lines.serve(Desk())
    assert await asyncio.wait_for(sleeping, SOON) == "s1"


async def test_a_wake_can_be_given_up(lines: Lines) -> None:
    notifier = await lines.serve(Desk())
    link = await lines.link(poll=SOON)
    for _ in range(3):
        sleeping = asyncio.ensure_future(link.wake("w", "default", hungry=True))
        await asyncio.wait([sleeping], timeout=0.02)
        sleeping.cancel()
        await asyncio.gather(sleeping, return_exceptions=True)
    last = asyncio.ensure_future(link.wake("w", "default", hungry=True))
    notifier.wake_pool("default", 1)
    assert await asyncio.wait_for(last, SOON) == "s1"


async def test_everything_ten_times_is_the_same(lines: Lines) -> None:
    """T10: at this level a repeat is one more call, and each caller has one answer."""
    desk = Desk()
    await lines.serve(desk)
    link = await lines.link()
    await lines.repeat(10)
    sizes = [10, 2_000_000, 10]
    calls = [call(number, lines=printed(size)) for number, size in enumerate(sizes)]
    answers = await asyncio.gather(*(link.call("s1", each) for each in calls))
    assert [answer.tidy for answer in answers] == [["0"], ["1"], ["2"]]
    assert {(heard.free, printed_in(heard)) for heard in desk.heard} == set(enumerate(sizes))
    assert list(dict.fromkeys(heard.free for heard in desk.heard)) == [0, 1, 2]


@pytest.mark.parametrize(
    "rubbish",
    [
        b"",
        b"\x00\xff",
        b"null",
        b"[]",
        b"{}",
        b'{"worker": 1}',
        b'{"type": "nothing"}',
        b"[" * 5000,
        b'{"worker": "w", "pool": "p", "version": "1", "reports": [{"hold": ["e"]}]}',
    ],
)
async def test_rubbish_ends_nothing(lines: Lines, rubbish: bytes) -> None:
    desk = Desk()
    await lines.serve(desk)
    link = await lines.link()
    if lines.carries_bytes:
        await lines.put("s1", rubbish)
    assert (await link.call("s1", call(1))).tidy == ["1"]
    assert (await link.ask(OwnerWanted("e"), "s1")).error is not None
    assert [heard.free for heard in desk.heard] == [1]
    assert desk.asked == [OwnerWanted("e")]


async def test_a_closed_link_is_closed_for_good(lines: Lines) -> None:
    await lines.serve(Desk())
    link = await lines.link(patience=0.2)
    await link.close()
    await link.close()
