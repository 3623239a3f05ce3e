"""Pieces gathered into bodies: none lost, none too large, none read before it is needed."""

from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.exports.stories import each, listed, run

from noetl.exports.export import ExportBody, Form, bodies, lines


@pytest.mark.parametrize(
    ("sizes", "most", "most_bytes", "counts"),
    [
        ([], 2, 10, []),
        ([1], 2, 10, [1]),
        ([1, 1, 1], 2, 10, [2, 1]),
        ([6, 6, 3], 9, 10, [1, 2]),
        ([50, 1], 9, 10, [1, 1]),
        ([1, 50, 1], 9, 10, [1, 1, 1]),
    ],
)
def test_bodies_are_bounded(
    sizes: list[int], most: int, most_bytes: int, counts: list[int]
) -> None:
    pieces = [b"x" * size for size in sizes]
    made = run(listed(bodies(each(pieces), Form(most=most, most_bytes=most_bytes))))
    assert [body.pieces for body in made] == counts
    assert b"".join(body.content for body in made) == (lines(pieces) if pieces else b"")


@given(st.lists(st.binary(min_size=1, max_size=9)), st.integers(1, 5), st.integers(1, 20))
def test_nothing_is_lost(pieces: list[bytes], most: int, most_bytes: int) -> None:
    form = Form(joined=lambda some: b"".join(some), most=most, most_bytes=most_bytes)
    made: list[ExportBody] = run(listed(bodies(each(pieces), form)))
    assert b"".join(body.content for body in made) == b"".join(pieces)
    assert sum(body.pieces for body in made) == len(pieces)
    assert all(body.pieces <= most for body in made)
    assert all(len(body.content) <= most_bytes or body.pieces == 1 for body in made)


def test_a_slow_receiver_slows_the_reading() -> None:
    read = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal read
        for number in range(100):
            read += 1
            yield str(number).encode()

    async def take_two() -> list[int]:
        seen = []
        async for _ in bodies(pieces(), Form(most=10)):
            seen.append(read)
            if len(seen) == 2:
                break
        return seen

    assert run(take_two()) == [11, 21], "one piece ahead, and no more"
