"""Values in the log that hold a secret: sealed, opened, and unreadable to others."""

from pathlib import Path
from typing import Any

import pytest

from noetl.adapters.memory.credentials import MemoryCredentials
from noetl.errors import BodyLost
from noetl.keychain.keys import KeySource
from noetl.keychain.seals import ROOM, Seals
from noetl.keychain.store import Store
from noetl.masking import MASK, Masking
from noetl.messages.codec import decode, encode
from noetl.messages.reference import Reference, secret


async def seals(masking: Masking | None = None) -> Seals:
    own = Seals(Store(MemoryCredentials(), KeySource(None, {})), masking or Masking())
    await own.make_ready()
    return own


@pytest.mark.parametrize(
    "value",
    [
        "Bearer tok-en-1",
        "",
        12345678,
        {"user": "u", "nested": ["tok-en-1", None, 1.5]},
        {"$secret": {"id": "only", "sealed": "data"}},
        "ümlaut \u2028 \x00",
    ],
)
async def test_a_value_comes_back_as_it_was(value: Any) -> None:
    own = await seals()
    sealed = own.seal(value)
    assert isinstance(sealed, Reference)
    recorded = encode({"ctx": sealed})
    assert b"tok-en-1" not in recorded
    assert recorded.startswith(b'{"ctx":{"$secret":{"id":')
    assert await own.open(decode(recorded)["ctx"]) == value


async def test_a_value_holds_what_is_stored_elsewhere() -> None:
    own = await seals()
    reference = Reference("files", "e/1", 10, "c")
    assert await own.open(own.seal({"big": reference})) == {"big": reference}


async def test_the_same_value_is_sealed_once_and_equal_ones_are_equal() -> None:
    own = await seals()
    assert own.seal("x") is own.seal("x")
    again = Seals(own._store, Masking())
    assert again.seal("x") == own.seal("x") != own.seal("y")
    assert again.seal("x").sealed != own.seal("x").sealed


async def test_few_are_remembered() -> None:
    own = await seals()
    first = own.seal("value 0")
    for number in range(ROOM):
        own.seal(f"value {number + 1}")
    assert len(own._sealed) <= ROOM
    assert await own.open(first) == "value 0"


async def test_who_opens_it_masks_what_is_in_it() -> None:
    known, fresh = Masking(), Masking()
    known.add("tok-en-1")
    known.add("not-in-it")
    own = await seals(known)
    sealed = own.seal("Bearer tok-en-1")
    assert await Seals(own._store, fresh).open(sealed) == "Bearer tok-en-1"
    assert fresh.masked("tok-en-1 not-in-it") == f"{MASK} not-in-it"


@pytest.mark.parametrize("change", ["id", "text", "key", "form"])
async def test_what_was_changed_does_not_open(change: str) -> None:
    own = await seals()
    sealed = own.seal("x")
    assert sealed.sealed is not None
    key_id, _, text = sealed.sealed.partition(":")
    changed = {
        "id": secret("0" * 24, sealed.sealed),
        "text": secret(sealed.key, f"{key_id}:{text[:-8]}AAAAAAA="),
        "key": secret(sealed.key, f"{'0' * 12}:{text}"),
        "form": secret(sealed.key, "nothing"),
    }[change]
    with pytest.raises(BodyLost, match="cannot be read"):
        await own.open(changed)


async def test_a_rotation_leaves_the_log_readable(tmp_path: Path) -> None:
    kept = MemoryCredentials()
    store = Store(kept, KeySource(tmp_path, {}))
    first = Seals(store, Masking())
    await first.make_ready()
    sealed = first.seal("kept")
    await store.rotate()
    fresh = Seals(Store(kept, KeySource(tmp_path, {})), Masking())
    assert await fresh.open(sealed) == "kept"
    # Whoever has opened one knows a secret, and can seal it.
    assert fresh.seal("kept").sealed != sealed.sealed


async def test_a_home_without_its_key_says_what_it_needs(tmp_path: Path) -> None:
    kept = MemoryCredentials()
    first = Seals(Store(kept, KeySource(tmp_path, {})), Masking())
    await first.make_ready()
    sealed = first.seal("x")
    (tmp_path / "key").unlink()
    later = Seals(Store(kept, KeySource(tmp_path, {})), Masking())
    with pytest.raises(BodyLost, match="put it back from your backup, or set NOETL_KEY"):
        await later.open(sealed)
