"""Values in parts: whatever the pieces, the same elements and the same text."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.workplace import KeptBodies

from noetl.messages.reference import Reference
from noetl.tools.refusal import Refusal
from noetl.tools.streams import elements_of, from_base64, json_in, parsed, text_in, unquoted

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


T = TypeVar("T")


def arriving(parts: Iterable[T]) -> AsyncIterator[T]:
    async def each() -> AsyncIterator[T]:
        for part in parts:
            yield part

    return each()


def all_of(parts: AsyncIterator[T]) -> list[T]:
    async def taken() -> list[T]:
        return [part async for part in parts]

    return asyncio.run(taken())


def cut(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(st.lists(VALUES, max_size=8), st.integers(1, 40))
def test_elements_are_the_same_whatever_the_pieces(values: list[Any], size: int) -> None:
    assert all_of(parsed(arriving(cut(msgspec.json.encode(values), size)), "rows")) == values


@given(st.text(alphabet=st.sampled_from('a"\\\n/é😀\x00u')), st.integers(1, 15))
def test_text_is_the_same_whatever_the_pieces(text: str, size: int) -> None:
    assert "".join(all_of(unquoted(arriving(cut(msgspec.json.encode(text), size))))) == text


@given(st.lists(st.sampled_from([r"\ud83d\ude00", r"\\", r"\"", r"\u00e9", "u", "é"])))
def test_escapes_are_never_cut(parts: list[str]) -> None:
    written = f'"{"".join(parts)}"'.encode()
    for size in range(1, 14):
        text = "".join(all_of(unquoted(arriving(cut(written, size)))))
        assert text == msgspec.json.decode(written)


@given(st.binary(), st.integers(1, 9))
def test_base64_is_the_same_whatever_the_pieces(body: bytes, size: int) -> None:
    written = base64.b64encode(body).decode()
    parts = [written[at : at + size] for at in range(0, len(written), size)]
    assert b"".join(all_of(from_base64(arriving(parts), "body"))) == body


@pytest.mark.parametrize("text", [" [ 1 , 2 ] ", "[1,2]", "\n[1,\t2]\n"])
def test_space_between_elements_does_not_matter(text: str) -> None:
    assert all_of(parsed(arriving([text.encode()]), "rows")) == [1, 2]


def test_one_long_element_among_short_ones() -> None:
    values = [1, "x" * 100_000, {"a": ["y" * 50_000]}, 2]
    assert all_of(parsed(arriving(cut(msgspec.json.encode(values), 1000)), "rows")) == values


@pytest.mark.parametrize("text", ["", "{}", '{"a": [1]}', "7", '"x"', "[1, 2", "[1,, x]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="'rows' is "):
        all_of(parsed(arriving([text.encode()]), "rows"))


@pytest.mark.parametrize(
    ("value", "word"), [({}, "a mapping"), ("x", "text"), (None, "null"), (7, "a number")]
)
def test_a_value_that_is_no_list_is_named(value: Any, word: str) -> None:
    with pytest.raises(Refusal, match=f"'rows' is {word}; expected a list"):
        all_of(elements_of(value, KeptBodies(), "rows"))


def test_base64_that_is_none_is_refused() -> None:
    with pytest.raises(Refusal, match="'body' is not base64 text"):
        all_of(from_base64(arriving(["a?bc"]), "body"))


def chunked(store: KeptBodies, *lists: list[Any]) -> Reference:
    chunks = [store.stored("e1", msgspec.json.encode(one)).fields() for one in lists]
    manifest = store.stored("e1", msgspec.json.encode({"chunks": chunks}))
    return Reference(**manifest.fields() | {"schema_hint": f"chunks[{len(chunks)}]"})


def test_stored_values_are_read_from_the_store() -> None:
    store = KeptBodies()
    rows = store.stored("e1", b'[{"a":1},{"a":2}]')
    text = store.stored("e1", '"Grüße\\n"'.encode())

    assert all_of(elements_of(rows, store, "rows")) == [{"a": 1}, {"a": 2}]
    assert b"".join(all_of(json_in(rows, store))) == b'[{"a":1},{"a":2}]'
    assert text_in(rows, store) is None
    parts = text_in(text, store)
    assert parts is not None
    assert "".join(all_of(parts)) == "Grüße\n"


def test_a_list_in_chunks_is_one_list() -> None:
    store = KeptBodies()
    manifest = chunked(store, [1, 2], [], [3])

    assert all_of(elements_of(manifest, store, "rows")) == [1, 2, 3]
    assert b"".join(all_of(json_in(manifest, store))) == b"[1,2,3]"
    assert b"".join(all_of(json_in(chunked(store), store))) == b"[]"


def test_a_body_that_is_gone_ends_the_call() -> None:
    store = KeptBodies()
    reference = store.stored("e1", b"[1]")
    manifest = chunked(store, [1])
    store.kept.clear()

    for gone in (reference, manifest):
        with pytest.raises(Refusal) as refusal:
            all_of(elements_of(gone, store, "rows"))
        assert refusal.value.outcome.error is not None
        assert refusal.value.outcome.error["kind"] == "result"
