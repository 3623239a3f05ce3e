"""Large messages in parts."""

import random

import pytest

from noetl.adapters.nats.parts import EACH, MARGIN, PART, MessageParts, parts_of

LARGEST = 4096
MOST = LARGEST - MARGIN


@pytest.mark.parametrize(
    ("size", "count"), [(0, 1), (MOST, 1), (MOST + 1, 2), (2 * MOST, 2), (2 * MOST + 1, 3)]
)
def test_parts_fit_and_make_the_whole(size: int, count: int) -> None:
    payload = random.Random(size).randbytes(size)
    parts = list(parts_of(payload, LARGEST))
    assert len(parts) == count
    assert all(len(piece) <= MOST for piece, _ in parts)
    waiting = MessageParts()
    joined = [waiting.join("k", *part) for part in parts]
    assert joined == [None] * (count - 1) + [payload]


def test_small_messages_have_no_header() -> None:
    assert list(parts_of(b"x", LARGEST)) == [(b"x", None)]
    assert MessageParts().join("k", b"x", {"Other": "1"}) == b"x"


def test_a_tiny_limit_still_lets_something_pass() -> None:
    assert [len(piece) for piece, _ in parts_of(b"x" * 2000, 10)] == [MARGIN, 2000 - MARGIN]


@pytest.mark.parametrize("seed", range(10))
def test_parts_in_any_order_any_number_of_times(seed: int) -> None:
    chance = random.Random(seed)
    messages = {key: chance.randbytes(chance.randrange(1, 40_000)) for key in ("a", "b", "c")}
    sent = [(key, *part) for key, body in messages.items() for part in parts_of(body, LARGEST)]
    sent *= 3
    chance.shuffle(sent)
    waiting = MessageParts()
    whole: dict[str, set[bytes]] = {}
    for key, piece, headers in sent:
        joined = waiting.join(key, piece, headers)
        if joined is not None:
            whole.setdefault(key, set()).add(joined)
    assert whole == {key: {body} for key, body in messages.items()}


@pytest.mark.parametrize("mark", ["", "1", "x/2", "0/2", "3/2", "-1/2", "1/2/3", "1.0/2"])
def test_a_header_that_cannot_be_is_refused(mark: str) -> None:
    with pytest.raises(ValueError, match=r"part|values to unpack|invalid literal"):
        MessageParts().join("k", b"x", {PART: mark})


def test_unfinished_messages_have_bounded_room() -> None:
    waiting = MessageParts(room=10 * (30 + EACH))
    for number in range(1000):
        assert waiting.join(f"k{number}", b"x" * 30, {PART: "1/2"}) is None
    assert waiting.join("k999", b"y" * 30, {PART: "2/2"}) == b"x" * 30 + b"y" * 30
    assert waiting.join("k0", b"y" * 30, {PART: "2/2"}) is None, "it was forgotten"


@pytest.mark.parametrize("key", ["the same", "k{}"])
def test_parts_without_a_byte_take_room_too(key: str) -> None:
    """Whoever reaches the queue can send any number of them."""
    waiting = MessageParts(room=10 * EACH)
    for number in range(1000):
        assert waiting.join(key.format(number), b"", {PART: f"{number + 1}/5000"}) is None
        assert waiting.count <= 10


def test_what_is_forgotten_begins_anew() -> None:
    waiting = MessageParts()
    waiting.join("k", b"old", {PART: "1/2"})
    waiting.forget("k")
    waiting.forget("never there")
    assert waiting.join("k", b"b", {PART: "2/2"}) is None
    assert waiting.join("k", b"a", {PART: "1/2"}) == b"ab"
